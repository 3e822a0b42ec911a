"""torch.fx: graphs, their code, symbolic tracing, interpreters, rewriting."""

import copy
import math
import operator
import pickle

import pytest
import rushlight as torch
from rushlight import fx, nn
from rushlight.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.scale = nn.Parameter(torch.full((2,), 2.0))

    def forward(self, x, y=3):
        z = self.linear(x) + self.scale * y
        return z, x.relu().sum(dim=-1, keepdim=True), torch.cat([x, x], 0)[0:1, None]


CODE = """


def forward(self, x, y = 3):
    linear = self.linear(x)
    scale = self.scale
    mul = scale * y;  scale = y = None
    add = linear + mul;  linear = mul = None
    relu = x.relu()
    sum_1 = relu.sum(dim = -1, keepdim = True);  relu = None
    cat = torch.cat([x, x], 0);  x = None
    getitem = cat[(slice(0, 1, None), None)];  cat = None
    return (add, sum_1, getitem)
    """


def test_symbolic_trace():
    net, x = Net(), torch.randn(3, 2)
    gm = fx.symbolic_trace(net)
    assert gm.code == CODE
    for made, wanted in zip(gm(x), net(x)):
        assert torch.equal(made, wanted)
    assert type(gm).__name__ == "Net"
    assert list(gm.state_dict()) == list(net.state_dict()) or set(gm.state_dict()) == set(
        net.state_dict()
    )
    kinds = [node.op for node in gm.graph.nodes]
    assert kinds[:4] == ["placeholder", "placeholder", "call_module", "get_attr"]
    gm.graph.lint()


def test_trace_of_a_function():
    def f(a, b):
        c, d = torch.split(a, 2)
        return 1 - (c * b).exp() // 2, -d, abs(d), d.shape

    gm = fx.symbolic_trace(f)
    a, b = torch.randn(4), torch.randn(2)
    assert torch.equal(gm(a, b)[0], f(a, b)[0]) and gm(a, b)[3] == (2,)
    assert any(node.target is getattr for node in gm.graph.nodes)


def test_math_functions_are_wrapped():
    gm = fx.symbolic_trace(lambda x: math.sqrt(x) + 1)
    assert gm(4.0) == 3.0


def test_concrete_arguments():
    def f(x, flip):
        return -x if flip else x

    gm = fx.symbolic_trace(f, concrete_args={"flip": True})
    assert gm(torch.ones(1), True).item() == -1
    with pytest.raises(AssertionError, match="flip has been specialized to have value True"):
        gm(torch.ones(1), False)
    gm.graph.eliminate_dead_code()
    assert gm.graph.find_nodes(op="call_function", target=torch._assert)
    absent = fx.symbolic_trace(lambda x, y=None: x if y is None else x + y, {"y": None})
    assert absent(torch.ones(1)).item() == 1
    with pytest.raises(AssertionError, match="specialized to have value None"):
        absent(torch.ones(1), torch.ones(1))


def test_variadic_arguments():
    def f(x, *rest, scale=1, **options):
        return x * scale + rest[0] + options["bias"]

    gm = fx.symbolic_trace(f)
    assert [node.target for node in gm.graph.find_nodes(op="placeholder")] == [
        "x", "scale", "*rest", "**options",
    ]  # fmt: skip
    assert gm(torch.ones(1), 2, torch.ones(1), bias=3).item() == 6


def test_functions_of_nn_functional_are_one_node():
    gm = fx.symbolic_trace(lambda x: F.mse_loss(F.softmax(F.relu(x), dim=-1), x))
    targets = [node.target for node in gm.graph.nodes if node.op == "call_function"]
    assert targets == [F.relu, F.softmax, F.mse_loss]
    assert "relu = torch.nn.functional.relu(x, inplace = False)" in gm.code
    x = torch.randn(2, 3)
    assert torch.equal(gm(x), F.mse_loss(x.relu().softmax(-1), x))


def test_names_avoid_builtins():
    gm = fx.symbolic_trace(lambda input, id: (input**2, id.shape))
    assert [node.name for node in gm.graph.nodes] == [
        "input_1",
        "id_1",
        "pow_1",
        "getattr_1",
        "output",
    ]
    shown = str(gm.graph).splitlines()
    assert "call_function[target=builtins.getattr](args = (%id_1, shape), kwargs = {})" in shown[4]


