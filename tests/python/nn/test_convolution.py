"""Convolutions against plain loops in double precision."""

import itertools

import numpy as np
import pytest
import rushlight as torch
import rushlight.nn.functional as F
from rushlight import nn


def reference(x, w, b=None, stride=1, padding=0, dilation=1, groups=1):
    """Convolution of (N, C, ...) arrays, tap by tap."""
    dims = x.ndim - 2
    stride, padding, dilation = (
        value if isinstance(value, tuple) else (value,) * dims
        for value in (stride, padding, dilation)
    )
    x = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding)])
    outputs = [
        (size - d * (k - 1) - 1) // s + 1
        for size, k, s, d in zip(x.shape[2:], w.shape[2:], stride, dilation)
    ]
    made = np.zeros((x.shape[0], w.shape[0], *outputs))
    ins, outs = x.shape[1] // groups, w.shape[0] // groups
    for taps in itertools.product(*map(range, w.shape[2:])):
        window = tuple(
            slice(t * d, t * d + (o - 1) * s + 1, s)
            for t, d, o, s in zip(taps, dilation, outputs, stride)
        )
        for g in range(groups):
            part = x[(slice(None), slice(g * ins, (g + 1) * ins), *window)]
            factor = w[(slice(g * outs, (g + 1) * outs), slice(None), *taps)]
            made[:, g * outs : (g + 1) * outs] += np.einsum("nc...,oc->no...", part, factor)
    return made if b is None else made + b.reshape(-1, *(1,) * dims)


def gradients(x, w, dy, **settings):
    """Those of input and weight, by the linearity of the reference in each."""

    def pull(value, function):
        made = np.zeros(value.shape)
        for index in np.ndindex(*value.shape):
            unit = np.zeros(value.shape)
            unit[index] = 1
            made[index] = (function(unit) * dy).sum()
        return made

    return (
        pull(x, lambda unit: reference(unit, w, **settings)),
        pull(w, lambda unit: reference(x, unit, **settings)),
    )


CASES = [
    ((2, 3, 9), (4, 3, 3), {}),
    ((1, 2, 7), (2, 2, 2), {"stride": 2, "padding": 1, "dilation": 2}),
    ((2, 3, 6, 7), (5, 3, 3, 2), {"padding": (1, 0)}),
    ((1, 4, 7, 8), (6, 2, 3, 3), {"groups": 2, "stride": (2, 1), "padding": 1}),
    ((2, 4, 7, 6), (8, 1, 3, 3), {"groups": 4, "padding": 1}),
    ((1, 4, 9, 7), (4, 1, 3, 2), {"groups": 4, "stride": 2, "dilation": (2, 1)}),
    ((2, 5, 4, 5), (3, 5, 1, 1), {}),
    ((1, 3, 5, 6), (4, 3, 1, 1), {"stride": 2}),
    ((1, 2, 4, 5, 4), (3, 2, 2, 3, 2), {"padding": (0, 1, 1), "stride": (1, 2, 1)}),
    ((1, 2, 4, 4), (2, 2, 3, 3), {"padding": 5, "stride": 3, "dilation": 4}),
    ((3, 2, 5, 3), (17, 2, 2, 2), {"stride": 3}),
]


