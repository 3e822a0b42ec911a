"""Element-wise arithmetic: who may be a number, what out= takes, gradients that are zero."""

import math

import pytest
import rushlight as torch


@pytest.mark.parametrize(
    "alias, name",
    [
        ("multiply", "mul"),
        ("subtract", "sub"),
        ("divide", "div"),
        ("true_divide", "div"),
        ("absolute", "abs"),
        ("negative", "neg"),
        ("arctan2", "atan2"),
    ],
)
def test_aliases_have_function_method_and_inplace_form(alias, name):
    a = torch.tensor([1.0, -2.0])
    arguments = () if name in ("abs", "neg") else (torch.tensor([4.0, 2.0]),)
    expected = getattr(torch, name)(a, *arguments)
    assert torch.equal(getattr(torch, alias)(a, *arguments), expected)
    assert torch.equal(getattr(a, alias)(*arguments), expected)
    getattr(a, alias + "_")(*arguments)
    assert torch.equal(a, expected)


def test_special_names():
    x = torch.tensor([0.5, 2.0])
    assert torch.equal(torch.special.expit(x), torch.sigmoid(x))
    assert torch.equal(torch.special.psi(x), torch.digamma(x))
    assert not hasattr(torch.Tensor, "special_expit")


@pytest.mark.parametrize("name", ["eq", "lt", "fmod", "rsub", "copysign"])
def test_a_number_first_is_refused(name):
    with pytest.raises(TypeError):
        getattr(torch, name)(2, torch.tensor([1.0]))


@pytest.mark.parametrize("name", ["pow", "remainder", "xlogy"])
def test_a_number_first_needs_a_tensor_beside_it(name):
    getattr(torch, name)(2, torch.tensor([1.0]))
    with pytest.raises(TypeError):
        getattr(torch, name)(2, 3)


def test_arithmetic_takes_two_numbers():
    assert torch.add(2, 3).item() == 5
    assert torch.mul(2, 3.5).item() == 7.0


def test_out_of_one_argument_operators_has_the_exact_dtype():
    x = torch.tensor([1.5, -2.5])
    with pytest.raises(RuntimeError, match="dtype"):
        torch.floor(x, out=torch.empty(2, dtype=torch.float64))
    out = torch.empty(2, dtype=torch.float64)
    assert torch.add(x, x, out=out) is out
    assert out.tolist() == [3.0, -5.0]


@pytest.mark.parametrize("name", ["floor", "ceil", "round", "trunc", "sign"])
def test_steps_have_a_zero_gradient(name):
    x = torch.tensor([1.25, -2.75], requires_grad=True)
    getattr(torch, name)(x).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]


def test_rounding_to_decimals_has_a_zero_gradient():
    x = torch.tensor([1.25, -2.75], requires_grad=True)
    torch.round(x, decimals=1).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]


def test_rounded_division_has_a_zero_gradient():
    x = torch.tensor([5.0, 7.0], requires_grad=True)
    y = torch.tensor([2.0, 3.0], requires_grad=True)
    torch.div(x, y, rounding_mode="floor").sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]
    assert y.grad.tolist() == [0.0, 0.0]
    assert not torch.floor_divide(x, y).requires_grad


def test_second_derivative_through_a_division_by_a_number():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (first,) = torch.autograd.grad(((x * x * x) / 2.0).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert first.tolist() == [1.5, 6.0]
    assert second.tolist() == [3.0, 6.0]


def test_clamp_bounds_that_are_tensors():
    x = torch.tensor([1.0, 5.0], requires_grad=True)
    low = torch.tensor([2.0, 3.0], requires_grad=True)
    y = torch.clamp_min(x, low)
    y.sum().backward()
    assert y.tolist() == [2.0, 5.0]
    assert x.grad.tolist() == [0.0, 1.0]
    assert low.grad.tolist() == [1.0, 0.0]
    highest = torch.tensor([2.0, 3.0])
    assert torch.clamp_max(torch.tensor([1.0, 5.0]), highest).tolist() == [1.0, 3.0]


def test_isclose_refuses_negative_tolerances():
    x = torch.tensor([1.0])
    with pytest.raises(RuntimeError, match="rtol must be greater than or equal to zero"):
        torch.isclose(x, x, rtol=-0.1)
    with pytest.raises(RuntimeError, match="atol must be greater than or equal to zero"):
        torch.isclose(x, x, atol=-0.1)
    assert torch.isclose(x, torch.tensor([math.nan])).tolist() == [False]


def test_logaddexp_shares_the_gradient_of_equal_arguments():
    a = torch.tensor([1.0, -math.inf], requires_grad=True)
    b = torch.tensor([1.0, -math.inf], requires_grad=True)
    torch.logaddexp(a, b).sum().backward()
    assert a.grad.tolist() == [0.5, 0.5]
    assert b.grad.tolist() == [0.5, 0.5]


def test_integers_have_no_negative_powers():
    x = torch.tensor([2, 4])
    for call in (lambda: x**-1, lambda: torch.pow(x, -2), lambda: x.clone().pow_(-1)):
        with pytest.raises(RuntimeError, match="Integers to negative integer powers"):
            call()
    assert (x ** torch.tensor([-1, 1])).tolist() == [0, 4]
    assert (2 ** torch.tensor([-1, 2])).tolist() == [0, 4]
    assert (x.float() ** -1).tolist() == (x**-1.0).tolist() == [0.5, 0.25]
