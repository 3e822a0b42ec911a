"""Gradients of activations with limits, inside, outside, at the limits and at NaN."""

import pytest
import rushlight as torch
import rushlight.nn.functional as F

NAN = float("nan")


@pytest.mark.parametrize(
    "function, x, slopes",
    [
        (F.hardswish, [-4.0, -3.0, -1.5, 0.0, 1.5, 3.0, 5.0, NAN], [0, 0, 0, 0.5, 1, 1, 1, 0]),
        (F.hardtanh, [-2.0, -1.0, 0.0, 0.5, 1.0, 2.0, NAN], [0, 0, 1, 1, 0, 0, 0]),
        (F.relu6, [-1.0, 0.0, 3.0, 6.0, 7.0, NAN], [0, 0, 1, 0, 0, 0]),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_slopes(function, x, slopes, dtype):
    leaf = torch.tensor(x, dtype=dtype, requires_grad=True)
    (grad,) = torch.autograd.grad(function(leaf), leaf, torch.full_like(leaf, 2))
    assert grad.tolist() == [2 * slope for slope in slopes]


@pytest.mark.parametrize("function", [F.hardswish, F.hardtanh, F.relu6])
def test_differentiates_twice(function):
    x = torch.tensor([-4.0, -2.2, -0.4, 0.3, 2.1, 3.7, 6.5], dtype=torch.float64)
    assert torch.autograd.gradgradcheck(function, (x.requires_grad_(),))
