"""Shapes by tensor, by further calls and by hints; what signatures tell; other devices."""

import io

import pytest
import rushlight as torch
from rushlight import nn
from rushlight._dynamo.exc import UserError
from rushlight.export import AdditionalInputs, Dim, ShapesCollection, export
from rushlight.export import graph_signature as signatures
from rushlight.export.passes import move_to_device_pass


class Sum(nn.Module):
    def forward(self, x, y):
        return x.sum() + y["a"]


class Scaled(nn.Module):
    def forward(self, x, n):
        return x * n


def test_shapes_by_tensor():
    size, x, a = Dim("size"), torch.ones(3, 4), torch.ones(5)
    args = (x, {"a": a})
    shapes = ShapesCollection()
    shapes[x] = (size, 4)
    assert shapes.dynamic_shapes(Sum(), args) == {"x": (size, 4), "y": {"a": None}}
    shapes[a] = {0: Dim.AUTO}
    assert len(shapes) == 2 and shapes[a] == {0: Dim.AUTO} and shapes[torch.ones(1)] is None
    assert shapes.dynamic_shapes(Sum(), args)["y"] == {"a": {0: Dim.AUTO}}
    program = export(Sum(), args, dynamic_shapes=shapes)
    assert program.module()(torch.ones(7, 4), {"a": torch.ones(2)}).tolist() == [29, 29]
    with pytest.raises(AssertionError, match="expected .* got"):
        shapes[x] = (1, 4)
    with pytest.raises(AssertionError, match="non-tensor"):
        shapes[3] = (1,)
    shapes[torch.ones(1)] = (size,)
    with pytest.raises(ValueError, match="were not found in args"):
        shapes.dynamic_shapes(Sum(), args)


def test_shapes_by_further_calls():
    args = (torch.ones(3, 4), {"a": torch.ones(5)})
    calls = AdditionalInputs()
    calls.add((torch.ones(7, 4), {"a": torch.ones(5)}))
    assert calls.dynamic_shapes(Sum(), args) == {"x": (Dim.DYNAMIC, None), "y": {"a": (None,)}}
    program = export(Sum(), args, dynamic_shapes=calls)
    assert program.module()(torch.ones(9, 4), {"a": torch.ones(5)})[0] == 37
    with pytest.raises(AssertionError, match="Guard failed"):
        program.module()(torch.ones(9, 3), {"a": torch.ones(5)})
    calls.add((torch.ones(7, 5), {"a": torch.ones(5)}))
    with pytest.raises(AssertionError, match="Guard failed"):
        calls.verify(program)
    with pytest.raises(AssertionError, match="must be a tuple"):
        calls.add(3)
    numbers = AdditionalInputs()
    numbers.add((args[0], 4))
    assert numbers.dynamic_shapes(Scaled(), (args[0], 3))["n"] == Dim.DYNAMIC
    texts = AdditionalInputs()
    texts.add((args[0], "s"))
    with pytest.raises(ValueError, match=r"cannot be marked as dynamic: \('t', 's'\)"):
        texts.dynamic_shapes(Scaled(), (args[0], "t"))


def test_hints_with_bounds():
    assert repr(Dim.AUTO(min=3)) == "DimHint(AUTO, min=3)" and repr(Dim.STATIC) == "DimHint(STATIC)"
    program = export(
        nn.ReLU(), (torch.ones(4),), dynamic_shapes={"input": (Dim.DYNAMIC(min=2, max=6),)}
    )
    assert program.module()(torch.ones(6)).shape == (6,)
    with pytest.raises(AssertionError, match="<= 6"):
        program.module()(torch.ones(7))
    with pytest.raises(AssertionError, match="min must be <= max"):
        Dim.AUTO(min=3, max=2)
    with pytest.raises(TypeError, match="not callable"):
        Dim.STATIC(min=1)


def test_signatures_follow_replacements():
    program = export(nn.Linear(2, 2), (torch.ones(1, 2),))
    signature = program.graph_signature
    (old,) = program.graph.output_node().all_input_nodes
    hook = signature.get_replace_hook()
    hook(old, "other", program.graph.output_node())
    assert signature.user_outputs == ("other",)
    signature.replace_all_uses("input", "given")
    assert signature.user_inputs == ("given",)
    with pytest.raises(AssertionError, match="expected old to be str"):
        signature.replace_all_uses(3, "a")
    assert signature.backward_signature is None and signature.assertion_dep_token is None
    assert signature.input_tokens == signature.output_tokens == signature.lifted_custom_objs == ()
    assert signature.parameters_to_mutate == signature.inputs_to_lifted_custom_objs == {}
    assert str(signatures.CustomObjArgument("a", "b")).endswith("class_fqn='b', fake_val=None)")


