"""Profiles name the operators of each compiled kernel, and the lines that called for them."""

import inspect
import json

import pytest
import rushlight as torch
from rushlight.profiler import profile


def scaled(x):
    y = x * 2
    return (y + 1).tanh()


FIRST = inspect.getsourcelines(scaled)[1]


def kernels(prof):
    return [event for event in prof.events() if event.is_kernel]


def lines(event):
    """Line numbers of this file."""
    found = [entry.rpartition("(")[2].split(")")[0] for entry in event.stack]
    assert all(__file__ in entry for entry in event.stack)
    return [int(number) for number in found]


def test_kernels_name_their_lines():
    function = torch.compile(scaled)
    x = torch.randn(8)
    function(x)
    with profile() as prof:
        function(x)
    (kernel,) = kernels(prof)
    assert kernel.name == "fused: mul+add+tanh"
    assert lines(kernel) == [FIRST + 1, FIRST + 2]
    assert kernel.stack[0] == f"{__file__}({FIRST + 1}): scaled"


def test_single_operators_of_segments_too():
    function = torch.compile(lambda x: x.sort().values.cumsum(0))
    with profile() as prof:
        function(torch.randn(8))
    assert kernels(prof) and all(len(event.stack) == 1 for event in kernels(prof))


def test_backward_names_its_call():
    x = torch.randn(8, requires_grad=True)
    compiled = torch.compile(lambda x: scaled(x).sum())
    with profile() as prof:
        loss = compiled(x)
        loss.backward()
    here = inspect.currentframe().f_lineno - 1
    assert any(lines(event) == [here] for event in kernels(prof))


def test_nothing_is_kept_without_a_profile():
    """A plan that was made outside of a profile serves inside, and the other way round."""
    function = torch.compile(lambda x: (x * 3 + 1).exp())
    with profile() as first:
        function(torch.randn(8))
    function(torch.randn(8))
    with profile() as second:
        function(torch.randn(8))
    assert [e.stack for e in kernels(first)] == [e.stack for e in kernels(second)] != [[]]


def test_chrome_trace(tmp_path):
    with profile() as prof:
        torch.compile(scaled)(torch.randn(8))
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    events = json.loads(path.read_text())["traceEvents"]
    (kernel,) = [event for event in events if event["cat"] == "kernel"]
    assert kernel["args"]["Operators"] == ["aten::mul", "aten::add", "aten::tanh"]
    assert kernel["args"]["Source"] == [
        f"{__file__}({FIRST + 1}): scaled",
        f"{__file__}({FIRST + 2}): scaled",
    ]


def test_eager_operators_where_asked_for():
    x = torch.randn(8)
    with profile() as plain:
        scaled(x)
    with profile(with_stack=True) as prof:
        scaled(x)
    assert all(event.stack == [] for event in plain.events())
    found = {event.name: lines(event) for event in prof.events()}
    assert found["aten::mul"] == [FIRST + 1] and found["aten::tanh"] == [FIRST + 2]


def test_totals_by_line():
    x = torch.randn(8)
    with profile(with_stack=True) as prof:
        x + 1
        x + 1
    assert len(prof.key_averages(group_by_stack_n=1)) == 2
    assert len(prof.key_averages()) == 1
    assert "Source Location" in prof.key_averages(group_by_stack_n=1).table()
    assert "Source Location" not in prof.key_averages().table()


def test_stacks_as_flame_graphs_take_them(tmp_path):
    x = torch.randn(8)
    with profile(with_stack=True) as prof:
        scaled(x)
    prof.export_stacks(str(tmp_path / "stacks"))
    rows = (tmp_path / "stacks").read_text().splitlines()
    assert len(rows) == 2 and rows[0].startswith(f"{__file__}({FIRST + 1}):_scaled ")
    with pytest.raises(ValueError, match="metric should be one of"):
        prof.export_stacks(str(tmp_path / "stacks"), "colour")
    with profile() as plain:
        scaled(x)
    with pytest.raises(AssertionError, match="requires with_stack"):
        plain.export_stacks(str(tmp_path / "stacks"))
