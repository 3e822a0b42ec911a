"""Which operators decompositions open, and programs in spite of objections."""

import io

import pytest
import rushlight as torch
from rushlight import nn
from rushlight.export import (
    CustomDecompTable,
    Dim,
    default_decompositions,
    draft_export,
    export,
    load,
    save,
)

aten = torch.ops.aten


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x):
        return nn.functional.silu(self.layer(x))


def opened(program, *table):
    made = program.run_decompositions(*table)
    x = torch.rand(1, 2)
    assert list(made.state_dict) == list(program.state_dict)
    return [str(n.target) for n in made.graph.nodes if n.op == "call_function"], made.module()(x), x


def test_tables():
    program = export(Gated(), (torch.ones(1, 2),))
    calls, _, _ = opened(program)
    assert calls == [
        "aten.permute.default", "aten.addmm.default", "aten.sigmoid.default", "aten.mul.Tensor",
    ]  # fmt: skip
    assert opened(program, default_decompositions())[0] == calls
    assert opened(program, {})[0] == ["aten.linear.default", "aten.silu.default"]
    table = {aten.silu.default: lambda x: x * x.sigmoid()}
    assert opened(program, table)[0] == [
        "aten.linear.default", "aten.sigmoid.default", "aten.mul.Tensor",
    ]  # fmt: skip


def test_a_table_that_was_changed():
    program = export(Gated(), (torch.ones(1, 2),))
    table = default_decompositions()
    assert type(table) is CustomDecompTable and aten.linear.default in table
    del table[aten.linear.default]
    calls, made, x = opened(program, table)
    assert calls == ["aten.linear.default", "aten.sigmoid.default", "aten.mul.Tensor"]
    torch.testing.assert_close(made, program.module()(x))
    table[aten.silu.default] = lambda x: x + 1
    assert opened(program, table)[0] == ["aten.linear.default", "aten.add.Tensor"]
    other = default_decompositions()
    other.update({aten.silu.default: lambda x: x - 1})
    assert opened(program, other)[0][-1] == "aten.sub.Tensor"
    other[aten.linear.default] = lambda x, w, b: x * 2
    assert opened(program, other)[0] == ["aten.mul.Tensor", "aten.sub.Tensor"]
    copied = table.copy()
    assert type(copied) is CustomDecompTable and copied == table and copied is not table
    assert type(table.materialize()) is dict and aten.linear.default not in table.materialize()
    with pytest.raises(KeyError):
        table.pop(aten.linear.default)
    assert table.pop(aten.linear.default, None) is None
    assert aten.linear.default in default_decompositions()


class Branch(nn.Module):
    def forward(self, x):
        return x * 2 if x.sum() > 0 else x - 1


class Square(nn.Module):
    def forward(self, x):
        return x.view(2, 2)


def test_values_that_decide():
    with pytest.raises(RuntimeError, match="value out of a tracing tensor"):
        export(Branch(), (torch.ones(3),))
    program = draft_export(Branch(), (torch.ones(3),))
    report = program._report
    assert not report.successful() and len(report.failures) == 1
    assert report.failures[0].failure_type.name == "DATA_DEPENDENT_ERROR"
    assert "Data dependent error" in str(report) and "test_decompositions.py" in str(report)
    file = io.BytesIO()
    save(program, file)
    file.seek(0)
    for one in (program, load(file)):
        assert one.module()(torch.full((3,), 5.0)).tolist() == [10, 10, 10]
        with pytest.raises(RuntimeError, match="was exported for the value"):
            one.module()(-torch.ones(3))


def test_sizes_that_cannot_be_open():
    program = draft_export(Square(), (torch.ones(4),), dynamic_shapes={"x": {0: Dim("d")}})
    assert [f.failure_type.name for f in program._report.failures] == ["GUARD_ADDED"]
    assert program.range_constraints == {} and program.module()(torch.ones(4)).shape == (2, 2)
    assert "Guard Added" in str(program._report)


def test_no_objections():
    program = draft_export(Gated(), (torch.ones(3, 2),), dynamic_shapes={"x": {0: Dim("d")}})
    assert program._report.successful() and "Congratulations" in str(program._report)
    assert program.module()(torch.ones(5, 2)).shape == (5, 2)
    with pytest.raises(ValueError, match="instance of `torch.nn.Module`"):
        draft_export(3, ())


