"""Streams and events of any device: on the CPU, the order of the program and points in it."""

from __future__ import annotations

import time

from rushlight import _C
from rushlight._public import publish

__all__ = ["Event", "Stream", "get_device_module"]

_MODULES = ("cpu", "cuda", "mps", "mtia", "xpu")


def _cpu_device(device: object) -> _C.device:
    if device is None:
        return _C.device("cpu")
    if isinstance(device, int):
        raise RuntimeError("Cannot access accelerator device when none is available.")
    kind = device.type if isinstance(device, _C.device) else str(device).partition(":")[0]
    if kind != "cpu":
        raise RuntimeError(f"Rushlight is not linked with support for {kind} devices")
    return _C.device(device)


def _stream_of_device(device: object = None, *, priority: int = 0) -> _C.device:
    return _cpu_device(device)


def _stream_of_number(
    stream_id: int, device_index: int, device_type: int, *, priority: int = 0
) -> _C.device:
    if device_type != 0:
        raise RuntimeError(f"Stream: expected device_type 0, the CPU, but got {device_type}")
    if stream_id != 0:
        raise RuntimeError(f"Stream: expected stream_id 0, the CPU has one, but got {stream_id}")
    return _C.device("cpu")


class Stream:
    """A queue of work. The CPU has one, which is always empty: calls return when work is done."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        """Stream(device=None, *, priority=0)
        Stream(stream_id, device_index, device_type, *, priority=0)

        The stream of a device; RuntimeError for other devices than the CPU.
        """
        by_number = len(args) == 3 or "stream_id" in kwargs
        self._device = (_stream_of_number if by_number else _stream_of_device)(*args, **kwargs)

    @property
    def device(self) -> _C.device:
        """Where the work is done."""
        return self._device

    @property
    def stream_id(self) -> int:
        """0: the CPU has one stream."""
        return 0

    @property
    def device_index(self) -> int:
        """-1: there is one CPU."""
        return -1

    @property
    def device_type(self) -> int:
        """0, which stands for the CPU."""
        return 0

    def query(self) -> bool:
        """True: no work is waiting."""
        return True

    def synchronize(self) -> None:
        """Returns: no work is waiting."""

    def wait_event(self, event: Event) -> None:
        """Returns: events on the CPU have happened."""

    def wait_stream(self, other: Stream) -> None:
        """Returns: no work is waiting."""

    def record_event(self, event: Event | None = None) -> Event:
        """Records an event here, a new one if none is given."""
        event = Event(self.device) if event is None else event
        event.record(self)
        return event

    def is_capturing(self) -> bool:
        """False: work on the CPU is not recorded by streams."""
        return False

    @property
    def native_handle(self) -> int:
        """An error: the CPU's stream is no object of the system."""
        raise RuntimeError("native_handle: the CPU has no stream of the system")

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other.device == self.device

    def __hash__(self) -> int:
        return hash(("stream", self.device))

    def __repr__(self) -> str:
        return "torch.Stream device_type=cpu, device_index=-1, stream_id=0"


class Event:
    """A point in the program; with enable_timing it knows when it was reached."""

    def __init__(
        self,
        device: object = None,
        *,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
    ) -> None:
        self._device = _cpu_device(device)
        self._timed = enable_timing
        self._when: float | None = None

    @property
    def device(self) -> _C.device:
        """Where the event happens."""
        return self._device

    def record(self, stream: Stream | None = None) -> None:
        """Marks this point of the program."""
        self._when = time.perf_counter()

    def wait(self, stream: Stream | None = None) -> None:
        """Returns: a recorded event has happened."""

    def query(self) -> bool:
        """True: nothing that was recorded is waiting."""
        return True

    def synchronize(self) -> None:
        """Returns: a recorded event has happened."""

    def elapsed_time(self, other: Event) -> float:
        """Milliseconds from this event to `other`."""
        if not (self._timed and other._timed):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._when is None or other._when is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return (other._when - self._when) * 1e3

    @property
    def event_id(self) -> int:
        """0: the CPU's events are no objects of the system."""
        return 0

    def ipc_handle(self) -> bytes:
        """An error: events of the CPU are not shared between processes."""
        raise NotImplementedError("ipc_handle: events of the CPU are not shared between processes")

    @classmethod
    def from_ipc_handle(cls, device: object, ipc_handle: bytes) -> Event:
        """An error: events of the CPU are not shared between processes."""
        raise NotImplementedError(
            "from_ipc_handle: events of the CPU are not shared between processes"
        )

    def __repr__(self) -> str:
        return "torch.Event device_type=cpu, device_index=-1, event_flag=0, event_id=0"


def get_device_module(device: object = None) -> object:
    """The module of a device: rushlight.cpu, rushlight.cuda ..."""
    import importlib

    if device is None:
        device = "cpu"
    if isinstance(device, _C.device):
        kind = device.type
    elif isinstance(device, str):
        kind = device.partition(":")[0]
        if kind not in _MODULES:
            kind = _C.device(device).type
    else:
        raise RuntimeError(f"Invalid value of device '{device}', expect torch.device, str, or None")
    if kind not in _MODULES:
        raise RuntimeError(
            f"Device '{kind}' does not have a corresponding module registered as 'torch.{kind}'."
        )
    return importlib.import_module(f"rushlight.{kind}")


publish("rushlight", Event, Stream)
