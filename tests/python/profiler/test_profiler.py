"""Profiles: events, totals, tables, traces, schedules."""

import json

import pytest
import rushlight as torch
from rushlight.profiler import ProfilerActivity, profile, record_function, schedule


def by_name(prof):
    return {total.key: total for total in prof.key_averages()}


def test_names_and_counts_operators():
    x = torch.randn(8, 8)
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        for _ in range(3):
            torch.relu(x @ x)
    totals = by_name(prof)
    assert totals["aten::relu"].count == 3
    assert totals["aten::mm"].count == 3
    assert totals["aten::relu"].cpu_time_total > 0


def test_self_time_leaves_out_what_was_called():
    layer = torch.nn.Linear(64, 64)
    with profile() as prof, record_function("outer"):
        layer(torch.randn(64, 64))
    outer = by_name(prof)["outer"]
    assert 0 <= outer.self_cpu_time_total < outer.cpu_time_total
    inner = [event for event in prof.events() if event.cpu_parent is not None]
    assert any(event.name == "aten::linear" for event in inner)


def test_records_shapes_and_memory():
    x = torch.randn(16, 1024)
    with profile(record_shapes=True, profile_memory=True) as prof:
        y = x + 1
    event = next(event for event in prof.events() if event.name == "aten::add")
    assert event.input_shapes[0] == [16, 1024]
    assert event.cpu_memory_usage >= y.numel() * 4
    grouped = prof.key_averages(group_by_input_shape=True)
    assert any(total.input_shapes for total in grouped)


def test_backward_is_recorded():
    x = torch.randn(4, 4, requires_grad=True)
    with profile() as prof:
        (x @ x).sum().backward()
    assert by_name(prof)["aten::mm"].count == 3


def test_compiled_kernels_are_named_by_their_operators():
    function = torch.compile(lambda x: (x * 2 + 1).tanh())
    function(torch.randn(8))
    with profile() as prof:
        function(torch.randn(8))
    assert any(key == "fused: mul+add+tanh" for key in by_name(prof))


def test_table_and_trace(tmp_path):
    with profile() as prof:
        torch.randn(32, 32).sort()
    table = prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=3)
    assert "aten::sort" in table and "Self CPU time total" in table
    with pytest.raises(ValueError, match="no such column"):
        prof.key_averages().table(sort_by="colour")
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    trace = json.loads(path.read_text())
    assert any(event["name"] == "aten::sort" for event in trace["traceEvents"])


def test_schedule_and_steps():
    seen = []
    steps = schedule(wait=1, warmup=1, active=2, repeat=1)
    with profile(schedule=steps, on_trace_ready=lambda p: seen.append(by_name(p))) as prof:
        for _ in range(6):
            torch.ones(2) * 3
            prof.step()
    assert len(seen) == 1
    assert seen[0]["aten::mul"].count == 2


def test_a_second_profile_in_a_thread_is_an_error():
    with profile(), pytest.raises(RuntimeError, match="on already"):
        torch._C._profiler_start(False, False)


def test_nothing_is_recorded_outside():
    with profile() as prof:
        pass
    torch.ones(2) + 1
    assert "aten::add" not in by_name(prof)
    with record_function("alone"):
        pass


def test_the_older_face():
    with torch.autograd.profiler.profile() as prof, torch.autograd.profiler.record_function("mark"):
        torch.ones(2) + 1
    assert {"mark", "aten::add"} <= {event.key for event in prof.key_averages()}
    assert "aten::add" in prof.table()
    with torch.autograd.profiler.profile(enabled=False) as off:
        torch.ones(2) + 1
    assert list(off.function_events) == []
