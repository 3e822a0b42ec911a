"""What operators ran, for how long, and on what: PyTorch's torch.profiler over the core's records.

Compiled functions show each kernel by its operators ("fused: mul+add"), with the lines of the
program that they came from (`event.stack`); with_stack=True tells them of eager operators too. The
thread that starts a profile is the one recorded.
"""

from __future__ import annotations

import enum
import json
import os
import socket
import time
from collections.abc import Callable, Iterable

from rushlight import _C
from rushlight.profiler._events import EventList, FunctionEvent, FunctionEventAvg
from rushlight.profiler._record import record_function

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


class ProfilerActivity(enum.Enum):
    """What is recorded. Only the CPU is there to be."""

    CPU = 0
    XPU = 1
    CUDA = 2
    MTIA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(enum.Enum):
    """What a step of a schedule does."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities() -> set[ProfilerActivity]:
    """The activities that this machine has."""
    return {ProfilerActivity.CPU}


def kineto_available() -> bool:
    """Whether `profile` can record: always, without the library of that name."""
    return True


def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Callable[[int], ProfilerAction]:
    """Steps to wait, to warm up and to record, over and over, `repeat` times (0: without end)."""
    if wait < 0 or warmup < 0 or repeat < 0 or skip_first < 0 or active <= 0:
        raise AssertionError("Invalid profiler schedule arguments")

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"step must be at least 0, got {step}")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait != 0:
            step += wait
        length = wait + warmup + active
        if repeat > 0 and step // length >= repeat:
            return ProfilerAction.NONE
        at = step % length
        if at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        last = at == length - 1
        return ProfilerAction.RECORD_AND_SAVE if last else ProfilerAction.RECORD

    return action


def _always(_: int) -> ProfilerAction:
    return ProfilerAction.RECORD


def tensorboard_trace_handler(
    dir_name: str,
    worker_name: str | None = None,
    use_gzip: bool = False,
    use_python_export: bool = False,
) -> Callable[[profile], None]:
    """An on_trace_ready that writes each trace into a folder, one file each."""

    def handle(prof: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json" + (".gz" if use_gzip else "")
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return handle


class profile:
    """Records what runs inside `with profile() as p:`; `p.step()` ends a step of a schedule."""

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], object] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: object = None,
        execution_trace_observer: object = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        self.activities = set(activities) if activities is not None else supported_activities()
        if not self.activities:
            raise AssertionError("No valid profiler activities found")
        self.schedule = schedule or _always
        self.on_trace_ready = on_trace_ready
        self.record_shapes = record_shapes
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.acc_events = acc_events
        self.step_num = 0
        self.current_action = self.schedule(0)
        self._events: EventList = EventList()
        self._metadata: dict[str, str] = {}
        self.custom_trace_id_callback = custom_trace_id_callback
        self.trace_id: str | None = None

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begins as the schedule says for step 0. RuntimeError where another profile is on."""
        self._begin(self.current_action)

    def stop(self) -> None:
        """Ends; what was recorded goes to on_trace_ready."""
        if self._end(self.current_action) and self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def step(self) -> None:
        """Ends a step: the next one does what the schedule says."""
        before = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        saves = before is ProfilerAction.RECORD_AND_SAVE
        if saves or self.current_action is ProfilerAction.NONE:
            if self._end(before) and self.on_trace_ready is not None:
                self.on_trace_ready(self)
        self._begin(self.current_action)

    def _begin(self, action: ProfilerAction) -> None:
        recording = action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        if recording and not _C._profiler_is_on():
            if not self.acc_events:
                self._events = EventList()
            _C._profiler_start(self.record_shapes, self.profile_memory, self.with_stack)

    def _end(self, action: ProfilerAction) -> bool:
        if action not in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE):
            return False
        self._events.extend(EventList.of_records(_C._profiler_stop()))
        return True

    def events(self) -> EventList:
        """All events, by start. Of what was recorded last, or with acc_events of everything."""
        return self._events

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """Totals by name; by shapes, lines of the program and overloads where asked for."""
        return self._events.key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name
        )

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes the time of each line of the program, as flame graphs take it. Needs with_stack.

        ValueError for a metric that EventList.export_stacks does not know.
        """
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self._events.export_stacks(path, metric)

    def export_chrome_trace(self, path: str, use_python_export: bool = False) -> None:
        """Writes what chrome://tracing and Perfetto show; gzip where the name ends in .gz."""
        self._events.export_chrome_trace(path, self._metadata)

    def add_metadata(self, key: str, value: str) -> None:
        """A text that goes into the trace."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """A JSON value that goes into the trace."""
        self._metadata[key] = json.loads(value)

    def preset_metadata_json(self, key: str, value: str) -> None:
        """The same, before the profile starts."""
        self.add_metadata_json(key, value)


__all__ += ["EventList", "FunctionEvent", "FunctionEventAvg"]