def test_other_devices():
    class Made(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x):
            return self.layer(x) + torch.zeros(2, device="cpu")

    program = export(Made(), (torch.ones(1, 2),))
    moved = move_to_device_pass(program, {"cpu": "meta"})
    assert {str(value.device) for value in moved.state_dict.values()} == {"meta"}
    assert all(isinstance(value, nn.Parameter) for value in moved.state_dict.values())
    assert str(moved.example_inputs[0][0].device) == "meta"
    assert moved.module()(torch.ones(1, 2, device="meta")).is_meta


# ---- Sizes in terms of others ------------------------------------------------------------------


class Repeated(torch.nn.Module):
    def forward(self, x, y):
        return x.repeat(2) + y[1:] * x.shape[0]


def test_sizes_in_terms_of_others():
    d = Dim("d", min=3, max=20)
    assert [repr(e) for e in (2 * d, d + 1, 3 + d, d - 1, (d + 1) * 2 - 5)] == [
        "2*d", "d + 1", "d + 3", "d - 1", "2*d - 3",
    ]  # fmt: skip
    assert (2 * d + 1).root is d and (2 * d + 1).min == 7 and (2 * d + 1).max == 41
    program = export(
        Repeated(), (torch.ones(4), torch.ones(9)), dynamic_shapes=({0: d}, {0: 2 * d + 1})
    )
    assert {k: repr(v) for k, v in program.range_constraints.items()} == {
        "d": "VR[3, 20]", "2*d + 1": "VR[7, 41]",
    }  # fmt: skip
    assert program.range_constraints["d"].lower == 3 and program.range_constraints["d"].upper == 20
    x, y = torch.rand(7), torch.rand(15)
    assert torch.equal(program.module()(x, y), Repeated()(x, y))
    with pytest.raises(AssertionError, match=r"y\.size\(\)\[0\] == 2\*d \+ 1 = 15, .*got 17"):
        program.module()(x, torch.rand(17))
    with pytest.raises(AssertionError, match=r"y\.size\(\)\[0\] <= 41"):
        program.module()(x, torch.rand(43))


def test_a_size_that_only_others_are_in_terms_of():
    class Pairs(torch.nn.Module):
        def forward(self, y):
            return torch.zeros(y.shape[0] // 2) + y.view(-1, 2).sum(1) * (y.shape[0] // 2)

    program = export(Pairs(), (torch.ones(8),), dynamic_shapes=({0: 2 * Dim("d")},))
    y = torch.rand(10)
    assert torch.equal(program.module()(y), Pairs()(y))
    with pytest.raises(AssertionError, match=r"Guard failed: y\.size\(\)\[0\] % 2 == 0"):
        program.module()(torch.rand(7))
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    loaded = torch.export.load(file)
    assert torch.equal(loaded.module()(y), Pairs()(y))
    with pytest.raises(AssertionError, match="% 2 == 0"):
        loaded.module()(torch.rand(7))


def test_relations_that_do_not_hold_or_are_not_linear():
    d = Dim("d")
    with pytest.raises(UserError, match=r"is d = 4, and dimension 0 of input 1 is 2\*d = 10"):
        export(Repeated(), (torch.ones(4), torch.ones(10)), dynamic_shapes=({0: d}, {0: 2 * d}))
    with pytest.raises(UserError, match=r"not of the form 2\*d for any integer d"):
        export(Repeated(), (torch.ones(4), torch.ones(9)), dynamic_shapes=({0: d}, {0: 2 * d}))
    for call, text in (
        (lambda: d * 0, "multiply 0 with d, where a positive integer"),
        (lambda: d * 1.5, "multiply 1.5 with d"),
        (lambda: d + d, "add .* to d, where an integer"),
        (lambda: d - 1.5, "subtract 1.5 from d"),
        (lambda: 1 - d, "negate d"),
    ):
        with pytest.raises(NotImplementedError, match=text):
            call()
