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
    assert calls == ["aten.t.default", "aten.addmm.default", "aten.silu.default"]
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
    assert calls == ["aten.linear.default", "aten.silu.default"]
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
