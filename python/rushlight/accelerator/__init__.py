"""The accelerator of this machine: none is in this build, and these functions say so."""

from __future__ import annotations

from rushlight._absent import Device, NoContext, define

_DEVICE = Device(
    "accelerator", RuntimeError, "Cannot access accelerator device when none is available"
)

define(
    globals(),
    _DEVICE,
    """
class Graph(keep_graph=False, *, pool=None, capture_error_mode='default'): capture_begin(); \
  capture_end(); debug_dump(path); enable_debug_mode(); instantiate(); pool(); replay(); \
  reset()
fails current_device_idx()
fails current_device_index()
fails current_stream(device=None, /)
zero device_count()
fails empty_cache()
fails empty_host_cache()
fails get_device_capability(device=None, /)
fails get_memory_info(device_index=None, /)
false is_available()
fails max_memory_allocated(device_index=None, /)
fails max_memory_reserved(device_index=None, /)
fails memory_allocated(device_index=None, /)
fails memory_reserved(device_index=None, /)
fails memory_stats(device_index=None, /)
fails reset_accumulated_memory_stats(device_index=None, /)
fails reset_peak_memory_stats(device_index=None, /)
fails set_device_idx(device, /)
fails set_device_index(device, /)
fails set_stream(stream)
fails synchronize(device=None, /)
""",
)


def current_accelerator(check_available: bool = False) -> None:
    """None: there is no accelerator; programs then use the CPU."""
    return None


class device_index(NoContext):
    """Makes a device current; None means none."""

    _device = _DEVICE

    def __init__(self, device: int | None, /) -> None:
        super().__init__(device)


_SUBMODULES = ("graphs", "memory")


def __getattr__(name: str) -> object:
    """Imports a submodule at its first use."""
    if name in _SUBMODULES:
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
