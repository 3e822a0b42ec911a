"""CUDA devices: there are none in this build, and these functions say so."""

from __future__ import annotations

from collections.abc import Iterable

from rushlight._C import OutOfMemoryError  # noqa: F401


def is_available() -> bool:
    """False."""
    return False


def is_initialized() -> bool:
    """False."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """False."""
    return False


def device_count() -> int:
    """Zero."""
    return 0


def manual_seed(seed: int) -> None:
    """Seeds no generator, as there is no device."""


def manual_seed_all(seed: int) -> None:
    """Seeds no generator, as there is no device."""


def empty_cache() -> None:
    """Frees nothing, as nothing is held."""


def memory_allocated(device: object = None) -> int:
    """Zero."""
    return 0


def max_memory_allocated(device: object = None) -> int:
    """Zero."""
    return 0


def get_rng_state_all() -> list:
    """No states."""
    return []


def set_rng_state_all(new_states: Iterable) -> None:
    """Sets no state; an error where there is one to set."""
    if list(new_states):
        _fail()


def _fail() -> None:
    raise AssertionError("Rushlight is not compiled with CUDA enabled")


def current_device() -> int:
    """An error: there is no device."""
    _fail()


def set_device(device: object) -> None:
    """An error: there is no device."""
    _fail()


def synchronize(device: object = None) -> None:
    """An error: there is no device."""
    _fail()


def get_device_name(device: object = None) -> str:
    """An error: there is no device."""
    _fail()


def get_device_properties(device: object = None) -> object:
    """An error: there is no device."""
    _fail()
