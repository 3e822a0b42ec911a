"""Exported programs as modules again: the calls, their graphs and their state."""

import io

import pytest
import rushlight as torch
from rushlight import nn
from rushlight.export import (
    Dim,
    FlatArgsAdapter,
    ModuleCallEntry,
    UnflattenedModule,
    export,
    load,
    save,
    unflatten,
)
from rushlight.export.unflatten import InterpreterModule, InterpreterModuleDispatcher
from rushlight.utils import _pytree as pytree


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.register_buffer("b", torch.ones(2))

    def forward(self, x, k=1):
        return {"r": self.layer(x) * k + self.b, "s": x}


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Inner()
        self.idle = nn.Identity()
        self.seq = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
        self.p = nn.Parameter(torch.ones(2))

    def forward(self, x):
        y = self.idle(self.a(x, k=2)["r"]) + self.p
        return {"o": self.seq(y), "again": self.a(y)["r"]}


ROOT = """graph():
    %x : [num_users=1] = placeholder[target=x]
    %p : [num_users=1] = get_attr[target=p]
    %a : [num_users=1] = call_module[target=a](args = (%x,), kwargs = {})
    %add_1 : [num_users=2] = call_function[target=torch.ops.aten.add.Tensor](args = (%a, %p), kwargs = {})
    %seq : [num_users=1] = call_module[target=seq](args = (%add_1,), kwargs = {})
    %a_1 : [num_users=1] = call_module[target=a@1](args = (%add_1,), kwargs = {})
    return (seq, a_1)"""  # noqa: E501

INNER = """graph():
    %x : [num_users=1] = placeholder[target=x]
    %b : [num_users=1] = get_attr[target=b]
    %layer : [num_users=1] = call_module[target=layer](args = (%x,), kwargs = {})
    %mul : [num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = (%layer, 2), kwargs = {})
    %add : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%mul, %b), kwargs = {})
    return add"""  # noqa: E501


def test_the_modules_and_their_graphs(capsys):
    model, x = Outer(), torch.rand(3, 2)
    program = export(model, (torch.rand(3, 2),))
    made = unflatten(program)
    assert type(made) is UnflattenedModule and str(made.graph) == ROOT
    assert type(made.a) is InterpreterModule and str(made.a.graph) == INNER
    assert [type(child).__name__ for child in made.children()] == [
        "InterpreterModule", "Module", "InterpreterModule", "InterpreterModule",
    ]  # fmt: skip
    for name, value in model(x).items():
        assert torch.equal(made(x)[name], value)
    assert made.a.layer.weight is not model.a.layer.weight  # the state is a copy
    assert torch.equal(made.a.layer.weight, model.a.layer.weight)
    assert getattr(made, "a@1").layer.weight is made.a.layer.weight
    assert made.type_name().endswith("test_unflatten.Outer") and made.a.type_name().endswith(
        "Inner"
    )
    assert made.seq.arg_names == ["add_1"]
    text = made.print_readable()
    assert capsys.readouterr().out.strip() == text.strip()
    assert text.startswith(
        'class UnflattenedModule(torch.nn.Module):\n    def forward(self, x: "f32'
    )
    assert "class InterpreterModule" in made.a.print_readable(print_output=False)
    assert set(model.state_dict()) <= set(made.state_dict())


def test_which_modules_were_called():
    program = export(Outer(), (torch.rand(3, 2),))
    graph = program.module_call_graph
    assert [entry.fqn for entry in graph] == [
        "", "a", "a.layer", "idle", "seq", "seq.0", "seq.1",
    ]  # fmt: skip
    assert graph[1] == ModuleCallEntry("a", None)
    assert graph[0].signature.forward_arg_names == ["x"]
    assert graph[0].signature.in_spec == program.call_spec.in_spec
    stacks = {node.name: node.meta.get("nn_module_stack") for node in program.graph.nodes}
    assert [path for path, _ in stacks["linear"].values()] == ["", "a", "a.layer"]
    assert list(stacks["linear_2"]) == ["L__self__", "L__self__a@1", "L__self__a.layer@1"]
    assert stacks["linear_1"]["L__self__seq.0"] == ("seq.0", "torch.nn.modules.linear.Linear")


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.tied = nn.Linear(2, 2, bias=False)
        self.tied.weight = self.layer.weight
        self.register_buffer("count", torch.zeros(1))
        self.layers = nn.ModuleList([nn.ReLU(), nn.Tanh()])

    def forward(self, x):
        self.count.add_(1)
        x = self.layer(self.layer(x))
        for module in self.layers:
            x = module(x)
        return self.tied(x) + self.count, self.layer.bias


def test_equal_calls_are_one_module():
    model = Twice()
    program = export(model, (torch.rand(2, 2),))
    made = unflatten(program)
    targets = [node.target for node in made.graph.nodes if node.op == "call_module"]
    assert targets == ["layer", "layer", "layers.0", "layers.1", "tied"]
    assert made.tied.weight is made.layer.weight
    x = torch.rand(2, 2)
    for number in (1, 2):
        assert torch.equal(made(x)[0], model(x)[0]) and made.count.item() == number
    assert torch.equal(made(x)[1], model.layer.bias)


def test_open_sizes_and_files():
    model = nn.Sequential(nn.Flatten(), Twice())
    program = export(
        model, (torch.rand(2, 2, 1),), dynamic_shapes={"input": {0: Dim("batch", max=9)}}
    )
    file = io.BytesIO()
    save(program, file)
    file.seek(0)
    for one in (program, load(file), program.run_decompositions()):
        model[1].count.zero_()
        made = unflatten(one)
        x = torch.rand(5, 2, 1)
        assert torch.allclose(made(x)[0], model(x)[0])
        assert [name for name, _ in made.named_modules() if "layer" in name][0] == "1.layer"
        with pytest.raises(AssertionError, match="<= 9"):
            made(torch.rand(10, 2, 1))


