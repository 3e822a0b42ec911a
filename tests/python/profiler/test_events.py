"""Events made by hand, and the small classes of autograd.profiler."""

from __future__ import annotations

import json

import pytest
import rushlight as torch
from rushlight.autograd import profiler


def test_times_of_events():
    outer = profiler.FunctionEvent(1, "aten::add", 0, 10, 30)
    inner = profiler.FunctionEvent(2, "aten::mul", 0, 12, 20, cpu_memory_usage=8)
    outer.append_cpu_child(inner)
    inner.set_cpu_parent(outer)
    assert (outer.cpu_time_total, outer.self_cpu_time_total) == (20, 12)
    assert outer.self_cpu_memory_usage == -8 and inner.cpu_parent is outer
    assert outer.key == "aten::add" and outer.metadata_json is None and outer.stack is None
    with pytest.raises(AssertionError, match="Expected child to be a FunctionEvent, got int"):
        outer.append_cpu_child(3)


def test_times_on_another_device():
    event = profiler.FunctionEvent(1, "launch", 0, 0, 5, use_device="cuda")
    event.append_kernel("kernel", 0, 7)
    assert event.device_time_total == event.cuda_time_total == event.self_device_time_total == 7
    assert profiler.FunctionEvent(1, "launch", 0, 0, 5).device_time_total == 0


def test_units_and_metrics_of_lists(tmp_path):
    events = profiler.EventList([profiler.FunctionEvent(1, "n", 0, 0, 1500, stack=["a", "b"])])
    assert "1500.000us" in events.table(time_unit="us") and "1.500ms" in events.table()
    with pytest.raises(ValueError, match="time_unit must be 's', 'ms', 'us' or None, got 'xs'"):
        events.table(time_unit="xs")
    assert events.supported_export_stacks_metrics()[0] == "self_cpu_time_total"
    events.export_stacks(str(tmp_path / "stacks"), "self_cpu_time_total")
    assert (tmp_path / "stacks").read_text() == "b;a 1500\n"


def test_recording_that_stops_and_goes_on(tmp_path):
    cpu = [torch.profiler.ProfilerActivity.CPU]
    with profiler.profile(acc_events=True) as prof:
        torch.ones(2) + 1
        prof.toggle_collection_dynamic(False, cpu)
        torch.ones(2) * 1
        prof.toggle_collection_dynamic(True, cpu)
        torch.ones(2) - 1
    names = [event.name for event in prof.function_events]
    assert "aten::add" in names and "aten::sub" in names and "aten::mul" not in names
    prof.export_chrome_trace(str(tmp_path / "trace"), metadata={"run": 3})
    assert json.loads((tmp_path / "trace").read_text())["run"] == 3


def test_names_of_traces():
    prof = profiler.profile(custom_trace_id_callback=lambda: "abc")
    assert prof.create_trace_id() == "abc" and len(prof.default_trace_id()) == 32
    assert prof.config(create_trace_id=True).trace_id == "abc"
    with pytest.raises(AssertionError, match="use_cpu=False"):
        profiler.profile(use_cpu=False)


def test_steps_of_several():
    tracker = profiler.KinetoStepTracker
    start = tracker.current_step()
    tracker.init_step_count("one")
    assert tracker.increment_step("one") == start + 1
    assert tracker.increment_step("one") == start + 2
    assert tracker.increment_step("other") == start + 3
    assert tracker.erase_step_count("one") and not tracker.erase_step_count("one")
    assert tracker.erase_step_count("other") and tracker.current_step() == start + 3


def test_keys_seen_once():
    keys = profiler.EnforceUnique()
    keys.see("a")
    keys.see("a", 1)
    with pytest.raises(RuntimeError, match=r"duplicate key: \('a',\)"):
        keys.see("a")


class Start(int):
    def start_ns(self):
        return int(self)


def test_records_of_an_interval():
    records = profiler.MemRecordsAcc([(Start(5), "b"), (Start(1), "a"), (Start(9), "c")])
    assert [name for _, name in records.in_interval(2, 9)] == ["b", "c"]


def test_ranges_for_other_tools():
    with pytest.raises(AssertionError, match="CUDA"), profiler.emit_nvtx():
        pass
    with profiler.emit_nvtx(enabled=False), profiler.emit_itt():
        assert (torch.ones(1) + 1).item() == 2
