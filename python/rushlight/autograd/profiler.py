"""torch.autograd.profiler: the older face of rushlight.profiler."""

from __future__ import annotations

import bisect
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, NoReturn

from rushlight import _C
from rushlight import profiler as _profiler
from rushlight.profiler import EventList, FunctionEvent, FunctionEventAvg, record_function

__all__ = [
    "EnforceUnique",
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "KinetoStepTracker",
    "MemRecordsAcc",
    "emit_itt",
    "emit_nvtx",
    "profile",
    "record_function",
]


class _Config(NamedTuple):
    """What a profile was asked to record."""

    record_shapes: bool
    profile_memory: bool
    with_stack: bool
    with_flops: bool
    with_modules: bool
    trace_id: str


class profile(_profiler.profile):
    """Records what runs inside `with profile() as p:`. With enabled=False nothing is recorded."""

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: object = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
        activity_filters: object = None,
    ) -> None:
        if not use_cpu:
            raise AssertionError("profile: with use_cpu=False there is no device to record")
        super().__init__(
            record_shapes=record_shapes,
            profile_memory=profile_memory,
            with_stack=with_stack,
            acc_events=acc_events,
            custom_trace_id_callback=custom_trace_id_callback,
        )
        self.enabled = enabled
        self.with_flops = with_flops
        self.with_modules = with_modules

    def start(self) -> None:
        if self.enabled:
            super().start()

    def stop(self) -> None:
        if self.enabled:
            super().stop()

    def default_trace_id(self) -> str:
        """A new name for a trace: 32 hexadecimal digits."""
        return uuid.uuid4().hex.upper()

    def create_trace_id(self) -> str:
        """A new name for a trace, from custom_trace_id_callback where there is one."""
        callback = self.custom_trace_id_callback
        self.trace_id = callback() if callback is not None else self.default_trace_id()
        return self.trace_id

    def config(self, create_trace_id: bool = False) -> _Config:
        """What is recorded; with a name for the trace where asked for."""
        return _Config(
            self.record_shapes,
            self.profile_memory,
            self.with_stack,
            self.with_flops,
            self.with_modules,
            self.create_trace_id() if create_trace_id else self.trace_id or "",
        )

    def toggle_collection_dynamic(
        self, enabled: bool, activities: Iterable[_profiler.ProfilerActivity]
    ) -> None:
        """Stops recording, or goes on with it, where the CPU is among the activities."""
        if _profiler.ProfilerActivity.CPU not in set(activities):
            return
        if not enabled and _C._profiler_is_on():
            self._end(_profiler.ProfilerAction.RECORD)
        elif enabled and not _C._profiler_is_on():
            _C._profiler_start(self.record_shapes, self.profile_memory, self.with_stack)

    def _end(self, action: _profiler.ProfilerAction) -> bool:
        return _C._profiler_is_on() and super()._end(action)

    @property
    def function_events(self) -> EventList:
        return self.events()

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:
        """What ran, as text."""
        return self.events().table(
            sort_by,
            row_limit,
            max_src_column_width,
            max_name_column_width,
            max_shapes_column_width,
            header,
            top_level_events_only,
        )

    def export_chrome_trace(
        self,
        path: str,
        metadata: dict[str, Any] | None = None,
        use_python_export: bool = False,
    ) -> None:
        """Writes what chrome://tracing and Perfetto show, with `metadata` in it."""
        self.events().export_chrome_trace(path, {**self._metadata, **(metadata or {})})

    def total_average(self) -> FunctionEventAvg:
        """One total over all."""
        return self.events().total_average()

    @property
    def self_cpu_time_total(self) -> float:
        return self.events().self_cpu_time_total


class emit_nvtx:
    """An error at its start: ranges for NVIDIA's tools need CUDA. Nothing with enabled=False."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled
        self.record_shapes = record_shapes

    def __enter__(self) -> emit_nvtx | None:
        if self.enabled:
            _no_nvtx()
        return None

    def __exit__(self, *_: object) -> None:
        return None


def _no_nvtx() -> NoReturn:
    raise AssertionError("Torch not compiled with CUDA enabled: emit_nvtx() needs it")


class emit_itt:
    """Context whose operators Intel's VTune would show: its library is never there, so nothing."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled
        self.record_shapes = record_shapes
        self._entered = False

    def __enter__(self) -> emit_itt | None:
        if not self.enabled:
            return None
        if self._entered:
            raise RuntimeError("ITT annotation context manager is not reentrant")
        self._entered = True
        return self

    def __exit__(self, *_: object) -> None:
        return None


class EnforceUnique:
    """Raises an error if a key is seen more than once."""

    def __init__(self) -> None:
        self._seen: set[tuple] = set()

    def see(self, *key: object) -> None:
        """Remembers a key. RuntimeError where it was seen before."""
        if key in self._seen:
            raise RuntimeError(f"duplicate key: {key}")
        self._seen.add(key)


class KinetoStepTracker:
    """Counts the program's steps where several count them, a profile and optimizers: the count is
    that of whoever is furthest.
    """

    _current_step = 0
    _steps: dict[str, int] = {}

    @classmethod
    def init_step_count(cls, requester: str) -> None:
        """Adds somebody who counts, from the present step."""
        cls._steps[requester] = cls._current_step

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        """Forgets somebody who counts; whether it was known."""
        return cls._steps.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester: str) -> int:
        """Counts a step of somebody's, and gives the program's."""
        if requester not in cls._steps:
            cls.init_step_count(requester)
        cls._steps[requester] += 1
        cls._current_step = max(cls._current_step, *cls._steps.values())
        return cls._current_step

    @classmethod
    def current_step(cls) -> int:
        """The program's step."""
        return cls._current_step


class MemRecordsAcc:
    """Records of memory by their time: pairs whose first item has start_ns()."""

    def __init__(self, mem_records: Iterable[tuple]) -> None:
        self._records = sorted(mem_records, key=lambda record: record[0].start_ns())
        self._starts = [record[0].start_ns() for record in self._records]

    def in_interval(self, start_ns: int, end_ns: int) -> Iterator[tuple]:
        """Those from start_ns to end_ns, both included, in order."""
        first = bisect.bisect_left(self._starts, start_ns)
        last = bisect.bisect_right(self._starts, end_ns)
        yield from self._records[first:last]