def test_control_flow_is_refused():
    def f(x):
        if x.sum() > 0:
            return x

    with pytest.raises(fx.TraceError, match="control flow"):
        fx.symbolic_trace(f)
    with pytest.raises(fx.TraceError, match="iterated"):
        fx.symbolic_trace(lambda x: [i for i in x])
    with pytest.raises(RuntimeError, match="len"):
        fx.symbolic_trace(lambda x: len(x))


def test_tracing_leaves_modules_as_they_were():
    call = nn.Module.__call__
    with pytest.raises(fx.TraceError):
        fx.symbolic_trace(lambda x: bool(x))
    assert nn.Module.__call__ is call
    assert nn.Linear(1, 1)(torch.ones(1)).shape == (1,)


def test_tensors_of_the_program_become_constants():
    constant = torch.arange(2.0)
    gm = fx.symbolic_trace(lambda x: x + constant)
    assert gm(torch.ones(2)).tolist() == [1, 2]
    assert torch.equal(gm._tensor_constant0, constant)


def build():
    graph = fx.Graph()
    x = graph.placeholder("x")
    a = graph.call_function(torch.sin, (x,))
    b = graph.call_method("add", (a, 1))
    dead = graph.call_function(operator.mul, (b, 2))
    graph.output(b)
    return graph, x, a, b, dead


def test_graph_by_hand():
    graph, x, a, b, dead = build()
    assert [n.name for n in graph.nodes] == ["x", "sin", "add", "mul", "output"]
    assert str(graph).splitlines()[2] == (
        "    %sin : [num_users=1] = call_function[target=torch.sin](args = (%x,), kwargs = {})"
    )
    assert graph.eliminate_dead_code() and len(graph.nodes) == 4
    gm = fx.GraphModule({}, graph)
    assert torch.equal(gm(torch.ones(2)), torch.ones(2).sin() + 1)
    assert list(a.users) == [b] and b.all_input_nodes == [a]


def test_editing():
    graph, x, a, b, dead = build()
    with graph.inserting_after(a):
        c = graph.call_function(torch.cos, (a,))
    a.replace_all_uses_with(c, delete_user_cb=lambda user: user is not c)
    assert b.args == (c, 1)
    b.update_arg(1, 5)
    b.kwargs = {"alpha": 2}
    graph.erase_node(dead)
    gm = fx.GraphModule({}, graph)
    assert torch.equal(gm(torch.ones(1)), torch.ones(1).sin().cos().add(5, alpha=2))
    with graph.inserting_before(b):
        graph.call_function(print, (c,))
    assert [n.name for n in reversed(graph.nodes)][1:3] == ["add", "print_1"]
    b.prepend(x)
    with pytest.raises(RuntimeError, match="before it has been defined"):
        graph.lint()


def test_erasing_what_is_used():
    graph, x, a, b, dead = build()
    with pytest.raises(RuntimeError, match="still had 1 users"):
        graph.erase_node(a)


def test_arguments_cannot_be_changed_in_place():
    graph = fx.Graph()
    node = graph.call_function(torch.stack, ([graph.placeholder("x")],))
    with pytest.raises(TypeError, match="mutation"):
        node.args[0].append(3)


def test_writes_are_not_dead():
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.call_function(torch.ops.aten.add_.Tensor, (x, 1))
    graph.call_method("mul_", (x, 3))
    graph.output(None)
    graph.eliminate_dead_code()
    value = torch.ones(1)
    fx.GraphModule({}, graph)(value)
    assert value.item() == 6


def test_draws_are_not_dead():
    graph = fx.Graph()
    graph.call_function(torch.ops.aten.randperm.default, (5,))
    graph.call_function(torch.rand, (5,))
    graph.output(graph.call_function(torch.rand, (2,)))
    assert not graph.eliminate_dead_code()


def test_names_are_unique_and_legal():
    graph = fx.Graph()
    names = [graph.placeholder(n).name for n in ("x", "x", "class", "self", "1a", "sum", "x_1")]
    assert len(set(names)) == 7 and all(name.isidentifier() for name in names)
    assert "class" not in names and "sum" not in names


