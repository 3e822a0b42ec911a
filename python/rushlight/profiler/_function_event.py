"""One event of a profile: when it ran, what it called, and what of memory it took."""

from __future__ import annotations

import enum
import re
from typing import Any, NamedTuple

Record = tuple[str, int, int, int, int, bool, list[list[int]], bool, list[str]]

# As the core writes lines: File "train.py", line 12, in forward.
_LINE = re.compile(r'File "(.*)", line (\d+), in (.*)')


class DeviceType(enum.IntEnum):
    """Where an event ran. Only the CPU has any."""

    CPU = 0
    CUDA = 1


class Interval:
    """When an event ran, in microseconds of a steady clock."""

    def __init__(self, start: float, end: float) -> None:
        self.start = start
        self.end = end

    def elapsed_us(self) -> float:
        return self.end - self.start


class Kernel(NamedTuple):
    """What an event started on another device."""

    name: str
    device: int
    duration: float


def time_text(microseconds: float) -> str:
    """A time in the unit that suits it."""
    for unit, scale in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= scale:
            return f"{microseconds / scale:.3f}{unit}"
    return f"{microseconds:.3f}us"


class FunctionEvent:
    """One call. Times in microseconds; self times leave out what it called."""

    def __init__(
        self,
        id: int,
        name: str,
        thread: int,
        start_us: float,
        end_us: float,
        overload_name: str | None = None,
        fwd_thread: int | None = None,
        input_shapes: list | None = None,
        stack: list[str] | None = None,
        scope: int = 0,
        use_device: str | None = None,
        cpu_memory_usage: int = 0,
        device_memory_usage: int = 0,
        is_async: bool = False,
        is_remote: bool = False,
        sequence_nr: int = -1,
        node_id: int = -1,
        device_type: DeviceType = DeviceType.CPU,
        device_index: int = 0,
        device_resource_id: int | None = None,
        is_legacy: bool = False,
        flops: int | None = None,
        trace_name: str | None = None,
        concrete_inputs: list | None = None,
        kwinputs: dict | None = None,
        is_user_annotation: bool = False,
        is_python_function: bool = False,
        activity_type: str | None = None,
        metadata_json: str | None = None,
        flow_id: int | None = None,
        flow_type: int | None = None,
        flow_start: bool | None = None,
        external_id: int = 0,
        linked_correlation_id: int = 0,
        extra_meta: dict | None = None,
        structured_input_shapes: list | None = None,
        structured_input_strides: list | None = None,
        input_dtypes: list | None = None,
        python_id: int = -1,
        python_parent_id: int = -1,
        python_module_id: int = -1,
    ) -> None:
        given = dict(locals())
        for internal in ("self", "start_us", "end_us", "metadata_json"):
            del given[internal]
        self.__dict__.update(given)
        self._metadata_json = metadata_json
        self.time_range = Interval(start_us, end_us)
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None
        self.kernels: list[Kernel] = []
        self.count = 1
        self.depth = 0
        self.is_kernel = False

    @classmethod
    def of_record(cls, id: int, record: Record) -> FunctionEvent:
        """An event as the core records it."""
        name, start, end, memory, depth, is_operator, shapes, is_kernel, lines = record
        event = cls(
            id,
            f"aten::{name}" if is_operator else name,
            0,
            start / 1e3,
            end / 1e3,
            input_shapes=shapes,
            # The lines of the program that called for it: "train.py(12): forward".
            stack=[_LINE.sub(r"\1(\2): \3", line) for line in lines],
            cpu_memory_usage=memory,
        )
        event.depth, event.is_kernel = depth, is_kernel
        return event

    @property
    def key(self) -> str:
        """What totals are made by: its name."""
        return self.name

    @property
    def metadata_json(self) -> str | None:
        """What else is known of it, as JSON."""
        return self._metadata_json

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Adds an event that this one called."""
        _check_event("child", child)
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        """Names the event that called this one."""
        _check_event("parent", parent)
        self.cpu_parent = parent

    def append_kernel(self, name: str, device: int, duration: float) -> None:
        """Adds what it started on another device."""
        self.kernels.append(Kernel(name, device, duration))

    @property
    def cpu_time_total(self) -> float:
        return self.time_range.elapsed_us() if self.device_type == DeviceType.CPU else 0

    cpu_time = cpu_time_total

    @property
    def self_cpu_time_total(self) -> float:
        if self.is_async or self.device_type != DeviceType.CPU:
            return 0
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        if self.is_async or self.device_type != DeviceType.CPU:
            return 0
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    @property
    def device_time_total(self) -> float:
        """On the other device that `use_device` names: of its kernels and those of its children."""
        if self.is_async or not self.use_device:
            return 0
        if self.device_type != DeviceType.CPU:
            return self.time_range.elapsed_us()
        return sum(kernel.duration for kernel in self.kernels) + sum(
            child.device_time_total for child in self.cpu_children
        )

    @property
    def self_device_time_total(self) -> float:
        """The same without its children."""
        if self.is_async or not self.use_device:
            return 0
        return self.device_time_total - sum(child.device_time_total for child in self.cpu_children)

    @property
    def self_device_memory_usage(self) -> int:
        """On the other device, without its children."""
        if self.is_async or self.device_type != DeviceType.CPU:
            return 0
        children = sum(child.device_memory_usage for child in self.cpu_children)
        return self.device_memory_usage - children

    # Names from when CUDA was the only other device.
    cuda_time_total = device_time_total
    self_cuda_time_total = self_device_time_total
    self_cuda_memory_usage = self_device_memory_usage

    def __repr__(self) -> str:
        return f"<FunctionEvent name={self.name} cpu_time={time_text(self.cpu_time_total)}>"


def _check_event(role: str, value: Any) -> None:
    if not isinstance(value, FunctionEvent):
        raise AssertionError(f"Expected {role} to be a FunctionEvent, got {type(value).__name__}")
