"""Apple's GPUs: there are none in this build, and these functions say so."""

from __future__ import annotations

from rushlight._absent import Device, define

_DEVICE = Device("MPS", RuntimeError, "Rushlight is not compiled with the MPS backend")

define(
    globals(),
    _DEVICE,
    """
class Event(enable_timing=False): elapsed_time(end_event); query(); record(); synchronize(); \
  wait()
fails compile_shader(source)
fails current_allocated_memory()
zero device_count()
fails driver_allocated_memory()
fails empty_cache()
fails get_rng_state(device='mps')
false is_available()
fails load_metallib(source)
nothing manual_seed(seed)
fails recommended_max_memory()
fails seed()
fails set_per_process_memory_fraction(fraction)
fails set_rng_state(new_state, device='mps')
fails synchronize()
""",
)

_SUBMODULES = ("event", "profiler")


def __getattr__(name: str) -> object:
    """Imports a submodule at its first use."""
    if name in _SUBMODULES:
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
