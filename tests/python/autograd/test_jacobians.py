"""The Jacobians that gradcheck compares, and the old names of autograd."""

from __future__ import annotations

import importlib

import pytest
import rushlight as torch

check = importlib.import_module("rushlight.autograd.gradcheck")
X = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
WANTED = torch.diag(torch.tensor([2.0, 4.0, 6.0], dtype=torch.float64))


def test_by_differences():
    (made,) = check.get_numerical_jacobian(lambda inputs: inputs[0] ** 2, (X,))
    assert torch.allclose(made, WANTED) and X.tolist() == [1.0, 2.0, 3.0]
    (made,) = check.get_numerical_jacobian_wrt_specific_input(
        lambda x: x**2, 0, (X,), (X**2,), 1e-6
    )
    assert torch.allclose(made, WANTED)


def test_by_backward():
    (made,), same, sizes, dtypes = check.get_analytical_jacobian((X,), X**2)
    assert torch.equal(made, WANTED) and same and sizes and dtypes


def test_what_is_no_longer_taken():
    with pytest.raises(ValueError, match="grad_out to be 1.0"):
        check.get_numerical_jacobian(lambda i: i[0], (X,), grad_out=2.0)
    with pytest.raises(ValueError, match="non-complex"):
        check.get_numerical_jacobian(lambda i: i[0] * 1j, (X,))


def test_variable_the_function_and_the_class():
    with pytest.raises(RuntimeError, match=r"use torch\.tensor"):
        torch.autograd.variable(3)
    Variable = torch.autograd.Variable
    assert Variable().numel() == 0
    assert Variable(torch.ones(1), requires_grad=True).requires_grad
    assert isinstance(torch.ones(1), Variable)
    with pytest.raises(ValueError, match="a node cannot be given"):
        Variable(torch.ones(1), _grad_fn=3)


def test_hooks_of_nodes_by_name():
    seen = []
    node = (X * 2).sum().grad_fn
    handle = node.register_hook(lambda inputs, outputs: seen.append(1))
    assert callable(handle.remove)
    with pytest.raises(NotImplementedError):
        torch.autograd.NestedIOFunction.forward_extended(None)


@pytest.mark.parametrize("name", ["hvp", "vhp"])
def test_the_value_beside_a_hessian_product_has_a_graph_where_asked(name: str) -> None:
    function = getattr(torch.autograd.functional, name)
    x = torch.tensor([1.0, 2.0])
    value, product = function(lambda v: (v**3).sum(), x, torch.ones(2), create_graph=True)
    assert value.requires_grad and product.requires_grad
    assert product.tolist() == [6.0, 12.0]
    value, product = function(lambda v: (v**3).sum(), x, torch.ones(2))
    assert not value.requires_grad and not product.requires_grad
