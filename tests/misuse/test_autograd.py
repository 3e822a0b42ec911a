"""Mistakes with gradients: one a test, with the text it gets."""

import pytest
import rushlight as torch


def test_backward_twice():
    x = torch.ones(2, requires_grad=True)
    y = (x.exp() * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()


def test_saved_tensor_was_modified():
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_backward_of_many_elements():
    with pytest.raises(RuntimeError, match="implicitly created only for scalar outputs"):
        torch.ones(2, requires_grad=True).mul(2).backward()


def test_backward_without_graph():
    with pytest.raises(RuntimeError, match="does not require grad"):
        torch.ones(1).backward()


def test_leaf_in_place():
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad.*in-place"):
        torch.ones(2, requires_grad=True).add_(1)


def test_integer_requires_grad():
    with pytest.raises(RuntimeError, match="floating point"):
        torch.ones(2, dtype=torch.int64, requires_grad=True)


def test_out_with_grad():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="out=... arguments don't support automatic"):
        torch.exp(x, out=torch.empty(2))


def test_unused_input():
    x, y = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError, match="not have been used in the graph"):
        torch.autograd.grad(x * 2, y)


def test_numpy_of_tensor_with_grad():
    with pytest.raises(RuntimeError, match="detach"):
        torch.ones(1, requires_grad=True).numpy()


def test_gradient_of_other_shape():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError):
        x.mul(2).backward(torch.ones(3))


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: torch.hypot(x, y),
        lambda x, y: x.prod(),
        lambda x, y: x.prod(0),
        lambda x, y: x**y,
        lambda x, y: 2.0**y,
        lambda x, y: torch.copysign(x, y),
    ],
)
def test_write_to_a_result_that_the_gradient_reads(function):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = torch.tensor([2.0, 3.0], requires_grad=True)
    result = function(x, y)
    with torch.no_grad():
        result.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()


def test_power_to_a_number_does_not_read_its_result():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    result = x**2
    with torch.no_grad():
        result.mul_(2)
    result.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_set_on_a_leaf_that_requires_grad():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        x.set_(torch.zeros(3))
    with torch.no_grad():
        x.set_(torch.zeros(3))
    assert x.shape == (3,)


def test_sparse_gradients():
    table = torch.ones(3, 2, requires_grad=True)
    at = torch.tensor([0])
    with pytest.raises(NotImplementedError, match="sparse gradients are not offered"):
        torch.embedding(table, at, sparse=True)
    assert torch.embedding(table.detach(), at, sparse=True).shape == (1, 2)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.unique(x, return_inverse=True, return_counts=True)[0],
        lambda x: torch.unique(x, dim=0),
        torch.unique_consecutive,
        lambda x: torch.bincount(torch.tensor([0, 1]), x[0]),
        lambda x: torch.histogram(x, 4).hist,
        lambda x: torch.linalg.ldl_factor(x + x.mT).LD,
        lambda x: torch.geqrf(x)[0],
    ],
)
def test_derivatives_that_nobody_has_written(function):
    """Results need a gradient, and backward says that there is none: it does not leave it out."""
    x = torch.tensor([[1.0, 2.0], [2.0, 5.0]], requires_grad=True)
    out = function(x)
    assert out.requires_grad
    with pytest.raises(NotImplementedError, match="the derivative for '.*' is not implemented"):
        out.sum().backward()