def test_constants_in_code():
    graph = fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(torch.full_like, (x, float("inf")), {"dtype": torch.float64})
    z = graph.call_function(torch.ops.aten.add.Tensor, (y, 1), {"alpha": 2})
    graph.output((z, {"k": slice(None, 2)}, "text", None, torch.device("cpu")))
    gm = fx.GraphModule({}, graph)
    z, more, text, nothing, device = gm(torch.ones(1))
    assert z.item() == math.inf and z.dtype is torch.float64
    assert more == {"k": slice(None, 2)} and text == "text" and nothing is None
    assert device == torch.device("cpu")


def test_copies():
    gm, x = fx.symbolic_trace(Net()), torch.randn(1, 2)
    for other in (copy.deepcopy(gm), copy.copy(gm), pickle.loads(pickle.dumps(gm))):
        assert other.code == gm.code and torch.equal(other(x)[0], gm(x)[0])
    deep = copy.deepcopy(gm)
    deep.linear.weight.data.zero_()
    assert gm.linear.weight.abs().sum() > 0


def test_interpreter_and_transformer():
    class Count(fx.Interpreter):
        calls = 0

        def call_function(self, target, args, kwargs):
            self.calls += 1
            return super().call_function(target, args, kwargs)

    class Swap(fx.Transformer):
        def call_function(self, target, args, kwargs):
            return super().call_function(torch.cos if target is torch.sin else target, args, kwargs)

    gm = fx.symbolic_trace(lambda x: torch.sin(x) + 1)
    counter = Count(gm)
    assert torch.equal(counter.run(torch.ones(2)), torch.ones(2).sin() + 1) and counter.calls == 2
    assert torch.equal(Swap(gm).transform()(torch.ones(2)), torch.ones(2).cos() + 1)
    with pytest.raises(RuntimeError, match="Expected positional argument"):
        fx.Interpreter(gm).run()


def test_replace_pattern():
    gm = fx.symbolic_trace(lambda x, y: torch.sin(x) * y + torch.sin(y) * x)
    places = fx.replace_pattern(gm, lambda a, b: torch.sin(a) * b, lambda a, b: torch.cos(b) - a)
    x, y = torch.randn(3), torch.randn(3)
    assert len(places) == 2
    assert torch.equal(gm(x, y), (y.cos() - x) + (x.cos() - y))


def test_print_tabular(capsys):
    build()[0].print_tabular()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["opcode", "name", "target", "args", "kwargs"] and len(lines) == 7


def test_submodules():
    gm = fx.symbolic_trace(Net())
    assert gm.add_submodule("a.b", nn.ReLU())
    assert isinstance(gm.get_submodule("a.b"), nn.ReLU)
    gm.delete_all_unused_submodules()
    assert not hasattr(gm, "a") and hasattr(gm, "linear")


def test_leaf_modules():
    class Inner(nn.Module):
        def forward(self, x):
            return x + 1

    outer = nn.Sequential(Inner(), nn.ReLU())
    kinds = [node.op for node in fx.symbolic_trace(outer).graph.nodes]
    assert kinds == ["placeholder", "call_function", "call_module", "output"]


def test_missing_attribute():
    graph = fx.Graph()
    graph.output(graph.get_attr("weight"))
    with pytest.raises(RuntimeError, match="not provided"):
        fx.GraphModule({}, graph)
    assert fx.GraphModule({"weight": torch.ones(1)}, graph)().item() == 1


def test_attributes_of_modules_named_by_numbers():
    graph = fx.Graph()
    graph.output(graph.get_attr("0.weight"))
    gm = fx.GraphModule(nn.Sequential(nn.Linear(2, 1)), graph)
    assert gm().shape == (1, 2) and 'getattr(self, "0").weight' in gm.code


def test_shape_propagation():
    from rushlight.fx.passes.shape_prop import ShapeProp

    gm = fx.symbolic_trace(lambda x: (x.sum(0), x.chunk(2)))
    ShapeProp(gm).propagate(torch.ones(4, 3))
    metas = {node.name: node.meta.get("tensor_meta") for node in gm.graph.nodes}
    assert metas["sum_1"].shape == (3,) and metas["sum_1"].dtype is torch.float32
    assert [meta.shape for meta in metas["chunk"]] == [(2, 3), (2, 3)]


def test_stack_traces_of_nodes():
    class T(fx.Tracer):
        record_stack_traces = True

    nodes = {node.name: node for node in T().trace(Net()).nodes}
    assert nodes["x"].stack_trace is None
    assert nodes["mul"].stack_trace.endswith("z = self.linear(x) + self.scale * y")
    assert "_symbolic_trace" not in nodes["mul"].stack_trace
