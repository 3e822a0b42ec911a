"""Branches, loops and scans as functions."""

import pytest
import rushlight as torch
from rushlight._higher_order_ops import associative_scan, map, scan, while_loop
from rushlight.fx.experimental.proxy_tensor import make_fx


def test_cond_runs_one_branch():
    x = torch.ones(2, requires_grad=True)
    taken = torch.cond(torch.tensor(True), lambda x: x * 2, lambda x: 1 / 0, (x,))
    taken.sum().backward()
    assert taken.tolist() == x.grad.tolist() == [2, 2]
    assert torch.cond(False, lambda: 1, lambda: {"a": 2}) == {"a": 2}
    assert torch.compile(lambda x: torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,)))(x)[0] < 0.85
    with pytest.raises(RuntimeError, match="Expected pred to be bool or single-element tensor"):
        torch.cond(torch.tensor([True, False]), torch.sin, torch.cos, (x,))


def test_cond_chooses_by_element_in_vmap():
    def f(holds, x):
        return torch.cond(holds, lambda x: x * 2, lambda x: x * 3, (x,))

    result = torch.vmap(f)(torch.tensor([True, False]), torch.ones(2, 2))
    assert result.tolist() == [[2, 2], [3, 3]]


def test_while_loop():
    count, x = torch.while_loop(
        lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (torch.tensor(0), torch.ones(1))
    )
    assert count.item() == 3 and x.item() == 8
    with pytest.raises(RuntimeError, match="as many values as carried_inputs has, 1"):
        while_loop(lambda i: i < 3, lambda i: (i, i), (torch.tensor(0),))
    with pytest.raises(RuntimeError, match="cond_fn must return a bool or a single-element"):
        while_loop(lambda i: i < 3, lambda i: (i,), (torch.zeros(2),))


def test_scan():
    carry, ys = scan(
        lambda c, x: (c + x, c + x),
        torch.zeros(2),
        torch.arange(6.0).view(2, 3),
        dim=1,
        reverse=True,
    )
    assert carry.tolist() == [3, 12] and ys.tolist() == [[3, 3, 2], [12, 9, 5]]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 13])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan(size, reverse):
    a, b = torch.rand(2, size).double(), torch.rand(2, size).double()

    def combine(left, right):
        return left[0] * right[0], left[1] * right[0] + right[1]

    got = associative_scan(combine, (a, b), 1, reverse, combine_mode="generic")
    order = list(reversed(range(size))) if reverse else list(range(size))
    state = (torch.ones(2).double(), torch.zeros(2).double())
    for i in order:
        state = combine(state, (a[:, i], b[:, i]))
        assert torch.allclose(got[0][:, i], state[0]) and torch.allclose(got[1][:, i], state[1])
    with pytest.raises(ValueError, match="need to be on CUDA"):
        associative_scan(combine, (a, b), 0)


def test_map():
    assert map(lambda x, y: x + y, torch.arange(3.0), torch.ones(2)).tolist() == [
        [1, 1],
        [2, 2],
        [3, 3],
    ]


def branch(x):
    return torch.cond(x.sum() > 0, lambda v: v + 1, lambda v: v - 1, (x,))


def test_a_branch_in_a_graph():
    graph = make_fx(branch)(torch.ones(2))
    assert "torch.ops.higher_order.cond(gt, true_graph_0, false_graph_0, (x_1,))" in graph.code
    assert "aten.add.Tensor" in graph.true_graph_0.code
    assert "aten.sub.Tensor" in graph.false_graph_0.code
    for x in (torch.ones(2), -torch.ones(2)):
        assert torch.equal(graph(x), branch(x))


def test_a_branch_within_a_branch():
    def nested(x):
        return torch.cond(x.sum() > 0, branch, lambda v: (v * 2).sin(), (x,))

    graph = make_fx(nested)(torch.ones(2))
    for x in (torch.ones(2), -torch.ones(2)):
        assert torch.equal(graph(x), nested(x))


def test_branches_in_a_graph_must_agree():
    def differs(x):
        return torch.cond(x.sum() > 0, lambda v: v[:1], lambda v: v * 1, (x,))

    with pytest.raises(RuntimeError, match="the branches must give the same structure of tensors"):
        make_fx(differs)(torch.ones(2))
    with pytest.raises(RuntimeError, match="must give tensors, or structures of tensors"):
        make_fx(lambda x: torch.cond(x.sum() > 0, lambda v: 1, lambda v: 2, (x,)))(torch.ones(2))
