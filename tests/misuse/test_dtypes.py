"""Dtypes that operators are not offered for, one a test: refused as PyTorch refuses them."""

import pytest
import rushlight as torch
import rushlight.nn.functional as F

MASK = torch.tensor([[True, False], [True, True]])
WHOLE = torch.tensor([[1, 2], [3, 4]])
REAL = torch.tensor([[0.5, 0.25], [0.75, 1.0]])
HALF = REAL.half()


@pytest.mark.parametrize(
    "function",
    [
        F.silu, F.gelu, F.softplus, F.elu, F.selu, F.leaky_relu, F.hardswish, F.hardsigmoid,
        F.hardshrink, F.softshrink, F.logsigmoid, F.mish, F.glu, torch.frac, torch.var, torch.std,
        lambda x: F.softmax(x, 1), lambda x: F.layer_norm(x, (2,)), lambda x: F.rms_norm(x, (2,)),
        lambda x: torch.logcumsumexp(x, 0), lambda x: torch.hypot(x, x),
        lambda x: torch.logaddexp(x, x), lambda x: torch.nextafter(x, x),
        lambda x: F.smooth_l1_loss(x, x), lambda x: F.huber_loss(x, x), lambda x: F.mse_loss(x, x),
        lambda x: F.cross_entropy(x, torch.tensor([0, 1])),
    ],
)  # fmt: skip
def test_integers_where_reals_are_expected(function):
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        function(WHOLE)


@pytest.mark.parametrize(
    "function",
    [
        torch.abs, torch.floor, torch.ceil, torch.trunc, torch.round, torch.argmax, torch.argmin,
        torch.median, torch.trace, F.hardtanh, F.relu6, lambda x: torch.kthvalue(x, 1),
        lambda x: torch.topk(x, 1), lambda x: F.threshold(x, 0.1, 0.2), lambda x: x @ x,
        lambda x: torch.addcmul(x, x, x),
    ],
)  # fmt: skip
def test_truth_values_where_numbers_are_expected(function):
    with pytest.raises(NotImplementedError, match="not implemented for 'Bool'"):
        function(MASK)


@pytest.mark.parametrize("function", [torch.bitwise_or, torch.bitwise_left_shift])
def test_reals_where_integers_are_expected(function):
    with pytest.raises(NotImplementedError, match="not implemented for 'Float'"):
        function(WHOLE, REAL)


@pytest.mark.parametrize(
    "function",
    [
        lambda: torch.lerp(REAL, HALF, 0.5),
        lambda: torch.lerp(REAL, REAL, HALF),
        lambda: F.binary_cross_entropy(REAL, HALF),
        lambda: F.prelu(REAL, HALF[0, :1]),
        lambda: torch.cross(torch.ones(3), torch.ones(3).double(), dim=0),
    ],
)
def test_two_dtypes_where_one_is_expected(function):
    with pytest.raises(RuntimeError, match="expected dtype"):
        function()


@pytest.mark.parametrize("other", [REAL, WHOLE, 1.5, True])
def test_difference_with_truth_values(other):
    with pytest.raises(RuntimeError, match="the `-` operator, with"):
        MASK - other
    with pytest.raises(RuntimeError, match="the `-` operator, with"):
        other - MASK


def test_division_of_integers_by_addcdiv():
    with pytest.raises(RuntimeError, match="Integer division with addcdiv"):
        torch.addcdiv(REAL, WHOLE, WHOLE)


def test_dimension_of_a_number_moved():
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch.tensor(1.0).movedim(1, -1)