class Calls(nn.Module):
    def __init__(self, function, layer):
        super().__init__()
        self.function, self.layer = function, layer

    def forward(self, *args):
        return self.function(self.layer, *args)


F = nn.functional
Q = torch.linspace(-2, 2, 128).reshape(2, 2, 4, 8).sin()
CAUSAL = torch.ones(4, 4).tril().bool()
SEES_NOTHING = torch.tensor([[True], [False], [True], [True]]).expand(4, 4)
X, TARGET = torch.linspace(-1, 2, 12).reshape(3, 4).cos(), torch.tensor([1, -100, 3])
IMAGE = torch.linspace(0, 9, 192).reshape(2, 6, 4, 4).sin()
CALLS = {
    "attention": (lambda m, q: F.scaled_dot_product_attention(q, q.flip(2), q * 2), None, Q),
    "attention of three dimensions": (
        lambda m, q: F.scaled_dot_product_attention(q, q.flip(2), q * 2, scale=0.3), None, Q[0]),
    "causal attention": (
        lambda m, q: F.scaled_dot_product_attention(q, q, q, is_causal=True), None, Q),
    "masked attention": (
        lambda m, q: F.scaled_dot_product_attention(q, q, q, CAUSAL), None, Q),
    "rows that see nothing": (
        lambda m, q: F.scaled_dot_product_attention(q, q, q, SEES_NOTHING), None, Q),
    "attention with shared keys": (
        lambda m, q: F.scaled_dot_product_attention(q, q[:, :1], q[:, :1], enable_gqa=True),
        None, Q),
    "cross entropy": (lambda m, x: F.cross_entropy(x, TARGET), None, X),
    "cross entropy summed": (lambda m, x: F.cross_entropy(x, TARGET, reduction="sum"), None, X),
    "each cross entropy": (lambda m, x: F.cross_entropy(x, TARGET, reduction="none"), None, X),
    "weighted cross entropy": (lambda m, x: F.cross_entropy(x, TARGET, X[0]), None, X),
    "smoothed": (lambda m, x: F.cross_entropy(x, TARGET, label_smoothing=0.1), None, X),
    "nll": (lambda m, x: F.nll_loss(x, TARGET), None, X),
    "rms norm": (lambda m, x: m(x), nn.RMSNorm(4, eps=1e-3), X),
    "layer norm": (lambda m, x: m(x), nn.LayerNorm((3, 4)), X),
    "group norm": (lambda m, x: m(x), nn.GroupNorm(3, 6), IMAGE),
    "batch norm": (lambda m, x: m.eval()(x), nn.BatchNorm2d(6), IMAGE),
    "max pool": (lambda m, x: F.max_pool2d(x, 2), None, IMAGE),
    "lstm": (lambda m, x: m(x)[0], nn.LSTM(4, 5), X),
    "gru": (lambda m, x: m(x)[0], nn.GRU(4, 5, bidirectional=True), X),
    "encoder": (lambda m, x: m.eval()(x), nn.TransformerEncoderLayer(4, 2, 8), X[None]),
    "arithmetic": (lambda m, x: 5 - x % 2 + x // 3 - x.transpose(0, 1).sum(), None, X),
    "pieces": (lambda m, x: x.split(3, 1)[1] + x.chunk(2, 1)[0].mean(), None, X),
}  # fmt: skip


def _names(program):
    return {str(n.target) for n in program.graph.nodes if "aten" in str(n.target)}


@pytest.mark.parametrize("case", CALLS)
def test_no_name_is_of_this_library_alone(case):
    function, layer, x = CALLS[case]
    module = Calls(function, layer)
    program = export(module, (x,))
    core = program.run_decompositions()
    internal = {
        f"aten.{row['name']}" for row in torch._C._operator_table() if "internal" in row["faces"]
    } - {"aten._softmax", "aten._log_softmax", "aten._to_copy", "aten._unsafe_view", "aten.slice"}
    for one in (program, core):
        assert not {name.rpartition(".")[0] for name in _names(one)} & internal
        assert torch.allclose(one.module()(x), module(x), rtol=1e-4, atol=1e-5)
    left_out = {"aten.t.default", "aten.transpose.int", "aten.linear.default", "aten.sum.default"}
    assert not _names(core) & left_out
