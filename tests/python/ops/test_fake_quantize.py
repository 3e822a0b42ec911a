"""Rounding to what a few bits hold, and the gradient that passes through."""

import pytest
import rushlight as torch


def test_one_scale():
    x = torch.linspace(-3, 3, 7, requires_grad=True)
    made = torch.fake_quantize_per_tensor_affine(x, 0.5, 0, -4, 3)
    assert made.tolist() == [-2, -2, -1, 0, 1, 1.5, 1.5]
    assert torch.autograd.grad(made.sum(), x)[0].tolist() == [0, 1, 1, 1, 1, 0, 0]
    scale, point = torch.tensor(0.5), torch.tensor([0], dtype=torch.int32)
    assert torch.equal(torch.fake_quantize_per_tensor_affine(x, scale, point, -4, 3), made)


def test_halves_round_to_even_and_nan_is_the_least():
    nan, inf = float("nan"), float("inf")
    x = torch.tensor([nan, inf, -inf, 1e30, 0.25, 0.75, 1.25, -0.25])
    made = torch.fake_quantize_per_tensor_affine(x, 0.5, 0, -4, 3)
    assert made.tolist() == [-2, 1.5, -2, 1.5, 0, 1, 1, 0]
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        assert torch.fake_quantize_per_tensor_affine(x.to(dtype), 0.5, 0, -4, 3).dtype is dtype


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_a_scale_for_each_channel(axis):
    torch.manual_seed(0)
    y = torch.randn(3, 4, requires_grad=True)
    count = y.shape[axis]
    scale = torch.linspace(0.05, 0.3, count)
    point = torch.arange(count, dtype=torch.int32) - 1
    made = torch.fake_quantize_per_channel_affine(y, scale, point, axis, -8, 7)
    parts = [
        torch.fake_quantize_per_tensor_affine(part, s.item(), p.item(), -8, 7)
        for part, s, p in zip(y.unbind(axis), scale, point)
    ]
    assert torch.equal(made, torch.stack(parts, axis))
    (gradient,) = torch.autograd.grad(made.sum(), y)
    (expected,) = torch.autograd.grad(torch.stack(parts).sum(), y)
    assert torch.equal(gradient, expected) and gradient.unique().tolist() == [0, 1]


def test_a_compiled_layer_trains():
    layer = torch.nn.Linear(4, 4)

    def run(x):
        w = torch.fake_quantize_per_tensor_affine(layer.weight, 0.05, 0, -128, 127)
        return torch.nn.functional.linear(x, w, layer.bias).square().sum()

    x = torch.rand(2, 4)
    expected = torch.autograd.grad(run(x), layer.weight)[0]
    assert torch.equal(torch.autograd.grad(torch.compile(run)(x), layer.weight)[0], expected)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((0.5, 0, 4, 3), RuntimeError, "`quant_min` should be less than or equal to `quant_max`"),
        ((0.5, 9, -4, 3), RuntimeError, r"between `quant_min` and `quant_max`, got 9 outside"),
        ((torch.ones(2), torch.zeros(2), -4, 3), RuntimeError, r"one element, got shape \[2\]"),
    ],
)
def test_mistakes(arguments, error, text):
    with pytest.raises(error, match=text):
        torch.fake_quantize_per_tensor_affine(torch.ones(3), *arguments)


def test_mistakes_by_channel():
    y, scale = torch.ones(3, 4), torch.ones(3)
    point = torch.zeros(3, dtype=torch.int32)
    per_channel = torch.fake_quantize_per_channel_affine
    for arguments, error, text in (
        ((scale[:2], point, 0), RuntimeError, "need to have the same dimensions"),
        ((scale, point.long(), 0), RuntimeError, "Zero-point must be Int32, Float or Half, found"),
        ((scale, point, 1), RuntimeError, "not consistent with input tensor: 3 channels"),
        ((scale, point + 9, 0), RuntimeError, "`zero_point` must be between"),
        ((scale, point, 5), IndexError, "Dimension out of range"),
        ((scale.double(), point, 0), RuntimeError, "Scale must be Float or BFloat16, found Double"),
    ):
        with pytest.raises(error, match=text):
            per_channel(y, *arguments, -8, 7)
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        per_channel(y.long(), scale, point, 0, -8, 7)
