"""Modules exported as programs: graphs, signatures, calls of other sizes, files."""

import dataclasses
import io

import pytest
import rushlight as torch
import rushlight.export
from rushlight import Tensor, nn
from rushlight._dynamo.exc import UserError
from rushlight.export import Dim, export

aten = torch.ops.aten


class Mixed(nn.Module):
    """State of every kind, a structure of arguments, a structure of results."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self.norm = nn.BatchNorm1d(2)
        self.register_buffer("scale", torch.ones(2))
        self.register_buffer("hidden", torch.ones(2), persistent=False)
        self.shift = torch.tensor([1.0, 2.0])

    def forward(self, x, more=None, *, factor=2.0):
        z = self.norm(self.layer(x)) * self.scale * self.hidden
        z = z + self.shift + torch.tensor([3.0, 4.0])
        if more is not None:
            z = z + more["a"]
        return {"out": nn.functional.gelu(z) * factor, "n": 3}


def exported(training=False):
    torch.manual_seed(0)
    model = Mixed().train(training)
    args, kwargs = (torch.randn(4, 3), {"a": torch.ones(2)}), {"factor": 2.0}
    return model, args, kwargs, export(model, args, kwargs)


def targets(program):
    return [str(n.target) for n in program.graph.nodes if n.op == "call_function"]


def test_the_graph_has_the_operators_that_the_module_calls():
    _, _, _, program = exported()
    assert targets(program) == [
        "aten.linear.default",
        "aten.batch_norm.default",
        *["aten.mul.Tensor"] * 2,
        *["aten.add.Tensor"] * 3,
        "aten.gelu.default",
        "aten.mul.Tensor",
    ]
    linear = next(n for n in program.graph.nodes if n.target is aten.linear.default)
    assert [n.name for n in linear.args] == ["x", "p_layer_weight", "p_layer_bias"]
    assert linear.meta["val"].shape == (4, 2)


def test_the_signature():
    _, _, _, program = exported()
    signature = program.graph_signature
    assert signature.inputs_to_parameters == {
        "p_layer_weight": "layer.weight",
        "p_layer_bias": "layer.bias",
        "p_norm_weight": "norm.weight",
        "p_norm_bias": "norm.bias",
    }
    assert signature.buffers[:2] == ("scale", "hidden")
    assert signature.non_persistent_buffers == {"hidden"}
    assert signature.lifted_tensor_constants == ("shift", "lifted_tensor_0")
    assert signature.user_inputs == ("x", "more_a", 2.0)
    assert signature.user_outputs == ("mul_2", 3)
    placeholders = [n.name for n in program.graph.nodes if n.op == "placeholder"]
    assert placeholders == [spec.arg.name for spec in signature.input_specs]
    assert "b_hidden: BUFFER target='hidden' persistent=False" in str(program)


def test_the_state():
    model, _, _, program = exported()
    assert set(program.state_dict) == set(model.state_dict())
    assert program.state_dict["layer.weight"] is model.layer.weight
    assert set(program.constants) == {"hidden", "shift", "lifted_tensor_0"}
    assert [name for name, _ in program.named_parameters()] == [
        name for name, _ in model.named_parameters()
    ]
    assert sum(1 for _ in program.buffers()) == 5


def test_the_module_gives_what_the_original_gives():
    model, args, kwargs, program = exported()
    module = program.module()
    x = torch.randn(4, 3, requires_grad=True)
    made = module(x, args[1], factor=2.0)
    expected = model(x, args[1], factor=2.0)
    assert made["n"] == 3 and torch.equal(made["out"], expected["out"])
    (grad,) = torch.autograd.grad(made["out"].sum(), x)
    (wanted,) = torch.autograd.grad(expected["out"].sum(), x)
    assert torch.equal(grad, wanted)
    assert {n for n, _ in module.named_buffers()} == {n for n, _ in model.named_buffers()}


def test_buffers_are_written_by_calls_and_not_by_export():
    model, args, _, program = exported(training=True)
    assert model.norm.num_batches_tracked.item() == 0
    assert torch.equal(model.norm.running_mean, torch.zeros(2))
    assert "aten.add_.Tensor" in targets(program)
    program.module()(*args, factor=2.0)
    assert program.state_dict["norm.num_batches_tracked"].item() == 1
    assert not torch.equal(program.state_dict["norm.running_mean"], torch.zeros(2))


def test_random_numbers_are_where_they_were():
    model = nn.Dropout(0.5)
    before = torch.get_rng_state()
    program = export(model, (torch.ones(8),))
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(1)
    made = program.module()(torch.ones(8))
    torch.manual_seed(1)
    assert torch.equal(made, model(torch.ones(8)))


def test_other_arguments_are_errors():
    _, args, _, program = exported()
    module = program.module()
    with pytest.raises(AssertionError, match=r"Guard failed: x\.size\(\)\[0\] == 4"):
        module(torch.randn(5, 3), args[1], factor=2.0)
    with pytest.raises(AssertionError, match=r"Guard failed: factor == 2\.0"):
        module(*args, factor=3.0)
    with pytest.raises(ValueError, match="Trying to flatten user inputs with exported input tree"):
        module(args[0], factor=2.0)
    with pytest.raises(RuntimeError, match="Unable to call ExportedProgram directly"):
        program(*args)
    for switch in (module.train, module.eval):
        with pytest.raises(NotImplementedError, match="is not supported yet"):
            switch()


def test_what_cannot_be_exported():
    class OnData(nn.Module):
        def forward(self, x):
            return x + 1 if x.sum() > 0 else x

    with pytest.raises(RuntimeError, match="get value out of a tracing tensor"):
        export(OnData(), (torch.ones(2),))
    with pytest.raises(ValueError, match="Expected `mod` to be an instance of"):
        export(lambda x: x, (torch.ones(2),))
    with pytest.raises(UserError, match="Expecting `args` to be a tuple"):
        export(nn.ReLU(), torch.ones(2))


# ---- Open sizes ----------------------------------------------------------------------------------


class Sized(nn.Module):
    def forward(self, x, rest):
        b, t = x.shape[0], x.shape[1]
        flat = x.view(b * t, -1) * 2
        half = x[:, : t // 2]
        return flat + rest[0].sum() + b, torch.zeros(b, t + 1), half, b


def test_sizes_that_are_open():
    batch, time = Dim("batch", min=2, max=64), Dim("time")
    args = (torch.randn(4, 6, 3), [torch.ones(2)])
    model = Sized()
    program = export(model, args, dynamic_shapes={"x": {0: batch, 1: time}, "rest": None})
    assert program.range_constraints == {"batch": (2, 64), "time": (0, None)}
    module = program.module()
    for shape in ((4, 6, 3), (2, 3, 3), (7, 5, 3), (64, 1, 3)):
        x = torch.randn(shape)
        for made, expected in zip(module(x, args[1]), model(x, args[1])):
            assert torch.equal(torch.as_tensor(made), torch.as_tensor(expected))
    with pytest.raises(AssertionError, match=r"Guard failed: x\.size\(\)\[0\] <= 64"):
        module(torch.randn(65, 6, 3), args[1])
    with pytest.raises(AssertionError, match=r"Guard failed: x\.size\(\)\[2\] == 3"):
        module(torch.randn(4, 6, 4), args[1])


def test_one_size_in_two_places():
    class Add(nn.Module):
        def forward(self, x, y):
            return x + y

    n = Dim("n")
    args = (torch.ones(3), torch.ones(3))
    module = export(Add(), args, dynamic_shapes=({0: n}, {0: n})).module()
    assert module(torch.ones(5), torch.ones(5)).tolist() == [2] * 5
    with pytest.raises(AssertionError, match=r"y\.size\(\)\[0\] == n = 5"):
        module(torch.ones(5), torch.ones(1))
    hints = ({0: Dim.AUTO}, {0: Dim.DYNAMIC})
    module = export(Add(), args, dynamic_shapes=hints).module()
    assert module(torch.ones(7), torch.ones(7)).tolist() == [2] * 7


def test_divisors_are_kept():
    class Chunks(nn.Module):
        def forward(self, x):
            return x.view(x.shape[0] // 4, 4).sum(1)

    module = export(Chunks(), (torch.ones(8),), dynamic_shapes=({0: Dim("n")},)).module()
    assert module(torch.ones(20)).tolist() == [4] * 5


def test_sizes_that_decide_what_runs():
    class Branch(nn.Module):
        def forward(self, x):
            return x + 1 if x.shape[0] == 4 else x * 2

    class Root(nn.Module):
        def forward(self, x):
            return x * x.shape[0] ** -0.5

    for model in (Branch(), Root()):
        with pytest.raises(UserError, match="Constraints violated"):
            export(model, (torch.ones(4),), dynamic_shapes={"x": {0: Dim("n")}})
    with pytest.raises(UserError, match=r"keys must be the arg names \['x'\]"):
        export(Branch(), (torch.ones(4),), dynamic_shapes={"y": {0: Dim("n")}})
    with pytest.raises(UserError, match="outside the range"):
        export(Branch(), (torch.ones(4),), dynamic_shapes={"x": {0: Dim("n", max=3)}})


# ---- Decompositions, files -----------------------------------------------------------------------


def test_decompositions():
    model, args, kwargs, program = exported()
    core = program.run_decompositions()
    assert "aten.addmm.default" in targets(core)
    assert not {"aten.linear.default", "aten.batch_norm.default"} & set(targets(core))
    assert core.graph_signature.inputs_to_parameters == program.graph_signature.inputs_to_parameters
    assert core.graph_signature.lifted_tensor_constants == ("shift", "lifted_tensor_0")
    made = core.module()(*args, **kwargs)["out"]
    torch.testing.assert_close(made, model(*args, **kwargs)["out"])
    double = {aten.gelu.default: lambda x: x * 2}
    assert "aten.gelu.default" not in targets(program.run_decompositions(double))


def test_files(tmp_path):
    model, args, kwargs, program = exported()
    path = tmp_path / "program.pt2"
    torch.export.save(program, path, extra_files={"note.txt": "mine"})
    extra = {"note.txt": ""}
    again = torch.export.load(path, extra_files=extra)
    assert extra == {"note.txt": "mine"}
    assert again.graph_module.code == program.graph_module.code
    assert str(again) == str(program)
    assert list(again.state_dict) == list(program.state_dict)
    made = again.module()(*args, **kwargs)["out"]
    assert torch.equal(made, model(*args, **kwargs)["out"])


def test_files_of_open_sizes():
    args = (torch.randn(4, 6, 3), [torch.ones(2)])
    shapes = {"x": {0: Dim("b"), 1: Dim("t")}, "rest": None}
    program = export(Sized(), args, dynamic_shapes=shapes)
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    module = torch.export.load(file).module()
    x = torch.randn(3, 8, 3)
    assert torch.equal(module(x, args[1])[2], x[:, :4])


def test_files_that_are_no_programs(tmp_path):
    path = tmp_path / "other.pt2"
    path.write_bytes(b"nothing")
    with pytest.raises(RuntimeError, match="no program that Rushlight's torch.export.save wrote"):
        torch.export.load(path)
    with pytest.raises(TypeError, match="must be an instance of 'ExportedProgram'"):
        torch.export.save(nn.ReLU(), path)


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 2)
        self.second = nn.Linear(2, 2)

    def forward(self, x, y):
        z = y * 2
        first, second = (lambda v: self.first(v) + z), (lambda v: self.second(v) - y)
        return torch.cond(x.sum() > 0, first, second, (x,))


def test_branches():
    module, y = Branches(), torch.ones(1, 2)
    program = export(module, (torch.ones(1, 2), y))
    (node,) = (n for n in program.graph.nodes if n.target is torch.ops.higher_order.cond)
    assert [n.name for n in node.args[3]] == [
        "x", "p_first_weight", "p_first_bias", "mul", "p_second_weight", "p_second_bias", "y",
    ]  # fmt: skip
    for again in (program, program.run_decompositions()):
        for x in (torch.ones(1, 2), -torch.ones(1, 2)):
            assert torch.equal(again.module()(x, y), module(x, y))
    with pytest.raises(NotImplementedError, match="programs with torch.cond cannot be written"):
        torch.export.save(program, io.BytesIO())


def test_branches_of_open_sizes():
    class Plain(nn.Module):
        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda v: v.relu(), lambda v: v.exp(), (x,))

    program = export(Plain(), (torch.ones(3),), dynamic_shapes={"x": {0: Dim("b")}})
    assert program.module()(-torch.ones(5)).shape == (5,)

    class Reshaped(nn.Module):
        def forward(self, x):
            one, other = (lambda v: v.view(x.size(0), 1) * 2), (lambda v: v.unsqueeze(1) * 3)
            return torch.cond(x.sum() > 0, one, other, (x,))

    with pytest.raises(UserError, match="functions of torch.cond depend on open sizes"):
        export(Reshaped(), (torch.ones(3),), dynamic_shapes={"x": {0: Dim("b")}})


@dataclasses.dataclass
class Pair:
    feature: Tensor
    bias: int


def test_arguments_of_dataclasses_are_named_by_their_fields():
    torch.export.register_dataclass(Pair)

    class Sum(nn.Module):
        def forward(self, x):
            return x.feature + x.bias

    program = export(Sum(), (Pair(torch.ones(2, 2), 1),))
    assert program.graph_signature.user_inputs[0] == "x_feature"
    assert "def forward(self, x_feature" in str(program)
    assert "Graph signature: \n    # inputs" in str(program)


def test_text_of_sizes():
    assert repr(Dim("a")) == "Dim('a', min=0)"
    assert repr(Dim("a", max=5)) == "Dim('a', min=0, max=5)"
    assert repr(Dim("a", min=2, max=5)) == "Dim('a', max=5)"
