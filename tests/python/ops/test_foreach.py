"""Operators over lists of tensors."""

import pytest
import rushlight as torch


def lists():
    return [torch.tensor([1.0, 2.0]), torch.tensor([[3.0]])]


def values(tensors):
    return [t.flatten().tolist() for t in tensors]


def test_operands_of_each_kind():
    x = lists()
    assert values(torch._foreach_add(x, 1)) == [[2.0, 3.0], [4.0]]
    assert values(torch._foreach_add(x, x, alpha=2)) == [[3.0, 6.0], [9.0]]
    assert values(torch._foreach_mul(x, [10.0, 100.0])) == [[10.0, 20.0], [300.0]]
    assert values(torch._foreach_div(x, torch.tensor(2.0))) == [[0.5, 1.0], [1.5]]
    assert values(torch._foreach_maximum(x, 2.0)) == [[2.0, 2.0], [3.0]]
    assert values(torch._foreach_pow(2.0, x)) == [[2.0, 4.0], [8.0]]


def test_in_place():
    x = lists()
    kept = list(x)
    assert torch._foreach_mul_(x, 2) is None
    torch._foreach_neg_(x)
    torch._foreach_addcmul_(x, lists(), lists(), 1.0)
    torch._foreach_clamp_min_(x, 0.0)
    assert values(kept) == [[0.0, 0.0], [3.0]]
    torch._foreach_lerp_(x, lists(), 0.5)
    assert values(kept) == [[0.5, 1.0], [3.0]]
    torch._foreach_copy_(x, lists())
    assert values(kept) == values(lists())
    torch._foreach_zero_(x)
    assert values(kept) == [[0.0, 0.0], [0.0]]


def test_norm_and_unary():
    x = [torch.tensor([3.0, 4.0]), torch.tensor([2.0])]
    assert [n.item() for n in torch._foreach_norm(x)] == [5.0, 2.0]
    assert [n.item() for n in torch._foreach_norm(x, 1)] == [7.0, 2.0]
    assert values(torch._foreach_sqrt([torch.tensor([4.0])])) == [[2.0]]


def test_mistakes():
    with pytest.raises(RuntimeError, match="same number of tensors"):
        torch._foreach_add(lists(), [torch.ones(1)])
    with pytest.raises(RuntimeError, match="at least one tensor"):
        torch._foreach_exp([])
    with pytest.raises(TypeError, match="tuple of Tensors"):
        torch._foreach_exp(torch.ones(2))
