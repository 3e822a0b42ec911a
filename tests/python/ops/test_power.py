"""Powers: exponents that are one number, and C's special cases."""

import math

import pytest
import rushlight as torch

INF = math.inf
NAN = math.nan


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("exponent", "same"),
    [
        (2, lambda x: x * x),
        (3, lambda x: x * x * x),
        (0.5, torch.sqrt),
        (-0.5, torch.rsqrt),
        (-1, torch.reciprocal),
        (-2, lambda x: 1 / (x * x)),
        (1, lambda x: x),
        (0, torch.ones_like),
    ],
)
def test_usual_exponents_multiply_divide_and_take_roots(dtype, exponent, same):
    torch.manual_seed(0)
    x = torch.cat([torch.rand(1001, dtype=dtype) * 10, torch.tensor([0.0, -0.0, INF, -INF, -2.0])])
    for number in (exponent, float(exponent)):
        assert torch.equal((x**number).nan_to_num(7), same(x).nan_to_num(7))
        compiled = torch.compile(lambda x: x**number)  # noqa: B023
        assert torch.equal(compiled(x).nan_to_num(7), same(x).nan_to_num(7))


def test_roots_of_negative_numbers_are_nan_as_those_of_sqrt():
    x = torch.tensor([-INF, -0.0, 4.0])
    assert str((x**0.5).tolist()) == "[nan, -0.0, 2.0]"
    assert str((x**-0.5).tolist()) == "[nan, -inf, 0.5]"
    # An exponent for each element: C's pow.
    halves = torch.full((3,), 0.5)
    assert str((x**halves).tolist()) == "[inf, 0.0, 2.0]"


@pytest.mark.parametrize(
    ("x", "y", "power"),
    [
        (NAN, 0.0, 1.0),
        (1.0, NAN, 1.0),
        (-1.0, INF, 1.0),
        (-1.0, -INF, 1.0),
        (0.0, -3.0, INF),
        (-0.0, -3.0, -INF),
        (-0.0, -2.0, INF),
        (-0.0, 3.0, -0.0),
        (-8.0, 1 / 3, NAN),
        (-INF, 3.0, -INF),
        (-INF, -3.0, -0.0),
        (-INF, 2.5, INF),
        (0.5, -INF, INF),
        (2.0, -INF, 0.0),
        (-2.0, 31.0, -(2.0**31)),
        (2.0, 128.0, INF),
        (2.0, -149.0, 2.0**-149),
        (2.0, -150.0, 0.0),
        (-1.0, 16777215.0, -1.0),
        (-1.0, 16777216.0, 1.0),
    ],
)
def test_special_cases(x, y, power):
    got = torch.pow(torch.tensor([x] * 17), torch.tensor([y] * 17))
    assert str(got.tolist()) == str([power] * 17)


def test_gradients_of_usual_powers():
    x = torch.tensor([0.5, 2.0, 3.0], requires_grad=True)
    for exponent in (2, 3, 0.5, -1, 1, 0):
        (gradient,) = torch.autograd.grad((x**exponent).sum(), x)
        wanted = [exponent * value ** (exponent - 1) for value in (0.5, 2.0, 3.0)]
        assert gradient.tolist() == pytest.approx(wanted, rel=1e-6)
