"""torch._dynamo.export: the graph of one call, called as the function was."""

import pytest
import rushlight as torch
from rushlight import fx, nn
from rushlight._dynamo.exc import Unsupported


def targets(gm):
    return [str(node.target) for node in gm.graph.nodes if node.op == "call_function"]


def test_function():
    def f(x, scale=2, *, y):
        return {"sum": x * scale + y, "parts": [x.sin(), "text"]}

    x, y = torch.randn(3), torch.randn(3)
    gm, guards = torch._dynamo.export(f)(x, 3, y=y)
    assert isinstance(gm, fx.GraphModule) and guards == set()
    assert [node.name for node in gm.graph.find_nodes(op="placeholder")] == ["x", "y"]
    assert targets(gm) == ["aten.mul.Tensor", "aten.add.Tensor", "aten.sin.default"]
    a, b = torch.randn(3), torch.randn(3)
    found, expected = gm(a, 3, y=b), f(a, 3, y=b)
    assert torch.equal(found["sum"], expected["sum"])
    assert torch.equal(found["parts"][0], expected["parts"][0]) and found["parts"][1] == "text"
    flat = gm.forward(a, b)
    assert torch.equal(flat[0], expected["sum"])
    gm.graph.lint()


def test_module_state_is_read_by_name():
    module = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    x = torch.randn(5, 3)
    gm = torch._dynamo.export(module.eval(), x).graph_module
    attributes = {node.target for node in gm.graph.find_nodes(op="get_attr")}
    assert {"0.weight", "0.bias", "1.running_mean"} <= attributes
    assert set(gm.state_dict()) <= set(module.state_dict())
    assert torch.equal(gm(x), module(x))
    with torch.no_grad():
        module[0].bias += 1
    assert torch.equal(gm(x), module(x))
    gm(x).sum().backward()
    assert module[0].weight.grad is not None


def test_arguments_views_and_writes():
    constant = torch.arange(4.0)

    def f(x, y):
        y[1:].add_(x.t()[0, :3])
        return x, y[:2], constant + y, x.t()

    def make():
        return torch.arange(8.0).reshape(4, 2), torch.ones(4)

    gm = torch._dynamo.export(f)(*make()).graph_module
    expected, given = make(), make()
    wanted, found = f(*expected), gm(*given)
    assert all(torch.equal(a, b) for a, b in zip(wanted, found))
    assert [a.stride() for a in wanted] == [a.stride() for a in found]
    assert torch.equal(expected[1], given[1])
    assert found[0].data_ptr() == given[0].data_ptr() == found[3].data_ptr()


def test_arguments_given_back_alone():
    gm = torch._dynamo.export(lambda x, y: (y, x))(torch.zeros(1), torch.ones(1)).graph_module
    assert [t.item() for t in gm(torch.tensor([3.0]), torch.tensor([4.0]))] == [4, 3]


def test_compiled_functions_are_looked_through():
    gm = torch._dynamo.export(torch.compile(nn.ReLU()), torch.ones(2)).graph_module
    assert targets(gm) == ["aten.relu.default"]


def test_another_structure():
    gm = torch._dynamo.export(lambda x: x[0] + 1)([torch.ones(1)]).graph_module
    assert gm([torch.ones(1)]).item() == 2
    with pytest.raises(ValueError, match="exported for arguments"):
        gm(torch.ones(1))


@pytest.mark.parametrize(
    "function, text",
    [
        (lambda x: x if x.sum() > 0 else -x, "bool"),
        (lambda x: x * x.sum().item(), "more than one graph"),
        (lambda x: x[x > 0] + 1, "more than one graph"),
    ],
)
def test_calls_that_are_no_graph(function, text):
    with pytest.raises(Unsupported, match=text):
        torch._dynamo.export(function)(torch.ones(2))


def test_backward_is_no_part_of_a_graph():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(Unsupported, match="backward"):
        torch._dynamo.export(lambda x: x.sin().sum().backward())(x)
