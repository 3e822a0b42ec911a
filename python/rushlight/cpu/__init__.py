"""The CPU: its memory, and what programs written for any device ask of one."""

from __future__ import annotations

from types import MappingProxyType, TracebackType

from rushlight import _C


def is_available() -> bool:
    """True."""
    return True


def device_count() -> int:
    """One."""
    return 1


def current_device() -> str:
    """Its name."""
    return "cpu"


def set_device(device: object) -> None:
    """Nothing to choose: there is one CPU."""


def is_initialized() -> bool:
    """True."""
    return True


def synchronize(device: object = None) -> None:
    """Returns: operators on the CPU are done when they return."""


def capability_level() -> str:
    """The instruction set that kernels are chosen for: base, v3, v4 or v4amx."""
    return _C._cpu_level()


def memory_stats() -> dict[str, int]:
    """Live, cached and peak bytes of the allocator, and how many blocks it gave."""
    return _C._memory_statistics()


def memory_allocated() -> int:
    """Bytes that tensors hold."""
    return _C._memory_statistics()["live_bytes"]


def memory_cached() -> int:
    """Bytes kept for the tensors to come."""
    return _C._memory_statistics()["cached_bytes"]


def max_memory_allocated() -> int:
    """The most bytes that tensors held since reset_peak_memory_stats."""
    return _C._memory_statistics()["peak_bytes"]


def reset_peak_memory_stats() -> None:
    """Starts the peak over."""
    _C._memory_reset_peak()


def empty_cache() -> None:
    """Gives cached memory back to the system."""
    _C._memory_empty_cache()


def memory_limit() -> int:
    """Bytes that tensors may hold; 0: no limit."""
    return _C._memory_limit()


def set_memory_limit(limit: int) -> None:
    """Makes allocations past `limit` bytes raise OutOfMemoryError; 0: no limit."""
    _C._memory_set_limit(limit)


# What /proc/cpuinfo calls the extensions that programs ask for by PyTorch's names.
_EXTENSIONS = {
    "sse3": "pni",
    "ssse3": "ssse3",
    "sse4_1": "sse4_1",
    "sse4_2": "sse4_2",
    "sse4a": "sse4a",
    "avx": "avx",
    "avx2": "avx2",
    "avx_vnni": "avx_vnni",
    "avx512_f": "avx512f",
    "avx512_cd": "avx512cd",
    "avx512_dq": "avx512dq",
    "avx512_bw": "avx512bw",
    "avx512_vl": "avx512vl",
    "avx512_ifma": "avx512ifma",
    "avx512_vbmi": "avx512vbmi",
    "avx512_vbmi2": "avx512_vbmi2",
    "avx512_bitalg": "avx512_bitalg",
    "avx512_vpopcntdq": "avx512_vpopcntdq",
    "avx512_vnni": "avx512_vnni",
    "avx512_bf16": "avx512_bf16",
    "avx512_fp16": "avx512_fp16",
    "avx512_vp2intersect": "avx512_vp2intersect",
    "fma3": "fma",
    "f16c": "f16c",
    "bmi": "bmi1",
    "bmi2": "bmi2",
    "popcnt": "popcnt",
    "lzcnt": "abm",
    "aes": "aes",
    "sha": "sha_ni",
    "clflush": "clflush",
    "amx_tile": "amx_tile",
    "amx_int8": "amx_int8",
    "amx_bf16": "amx_bf16",
    "amx_fp16": "amx_fp16",
}


def get_capabilities() -> MappingProxyType:
    """What the processor can do, by name; `architecture` names its kind."""
    import platform

    flags: set[str] = set()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                name, _, value = line.partition(":")
                if name.strip() in ("flags", "Features"):
                    flags = set(value.split())
                    break
    except OSError:
        pass
    found: dict[str, object] = {"architecture": platform.machine()}
    found.update({name: spelled in flags for name, spelled in _EXTENSIONS.items()})
    return MappingProxyType(found)


class Stream:
    """The order in which the CPU works: the order of the program."""

    def __init__(self, priority: int = -1) -> None:
        self.priority = priority

    def wait_stream(self, stream: object) -> None:
        """Returns: all work that was asked for is done."""

    def wait_event(self, event: object) -> None:
        """Returns: all work that was asked for is done."""

    def record_event(self) -> Event:
        """An event that has happened."""
        return Event()


class Event:
    """A point in the program that has been reached."""

    def query(self) -> bool:
        """True: work on the CPU is done when its call returns."""
        return True

    def record(self, stream: object = None) -> None:
        """Marks this point of the program."""

    def synchronize(self) -> None:
        """Returns: all work that was asked for is done."""

    def wait(self, stream: object = None) -> None:
        """Returns: all work that was asked for is done."""


_default_stream = Stream()
_current_stream = _default_stream


class StreamContext:
    """Makes a stream the current one; None leaves it as it is."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        global _current_stream
        if self.stream is None:
            return
        self._previous = _current_stream
        _current_stream = self.stream

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        global _current_stream
        if self.stream is not None:
            _current_stream = self._previous


def stream(stream: Stream | None) -> StreamContext:
    """The context in which `stream` is the current one."""
    return StreamContext(stream)


def current_stream(device: object = None) -> Stream:
    """The stream that StreamContext chose, or the default one."""
    return _current_stream


def __getattr__(name: str) -> object:
    """Imports rushlight.cpu.amp at its first use."""
    if name == "amp":
        import importlib

        return importlib.import_module(f"{__name__}.amp")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
