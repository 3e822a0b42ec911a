"""Checkpointed functions give the same gradients, from a second run."""

import pytest
import rushlight as torch
from rushlight import nn
from rushlight.utils.checkpoint import CheckpointError, checkpoint, checkpoint_sequential

FORMS = pytest.mark.parametrize("reentrant", [True, False])


@FORMS
def test_gradients_are_the_same(reentrant):
    torch.manual_seed(0)
    layer = nn.Linear(3, 3)
    x = torch.randn(2, 3, requires_grad=True)
    layer(x).tanh().sum().backward()
    expected = x.grad.clone(), layer.weight.grad.clone()
    x.grad = layer.weight.grad = None
    output = checkpoint(lambda a: layer(a).tanh(), x, use_reentrant=reentrant)
    output.sum().backward()
    assert torch.equal(x.grad, expected[0])
    assert torch.equal(layer.weight.grad, expected[1])


@FORMS
def test_the_function_runs_twice(reentrant):
    runs = []

    def function(a):
        runs.append(torch.is_grad_enabled())
        return (a * 2).exp()

    x = torch.ones(2, requires_grad=True)
    output = checkpoint(function, x, use_reentrant=reentrant)
    assert len(runs) == 1
    output.sum().backward()
    assert len(runs) == 2


@FORMS
def test_random_numbers_are_the_same_in_both_runs(reentrant):
    masks = []

    def function(a):
        noise = torch.rand(3)
        masks.append(noise.tolist())
        return (a * noise).exp()

    checkpoint(
        function, torch.ones(3, requires_grad=True), use_reentrant=reentrant
    ).sum().backward()
    assert masks[0] == masks[1]


@FORMS
def test_sequential(reentrant):
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 2), nn.Tanh())
    x = torch.randn(3, 2, requires_grad=True)
    layers(x).sum().backward()
    expected = x.grad.clone()
    x.grad = None
    checkpoint_sequential(layers, 2, x, use_reentrant=reentrant).sum().backward()
    assert torch.equal(x.grad, expected)


def test_keyword_arguments():
    x = torch.ones(1, requires_grad=True)
    output = checkpoint(lambda a, k: (a * k).exp(), x, k=2.0, use_reentrant=False)
    output.sum().backward()
    assert x.grad.item() == pytest.approx(14.778112)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: k"):
        checkpoint(lambda a, k: a, x, k=2.0, use_reentrant=True)


def test_a_second_run_that_differs_is_refused():
    runs = []

    def function(a):
        runs.append(1)
        return (a * 2).exp() if len(runs) == 1 else (a[:1] * 2).exp()

    output = checkpoint(function, torch.ones(2, requires_grad=True), use_reentrant=False)
    with pytest.raises(CheckpointError, match="different metadata than during the forward"):
        output.sum().backward()


def test_the_form_should_be_chosen():
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed explicitly"):
        checkpoint(lambda a: a * 2, torch.ones(1, requires_grad=True))