AS_WRITTEN = """graph():
    %_positional_arg_0 : [num_users=1] = placeholder[target=_positional_arg_0]
    %k : [num_users=1] = placeholder[target=k]
    %b : [num_users=1] = get_attr[target=b]
    %_spec_0 : [num_users=1] = get_attr[target=_spec_0]
    %tree_flatten_spec : [num_users=2] = call_function[target=torch.fx._pytree.tree_flatten_spec](args = (((%_positional_arg_0,), {k: %k}), %_spec_0), kwargs = {})
    %x : [num_users=2] = call_function[target=operator.getitem](args = (%tree_flatten_spec, 0), kwargs = {})
    %_constant_1 : [num_users=0] = call_function[target=operator.getitem](args = (%tree_flatten_spec, 1), kwargs = {})
    %layer : [num_users=1] = call_module[target=layer](args = (%x,), kwargs = {})
    %mul : [num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = (%layer, 2), kwargs = {})
    %add : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%mul, %b), kwargs = {})
    %_spec_1 : [num_users=1] = get_attr[target=_spec_1]
    %tree_unflatten : [num_users=1] = call_function[target=torch.utils._pytree.tree_unflatten](args = ((%add, %x), %_spec_1), kwargs = {})
    return tree_unflatten"""  # noqa: E501


class Once(Outer):
    def forward(self, x):
        return self.seq(self.a(x, k=2)["r"] + self.p)


class Swapped(nn.Module):
    def forward(self, x, k=1):
        return {"r": x * k, "s": x}


def test_modules_that_keep_their_signature_can_be_replaced():
    model, x = Once(), torch.rand(3, 2)
    program = export(model, (x,), preserve_module_call_signature=("a", "seq"))
    entry = program.module_call_graph[1]
    assert [arg.name for arg in entry.signature.inputs] == ["x", ""]
    assert entry.signature.inputs[1].value == 2
    assert [arg.name for arg in entry.signature.outputs] == ["add", "x"]
    file = io.BytesIO()
    save(program, file)
    file.seek(0)
    for one in (program, load(file), program.run_decompositions()):
        made = unflatten(one)
        assert torch.allclose(made(x), model(x))
        assert torch.allclose(made.a(x, k=2)["r"], model.a(x, k=2)["r"])
        made.a = Swapped()
        assert torch.allclose(made(x), model.seq(x * 2 + model.p))
    assert str(unflatten(program).a.graph) == AS_WRITTEN
    with pytest.raises(ValueError, match="preserve_module_call_signature: no module 'b'"):
        export(model, (x,), preserve_module_call_signature=("b",))


def test_what_a_module_takes_beside_its_arguments():
    class Closed(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.ReLU()

        def forward(self, x):
            y = x + 1
            self.a.forward = lambda z: z * y
            return self.a(x)

    program = export(Closed(), (torch.ones(2),), preserve_module_call_signature=("a",))
    with pytest.raises(NotImplementedError, match=r"takes \['add'\] of its surroundings"):
        unflatten(program)


def test_arguments_of_another_structure():
    class Pair(nn.Module):
        def forward(self, x, y):
            return x - y

    class Adapter(FlatArgsAdapter):
        def adapt(self, target_spec, input_spec, input_args, metadata=None, obj=None):
            assert input_spec != target_spec
            return input_args[:2]

    program = export(Pair(), (torch.ones(1), torch.ones(1)))
    with pytest.raises(TypeError, match="no flat args adapter specified"):
        unflatten(program)(torch.ones(1))
    made = unflatten(program, Adapter())
    assert made({"x": torch.tensor([5.0]), "y": torch.tensor([3.0])}).tolist() == [2]
    with pytest.raises(TypeError, match="number of args mismatch"):
        made(torch.ones(1))
    assert Adapter().get_flat_arg_paths() == []
    leaves = made.process_forward_inputs(torch.ones(1), torch.zeros(1))
    assert [leaf.item() for leaf in leaves] == [1, 0]


def test_modules_in_turn():
    made = unflatten(export(Outer(), (torch.rand(3, 2),)))
    calls = [made.a, getattr(made, "a@1")]
    both = InterpreterModuleDispatcher({"b"}, calls)
    x = torch.rand(3, 2)
    assert torch.equal(both(x), calls[0](x)) and torch.equal(both(x), calls[1](x))
    assert torch.equal(both(x), calls[0](x)) and both.call_modules() == calls
    assert both.type_name().endswith("Inner") and both.b is made.a.b
    assert both.print_readable(print_output=False).count("class InterpreterModule") == 2
    with pytest.raises(AssertionError, match="empty"):
        InterpreterModuleDispatcher(set(), [])
    assert pytree.tree_flatten(both.state_dict())[0] is not None


def test_nodes_tell_the_lines_of_the_program():
    program = export(Once(), (torch.rand(3, 2),))
    file = io.BytesIO()
    save(program, file)
    file.seek(0)
    for one in (program, program.run_decompositions(), load(file)):
        add = next(node for node in one.graph.nodes if node.name == "add")
        lines = add.stack_trace.splitlines()
        assert len(lines) == 4 and "test_unflatten.py" in lines[0] and "in forward" in lines[0]
        assert lines[1].strip() == 'return self.seq(self.a(x, k=2)["r"] + self.p)'
        assert lines[3].strip() == 'return {"r": self.layer(x) * k + self.b, "s": x}'
    text = unflatten(program).a.print_readable(print_output=False)
    assert 'code: return {"r": self.layer(x) * k + self.b, "s": x}' in text
