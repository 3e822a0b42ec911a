"""The CPU: its memory, and what programs written for any device ask of one."""

from __future__ import annotations

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