@pytest.mark.parametrize(("shape", "kernel", "settings"), CASES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_values_and_gradients(shape, kernel, settings, dtype):
    random = np.random.default_rng(len(shape) + kernel[0])
    x, w = random.standard_normal(shape), random.standard_normal(kernel)
    b = random.standard_normal(kernel[0])
    tx, tw, tb = (torch.tensor(v, dtype=dtype, requires_grad=True) for v in (x, w, b))
    function = getattr(F, f"conv{len(shape) - 2}d")
    y = function(tx, tw, tb, **settings)
    wanted = reference(x, w, b, **settings)
    tolerance = 1e-4 if dtype == torch.float32 else 1e-11
    np.testing.assert_allclose(y.detach().numpy(), wanted, tolerance, tolerance)
    dy = random.standard_normal(wanted.shape)
    y.backward(torch.tensor(dy, dtype=dtype))
    dx, dw = gradients(x, w, dy, **settings)
    np.testing.assert_allclose(tx.grad.numpy(), dx, tolerance, tolerance)
    np.testing.assert_allclose(tw.grad.numpy(), dw, tolerance, tolerance)
    db = dy.sum(axis=(0, *range(2, dy.ndim)))
    np.testing.assert_allclose(tb.grad.numpy(), db, tolerance, tolerance)


@pytest.mark.parametrize(("shape", "kernel", "settings"), CASES)
def test_transposed_is_the_gradient(shape, kernel, settings):
    x = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    w = torch.randn(kernel, dtype=torch.float64)
    y = getattr(F, f"conv{len(shape) - 2}d")(x, w, **settings)
    dy = torch.randn_like(y)
    (wanted,) = torch.autograd.grad(y, x, dy)
    transposed = getattr(F, f"conv_transpose{len(shape) - 2}d")
    smallest = transposed(dy, w, **settings)
    extra = tuple(a - b for a, b in zip(x.shape[2:], smallest.shape[2:]))
    made = transposed(dy, w, output_padding=extra, **settings)
    assert torch.allclose(made, wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("transposed", [False, True])
def test_second_order(transposed):
    x = torch.randn(2, 4, 5, 4, dtype=torch.float64, requires_grad=True)
    w = torch.randn(4, 2, 3, 2, dtype=torch.float64, requires_grad=True)
    b = torch.randn(4, dtype=torch.float64, requires_grad=True)
    function = F.conv_transpose2d if transposed else F.conv2d

    def call(x, w, b):
        return function(x, w, b, stride=2, padding=1, groups=2)

    assert torch.autograd.gradcheck(call, (x, w, b))
    assert torch.autograd.gradgradcheck(call, (x, w, b))


def test_padding_by_name():
    x, w = torch.randn(1, 2, 7), torch.randn(3, 2, 4)
    same = F.conv1d(x, w, padding="same", dilation=2)
    assert same.shape == (1, 3, 7)
    assert torch.equal(same, F.conv1d(F.pad(x, (3, 3)), w, dilation=2))
    even = F.conv1d(x, torch.ones(1, 2, 2), padding="same")
    assert torch.equal(even, F.conv1d(F.pad(x, (0, 1)), torch.ones(1, 2, 2)))
    assert torch.equal(F.conv1d(x, w, padding="valid"), F.conv1d(x, w))


def test_without_a_batch():
    x, w = torch.randn(3, 5, 5), torch.randn(2, 3, 2, 2)
    assert torch.equal(F.conv2d(x, w), F.conv2d(x[None], w)[0])
    w = torch.randn(3, 2, 2, 2)
    assert torch.equal(F.conv_transpose2d(x, w), F.conv_transpose2d(x[None], w)[0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_channels_last(dtype):
    x, w = torch.randn(2, 3, 6, 5).to(dtype), torch.randn(4, 3, 3, 3).to(dtype)
    format = torch.channels_last
    plain = F.conv2d(x, w, padding=1)
    for a, b in ((x.to(memory_format=format), w), (x, w.to(memory_format=format))):
        a, b = a.requires_grad_(), b.requires_grad_()
        y = F.conv2d(a, b, padding=1)
        assert y.is_contiguous(memory_format=format)
        assert torch.equal(y, plain)
        for grad in torch.autograd.grad(y.float().sum(), (a, b)):
            assert grad.is_contiguous(memory_format=format)


def test_any_strides():
    x, w = torch.randn(7, 2, 6, 3), torch.randn(3, 3, 3, 4)
    turned = x.permute(1, 3, 2, 0)
    kernel = w.permute(3, 0, 1, 2)
    made = F.conv2d(turned, kernel)
    assert torch.equal(made, F.conv2d(turned.contiguous(), kernel.contiguous()))
    ones = torch.ones(1, 1, 1, 1).expand(2, 3, 4, 4)
    assert torch.equal(F.conv2d(ones, torch.ones(1, 3, 2, 2)), torch.full((2, 1, 3, 3), 12.0))


def test_half_types_are_summed_in_float():
    x, w = torch.randn(1, 40, 9, 9), torch.randn(8, 40, 3, 3)
    for dtype in (torch.bfloat16, torch.float16):
        made = F.conv2d(x.to(dtype), w.to(dtype))
        exact = F.conv2d(x.to(dtype).double(), w.to(dtype).double())
        error = (made.double() - exact).abs().max() / exact.abs().max()
        assert error <= torch.finfo(dtype).eps


def test_integers():
    x = torch.arange(12).view(1, 1, 3, 4)
    w = torch.tensor([[[[1, -1], [2, 0]]]])
    assert F.conv2d(x, w).tolist() == [[[[7, 9, 11], [15, 17, 19]]]]
    assert F.conv2d(x.byte(), w.byte()).dtype == torch.uint8
    assert F.conv_transpose2d(x[..., :1, :2], w).tolist() == [[[[0, 1, -1], [0, 2, 0]]]]
    with pytest.raises(NotImplementedError, match="not implemented for 'Int'"):
        F.conv2d(x.int(), w.int(), dilation=2)


def test_same_bits_for_any_number_of_threads():
    threads = torch.get_num_threads()
    x = torch.randn(5, 6, 17, 13, requires_grad=True)
    w = torch.randn(8, 3, 3, 3, requires_grad=True)
    found = []
    try:
        for count in (1, 2, 3, 8):
            torch.set_num_threads(count)
            y = F.conv2d(x, w, padding=1, stride=2, groups=2)
            found.append((y, *torch.autograd.grad(y.sin().sum(), (x, w))))
    finally:
        torch.set_num_threads(threads)
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other))


def test_nothing_to_do():
    x, w = torch.zeros(0, 3, 5, 5, requires_grad=True), torch.ones(2, 3, 3, 3, requires_grad=True)
    y = F.conv2d(x, w)
    assert y.shape == (0, 2, 3, 3)
    dx, dw = torch.autograd.grad(y.sum(), (x, w))
    assert dx.shape == x.shape and torch.equal(dw, torch.zeros_like(w))
    meta = F.conv2d(torch.ones(2, 3, 5, 5, device="meta"), torch.ones(4, 3, 2, 2, device="meta"))
    assert meta.shape == (2, 4, 4, 4) and meta.device.type == "meta"


def test_given_output():
    x, w = torch.randn(1, 2, 5), torch.randn(3, 2, 2)
    out = torch.empty(1, 3, 4)
    settings = ([1], [0], [1], False, [0], 1)
    assert torch.convolution(x, w, None, *settings, out=out) is out
    assert torch.equal(out, F.conv1d(x, w))


def test_along_the_first_dimension():
    x, w, b = torch.randn(6, 2, 3), torch.randn(2, 3, 4), torch.randn(4)
    made = F.conv_tbc(x, w, b, 1)
    wanted = F.conv1d(x.permute(1, 2, 0), w.permute(2, 1, 0), b, padding=1).permute(2, 0, 1)
    assert torch.equal(made, wanted)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast(dtype):
    x, layer = torch.randn(1, 3, 5, 5), nn.Conv2d(3, 2, 3)
    with torch.autocast("cpu", dtype):
        assert layer(x).dtype == dtype
        assert nn.ConvTranspose2d(3, 2, 3)(x).dtype == dtype


def test_compiled_bits():
    torch.manual_seed(3)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, groups=8),
        nn.ConvTranspose2d(8, 4, 3, stride=2),
    )
    x = torch.randn(2, 3, 8, 8)
    eager = model(x)
    eager.square().sum().backward()
    wanted = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    made = torch.compile(model)(x)
    made.square().sum().backward()
    assert torch.equal(made, eager)
    for parameter, grad in zip(model.parameters(), wanted):
        assert torch.equal(parameter.grad, grad)


def test_other_borders():
    x = torch.randn(1, 2, 5, 5)
    for mode in ("reflect", "replicate", "circular"):
        layer = nn.Conv2d(2, 3, 3, padding=1, padding_mode=mode)
        wanted = F.conv2d(F.pad(x, (1, 1, 1, 1), mode=mode), layer.weight, layer.bias)
        assert torch.equal(layer(x), wanted)
