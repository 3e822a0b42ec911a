"""CUDA devices: there are none in this build, and these functions say so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rushlight._absent import Device, contexts, define, no_class
from rushlight._C import OutOfMemoryError  # noqa: F401

_DEVICE = Device("CUDA", AssertionError, "Rushlight is not compiled with CUDA enabled")
contexts(globals(), _DEVICE)

define(
    globals(),
    _DEVICE,
    """
class BFloat16Storage(*args, wrap_storage=None, dtype=None, device=None, _internal=False): \
  dtype; from_buffer(*args, **kwargs)
class BoolStorage(*args, wrap_storage=None, dtype=None, device=None, _internal=False): \
  dtype; from_buffer(*args, **kwargs)
class ByteStorage(*args, wrap_storage=None, dtype=None, device=None, _internal=False): \
  dtype; from_buffer(*args, **kwargs)
class CUDAGraph(keep_graph=False): capture_begin(pool=None, capture_error_mode='global', \
  check_input_liveness=False); capture_end(); debug_dump(debug_path); enable_debug_mode(); \
  get_graph_data(); instantiate(); pool(); raw_cuda_graph(); raw_cuda_graph_exec(); \
  replay(); reset()
class CUDAPluggableAllocator(path_to_so_file, alloc_fn_name, free_fn_name): allocator()
class CharStorage(*args, wrap_storage=None, dtype=None, device=None, _internal=False): \
  dtype; from_buffer(*args, **kwargs)
class ComplexDoubleStorage(*args, wrap_storage=None, dtype=None, device=None, \
  _internal=False): dtype; from_buffer(*args, **kwargs)
class ComplexFloatStorage(*args, wrap_storage=None, dtype=None, device=None, \
  _internal=False): dtype; from_buffer(*args, **kwargs)
class DoubleStorage(*args, wrap_storage=None, dtype=None, device=None, _internal=False): \
  dtype; from_buffer(*args, **kwargs)
class Event(enable_timing=False, blocking=False, interprocess=False, external=False): \
  elapsed_time(end_event); from_ipc_handle(device, handle); ipc_handle(); query(); \
  record(stream=None); synchronize(); wait(stream=None)
class ExternalStream(stream_ptr, device=None, **kwargs)
class FloatStorage(*args, wrap_storage=None, dtype=None, device=None, _internal=False): \
  dtype; from_buffer(*args, **kwargs)
class GreenContext(): Stream(); create(*, num_sms=None, workqueue_scope=None, \
  workqueue_concurrency_limit=None, device_id=None); \
  max_workqueue_concurrency(device_id=None); pop_context(); set_context()
class HalfStorage(*args, wrap_storage=None, dtype=None, device=None, _internal=False): \
  dtype; from_buffer(*args, **kwargs)
class IntStorage(*args, wrap_storage=None, dtype=None, device=None, _internal=False): dtype; \
  from_buffer(*args, **kwargs)
class LongStorage(*args, wrap_storage=None, dtype=None, device=None, _internal=False): \
  dtype; from_buffer(*args, **kwargs)
class MemPool(allocator=None, use_on_oom=False, no_split=False): id; \
  snapshot(include_traces=True); use_count()
class ShortStorage(*args, wrap_storage=None, dtype=None, device=None, _internal=False): \
  dtype; from_buffer(*args, **kwargs)
class Stream(device=None, priority=0, **kwargs): query(); record_event(event=None); \
  synchronize(); wait_event(event); wait_stream(stream)
