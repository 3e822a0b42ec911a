"""Gradients where a formula could lose digits, or where there is nothing to pass on."""

import pytest
import rushlight as torch


def grads(function, *inputs):
    inputs = [x.clone().requires_grad_() for x in inputs]
    return torch.autograd.grad(function(*inputs).sum(), inputs)


def test_nextafter_passes_the_gradient_to_self():
    first, second = grads(torch.nextafter, torch.ones(2), torch.zeros(2))
    assert first.tolist() == [1.0, 1.0]
    assert second.tolist() == [0.0, 0.0]
    # Equal arguments give the second one.
    first, second = grads(torch.nextafter, torch.ones(1), torch.ones(1))
    assert first.tolist() == second.tolist() == [0.0]


@pytest.mark.parametrize(
    "draw",
    [
        torch.bernoulli,
        lambda x: torch.normal(x, 1.0),
        lambda x: torch.normal(0.0, x),
        lambda x: torch.poisson(x),
        lambda x: x.clone().uniform_(),
        lambda x: x.clone().fill_(3),
    ],
)
def test_drawn_and_filled_values_have_zero_gradients(draw):
    (grad,) = grads(draw, torch.full((3,), 0.5))
    assert grad.tolist() == [0.0, 0.0, 0.0]


def test_skipped_part_of_cat_has_an_empty_gradient():
    empty, whole = grads(lambda a, b: torch.cat([a, b]), torch.zeros(0), torch.ones(1, 3))
    assert empty.shape == (0,)
    assert whole.tolist() == [[1.0, 1.0, 1.0]]


def test_logcumsumexp_at_extremes():
    x = torch.tensor([-1000.0, 0.0, 1000.0])
    (grad,) = grads(lambda x: torch.logcumsumexp(x, 0), x)
    assert grad.tolist() == pytest.approx([1.0, 1.0, 1.0])
    (grad,) = grads(lambda x: -torch.logcumsumexp(x, 0), torch.zeros(2))
    assert grad.tolist() == pytest.approx([-1.5, -0.5])


def test_counting_distance_has_a_gradient_of_zeros():
    a, b = grads(lambda a, b: torch.cdist(a, b, p=0), torch.ones(2, 3), torch.zeros(4, 3))
    assert torch.equal(a, torch.zeros(2, 3))
    assert torch.equal(b, torch.zeros(4, 3))


def test_index_fill_counts_a_repeated_position_once():
    x, value = torch.zeros(3), torch.tensor(2.0)
    weights = torch.tensor([1.0, 10.0, 100.0])
    index = torch.tensor([0, 0, 2])
    grad_x, grad_value = grads(lambda x, v: x.index_fill(0, index, v) * weights, x, value)
    assert grad_x.tolist() == [0.0, 10.0, 0.0]
    assert grad_value.item() == 101.0


def test_euclidean_norm_has_second_derivatives_at_zero():
    x = torch.zeros(2, requires_grad=True)
    weight = torch.ones((), requires_grad=True)
    norm = torch.linalg.vector_norm(x)
    (first,) = torch.autograd.grad(norm, x, weight, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), weight)
    assert second.item() == 0.0


def test_digamma_derivatives():
    x = torch.tensor([0.5, 1.0, -0.5], dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(torch.digamma(x).sum(), x, create_graph=True)
    assert first.tolist() == pytest.approx(
        [4.934802200544679, 1.6449340668482264, 8.93480220054468]
    )
    (second,) = torch.autograd.grad(first.sum(), x)
    assert second.tolist() == pytest.approx([-16.82879664, -2.40411380, -0.82879664])


def test_inverse_sine_gradient():
    x = torch.tensor([0.0, 0.6], dtype=torch.float64)
    assert grads(torch.asin, x)[0].tolist() == pytest.approx([1.0, 1.25])
    assert grads(torch.acos, x)[0].tolist() == pytest.approx([-1.0, -1.25])
    assert grads(torch.atanh, x)[0].tolist() == pytest.approx([1.0, 1.5625])


@pytest.mark.parametrize("p", [0.5, 1.5, 3.0])
def test_p_norm_has_no_gradient_at_zero(p):
    (grad,) = grads(lambda x: torch.linalg.vector_norm(x, p), torch.zeros(3))
    assert grad.tolist() == [0.0, 0.0, 0.0]
    x = torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda x: torch.linalg.vector_norm(x, p), (x.requires_grad_(),))
