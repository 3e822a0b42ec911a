"""Nodes are called as PyTorch calls them: printed tensors show their names."""

import pathlib

import pytest
import rushlight as torch
import rushlight.nn as nn
import rushlight.nn.functional as F

CASES = [
    tuple(line.split(" | "))
    for line in pathlib.Path(__file__).with_name("node_names.txt").read_text().splitlines()
]


def names() -> dict:
    """What the expressions use."""

    def leaf(*shape: int) -> torch.Tensor:
        return torch.rand(shape, requires_grad=True)

    return {
        "torch": torch,
        "nn": nn,
        "F": F,
        "a": leaf(3, 4),
        "b": leaf(3, 4),
        "c": leaf(2, 3, 4),
        "c4": leaf(1, 3, 2, 2),
        "v": leaf(4),
        "w": leaf(5, 4),
        "bias": leaf(5),
        "sq": leaf(4, 4),
        "s": leaf(),
        "idx": torch.tensor([0, 2, 1]),
        "p": torch.rand(3, 4).softmax(1),
        "i3": torch.zeros(2, 4).long(),
        "i4": torch.zeros(1, 2, 2).long(),
    }


@pytest.mark.parametrize("expression, name", CASES)
def test_name(expression, name):
    torch.manual_seed(0)
    assert eval(expression, names()).grad_fn.name() == name


def test_a_composition_that_computes_nothing_renames_nothing():
    x = torch.rand(2, 3, requires_grad=True).exp()
    y = F.dropout(x, 0.5, training=False)
    assert y.grad_fn.name() == x.grad_fn.name() == "ExpBackward0"
    assert F.pad(x, (0, 0), mode="constant").sum(()).grad_fn is not None
    assert x.grad_fn.name() == "ExpBackward0"


def test_printed():
    loss = F.cross_entropy(torch.zeros(2, 4, requires_grad=True), torch.tensor([1, 2]))
    assert repr(loss) == "tensor(1.3863, grad_fn=<NllLossBackward0>)"
    out = nn.Linear(2, 2)(torch.zeros(1, 2))
    assert repr(out).endswith("grad_fn=<AddmmBackward0>)")


def shown(node: object, depth: int) -> str:
    """The names of a node and of those it leads to."""
    if node is None or depth == 0:
        return "-"
    inner = ", ".join(shown(following, depth - 1) for following, _ in node.next_functions)
    return f"{node.name()}({inner})"


def test_compositions_lead_to_where_their_arguments_came_from():
    x = torch.rand(4, 3, requires_grad=True).exp()
    y = torch.rand(4, 3)
    assert shown(F.mse_loss(x, y).grad_fn, 2) == "MseLossBackward0(ExpBackward0(-), -)"
    both = F.mse_loss(x, x * 2).grad_fn
    assert shown(both, 2) == "MseLossBackward0(ExpBackward0(-), MulBackward0(-, -))"
    huber = F.huber_loss(x, y, reduction="sum").grad_fn
    assert shown(huber, 2) == "HuberLossBackward0(ExpBackward0(-), -)"


def test_the_bias_of_a_linear_layer_comes_first():
    layer = nn.Linear(3, 2)
    node = layer(torch.rand(4, 3)).grad_fn
    assert node.next_functions[0][0].variable is layer.bias


def test_nodes_are_functions_of_gradients():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * torch.tensor([3.0, 4.0], requires_grad=True)
    left, right = y.grad_fn(torch.ones(2))
    assert left.tolist() == [3, 4] and right.tolist() == [1, 2]
    assert (-x).grad_fn(torch.ones(2)).tolist() == [-1, -1]
    with pytest.raises(TypeError, match="NegBackward0.* takes 1 gradients, got 2"):
        (-x).grad_fn(torch.ones(2), torch.ones(2))
    with pytest.raises(TypeError, match="argument 0 must be Tensor or None, not int"):
        (-x).grad_fn(3)
