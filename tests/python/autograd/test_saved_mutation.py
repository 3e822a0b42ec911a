"""Tensors that backward needs may be written in a block: they are copied first."""

import pytest
import rushlight as torch
from rushlight.autograd.graph import allow_mutation_on_saved_tensors, disable_saved_tensors_hooks


def test_writes_do_not_reach_backward():
    with allow_mutation_on_saved_tensors() as context:
        a = torch.full((2, 3), 3.0, requires_grad=True)
        b = a.clone()
        out = (b**2).sum()
        b.sin_()
        assert len(context.cloned) == 1
        out.backward()
    assert torch.equal(a.grad, torch.full((2, 3), 6.0))


@pytest.mark.parametrize("write", [
    lambda b: b[0].fill_(9),
    lambda b: b.view(-1).mul_(5),
    lambda b: torch.sin(torch.ones(2, 3), out=b.detach()),
    lambda b: b.detach().copy_(torch.zeros(2, 3)),
    lambda b: b.data.zero_(),
    lambda b: b.__setitem__((0, 1), 7.0),
])  # fmt: skip
def test_every_kind_of_write(write):
    with allow_mutation_on_saved_tensors():
        a = torch.full((2, 3), 3.0, requires_grad=True)
        b = a * 1
        out = b.exp() * b
        expected = torch.autograd.grad(out.sum(), a, retain_graph=True)[0]
        with torch.no_grad():
            write(b)
        assert torch.equal(torch.autograd.grad(out.sum(), a)[0], expected)


def test_an_optimizer_may_step_before_backward():
    weight = torch.nn.Parameter(torch.tensor([2.0]))
    x = torch.tensor([3.0], requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=1.0)
    with allow_mutation_on_saved_tensors():
        out = x * weight
        weight.grad = torch.ones(1)
        optimizer.step()
        out.backward()
    assert x.grad.tolist() == [2] and weight.item() == 1


def test_what_is_not_written_is_not_copied():
    with allow_mutation_on_saved_tensors() as context:
        a = torch.ones(3, requires_grad=True)
        out = a.exp().sum()
        torch.zeros(3).add_(1)
        assert len(context.cloned) == 0 and len(context.original) > 0
        context.clear()
        assert len(context.original) == 0
    del out


def test_mistakes():
    with allow_mutation_on_saved_tensors():
        with pytest.raises(RuntimeError, match="contexts cannot be nested"):
            with allow_mutation_on_saved_tensors():
                pass
        out = (torch.ones(3, requires_grad=True) ** 2).sum()
    with pytest.raises(AssertionError, match="outside of the 'allow_mutation_on_saved_tensors'"):
        out.backward()
    with disable_saved_tensors_hooks("not here"):
        with pytest.raises(RuntimeError, match="not here"), allow_mutation_on_saved_tensors():
            pass
