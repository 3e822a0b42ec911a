"""Meta's accelerators: there are none in this build, and these functions say so."""

from __future__ import annotations

from collections.abc import Iterable

from rushlight._absent import Device, contexts, define

_DEVICE = Device("MTIA", RuntimeError, "Rushlight is not compiled with the MTIA backend")
contexts(globals(), _DEVICE)

define(
    globals(),
    _DEVICE,
    """
class MTIAGraph(keep_graph=False): capture_begin(pool); capture_end(); instantiate(); \
  pool(); replay(); reset()
fails attach_out_of_memory_observer(observer)
fails current_device()
fails current_stream(device=None)
fails default_stream(device=None)
zero device_count()
fails empty_cache()
fails get_device_capability(device=None)
fails get_device_properties(device=None)
fails get_rng_state(device='mtia')
list get_rng_state_all()
fails graph_pool_handle()
fails init()
fails initial_seed()
false is_available()
false is_bf16_supported(including_emulation=True)
false is_initialized()
nothing manual_seed(seed)
nothing manual_seed_all(seed)
zero max_memory_allocated(device=None)
zero memory_allocated(device=None)
mapping memory_stats(device=None)
fails record_memory_history(enabled='all', stacks='python', max_entries=0)
nothing reset_peak_memory_stats(device=None)
nothing seed()
nothing seed_all()
fails set_device(device)
fails set_rng_state(new_state, device='mtia')
fails set_stream(stream)
fails snapshot()
fails synchronize(device=None)
""",
)


def set_rng_state_all(new_states: Iterable) -> None:
    """Sets no state; an error where there is one to set."""
    if list(new_states):
        _DEVICE.fail("set_rng_state_all")


class graph:
    """Records work of a device for replay; there is none to record."""

    default_capture_stream = None

    def __init__(self, mtia_graph: object, pool: object = None, stream: object = None) -> None:
        _DEVICE.fail_to_make("graph")


_SUBMODULES = ("memory", "mtia_graph")


def __getattr__(name: str) -> object:
    """Imports a submodule at its first use."""
    if name in _SUBMODULES:
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
