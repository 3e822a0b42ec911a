"""Intel GPUs: there are none in this build, and these functions say so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rushlight._absent import Device, contexts, define

_DEVICE = Device("XPU", AssertionError, "Rushlight is not compiled with XPU enabled")
contexts(globals(), _DEVICE)

define(
    globals(),
    _DEVICE,
    """
class Event(enable_timing=False): elapsed_time(end_event); query(); record(stream=None); \
  synchronize(); wait(stream=None)
class MemPool(allocator=None, use_on_oom=False): allocator; id; snapshot(); use_count()
class Stream(device=None, priority=0, **kwargs): query(); record_event(event=None); \
  synchronize(); wait_event(event); wait_stream(stream)
class XPUGraph(keep_graph=False): capture_begin(pool=None); capture_end(); \
  debug_dump(debug_path); enable_debug_mode(); instantiate(); pool(); raw_xpu_graph(); \
  raw_xpu_graph_exec(); replay(); reset()
class XPUPluggableAllocator(path_to_lib_file, alloc_fn_name, free_fn_name): allocator()
fails can_device_access_peer(device, peer)
fails change_current_allocator(allocator)
fails clock_rate(device=None)
fails current_device()
fails current_stream(device=None)
zero device_count()
fails device_memory_used(device=None)
nothing empty_cache()
list get_arch_list()
fails get_device_capability(device=None)
fails get_device_name(device=None)
fails get_device_properties(device=None)
text get_gencode_flags()
fails get_per_process_memory_fraction(device=None)
fails get_rng_state(device='xpu')
list get_rng_state_all()
fails get_stream_from_external(data_ptr, device=None)
fails graph_pool_handle()
fails init()
fails initial_seed()
false is_available()
false is_bf16_supported(including_emulation=True)
false is_initialized()
false is_tf32_supported()
fails make_graphed_callables(callables, sample_args, num_warmup_iters=3, \
  allow_unused_input=False, pool=None)
nothing manual_seed(seed)
nothing manual_seed_all(seed)
zero max_memory_allocated(device=None)
zero max_memory_reserved(device=None)
fails mem_get_info(device=None)
zero memory_allocated(device=None)
zero memory_reserved(device=None)
list memory_snapshot(mempool_id=None)
mapping memory_stats(device=None)
mapping memory_stats_as_nested_dict(device=None)
fails memory_usage(device=None)
fails power_draw(device=None)
nothing reset_accumulated_memory_stats(device=None)
nothing reset_peak_memory_stats(device=None)
nothing seed()
nothing seed_all()
fails set_device(device)
fails set_per_process_memory_fraction(fraction, device=None)
fails set_rng_state(new_state, device='xpu')
fails set_stream(stream)
fails synchronize(device=None)
fails temperature(device=None)
fails utilization(device=None)
""",
)


def set_rng_state_all(new_states: Iterable) -> None:
    """Sets no state; an error where there is one to set."""
    if list(new_states):
        _DEVICE.fail("set_rng_state_all")


@contextmanager
def use_mem_pool(pool: object, device: object = None) -> Iterator[None]:
    """An error to enter: there are no memory pools."""
    _DEVICE.fail("use_mem_pool")
    yield


def is_current_stream_capturing() -> bool:
    """False: nothing is recorded."""
    return False


class graph:
    """Records work of a device for replay; there is none to record."""

    default_capture_stream = None

    def __init__(self, xpu_graph: object, pool: object = None, stream: object = None) -> None:
        _DEVICE.fail_to_make("graph")


default_generators: tuple = ()

_SUBMODULES = ("graphs", "memory", "random", "streams")


def __getattr__(name: str) -> object:
    """Imports a submodule at its first use."""
    if name in _SUBMODULES:
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