fails caching_allocator_alloc(size, device=None, stream=None)
fails caching_allocator_delete(mem_ptr)
nothing caching_allocator_enable(value=True)
fails can_device_access_peer(device, peer_device)
fails change_current_allocator(allocator)
fails check_error(res)
fails clock_rate(device=None)
fails cudart()
fails current_blas_handle()
fails current_device()
fails current_solver_handle()
fails current_stream(device=None)
fails default_stream(device=None)
zero device_count()
fails device_memory_used(device=None)
nothing empty_cache()
fails get_allocator_backend()
list get_arch_list()
fails get_device_capability(device=None)
fails get_device_name(device=None)
fails get_device_properties(device=None)
text get_gencode_flags()
fails get_per_process_memory_fraction(device=None)
fails get_rng_state(device='cuda')
list get_rng_state_all()
fails get_stream_from_external(data_ptr, device=None)
fails get_sync_debug_mode()
fails graph_pool_handle()
mapping host_memory_stats()
mapping host_memory_stats_as_nested_dict()
fails init()
fails initial_seed()
fails ipc_collect()
false is_available()
false is_bf16_supported(including_emulation=True)
false is_initialized()
false is_tf32_supported()
fails list_gpu_processes(device=None)
fails make_graphed_callables(callables, sample_args, num_warmup_iters=3, \
  allow_unused_input=False, pool=None)
nothing manual_seed(seed)
nothing manual_seed_all(seed)
zero max_memory_allocated(device=None)
zero max_memory_cached(device=None)
zero max_memory_reserved(device=None)
fails mem_get_info(device=None)
zero memory_allocated(device=None)
zero memory_cached(device=None)
zero memory_reserved(device=None)
list memory_snapshot(mempool_id=None, include_traces=True)
mapping memory_stats(device=None)
mapping memory_stats_as_nested_dict(device=None)
fails memory_summary(device=None, abbreviated=False)
fails memory_usage(device=None)
fails power_draw(device=None)
nothing reset_accumulated_host_memory_stats()
nothing reset_accumulated_memory_stats(device=None)
nothing reset_max_memory_allocated(device=None)
nothing reset_max_memory_cached(device=None)
nothing reset_peak_host_memory_stats()
nothing reset_peak_memory_stats(device=None)
nothing seed()
nothing seed_all()
fails set_device(device)
fails set_per_process_memory_fraction(fraction, device=None)
fails set_rng_state(new_state, device='cuda')
fails set_stream(stream)
fails set_sync_debug_mode(debug_mode)
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


@contextmanager
def caching_allocator_disabled() -> Iterator[None]:
    """A region without caching of device memory, of which there is none."""
    yield


class graph:
    """Records work of a device for replay; there is none to record."""

    default_capture_stream = None

    def __init__(
        self,
        cuda_graph: object,
        pool: object = None,
        stream: object = None,
        capture_error_mode: str = "global",
        enable_annotations: bool = False,
        check_input_liveness: bool = False,
    ) -> None:
        _DEVICE.fail_to_make("graph")


class CudaError(RuntimeError):
    """What a CUDA runtime reports; no function here raises it."""

    def __init__(self, code: int) -> None:
        super().__init__(f"CUDA error ({code})")


class DeferredCudaCallError(Exception):
    """What a call put off until CUDA starts raises; none is put off here."""


class cudaStatus:
    """Codes of the CUDA runtime."""

    SUCCESS = 0
    ERROR_NOT_READY = 34


default_generators: tuple = ()
has_half = False
has_magma = False

_LEGACY_TYPES = (
    "BFloat16Storage",
    "BFloat16Tensor",
    "BoolStorage",
    "BoolTensor",
    "ByteStorage",
    "ByteTensor",
    "CharStorage",
    "CharTensor",
    "ComplexDoubleStorage",
    "ComplexFloatStorage",
    "DoubleStorage",
    "DoubleTensor",
    "FloatStorage",
    "FloatTensor",
    "HalfStorage",
    "HalfTensor",
    "IntStorage",
    "IntTensor",
    "LongStorage",
    "LongTensor",
    "ShortStorage",
    "ShortTensor",
)
globals().update({name: no_class(name, __name__, _DEVICE) for name in _LEGACY_TYPES})

_SUBMODULES = (
    "amp",
    "comm",
    "gds",
    "graphs",
    "green_contexts",
    "jiterator",
    "memory",
    "nccl",
    "nvtx",
    "profiler",
    "random",
    "sparse",
    "streams",
    "tunable",
)


def __getattr__(name: str) -> object:
    """Imports a submodule at its first use."""
    if name in _SUBMODULES:
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
