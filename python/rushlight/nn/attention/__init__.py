"""Choosing how attention is computed, and attention with masks of other kinds.

There is one implementation here, so the choice of a backend changes nothing: scores are never held
whole, with any of them. What scripts set is kept, and can be asked for again.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum

from . import bias, experimental, flex_attention, varlen

__all__ = [
    "SDPBackend",
    "sdpa_kernel",
    "WARN_FOR_UNFUSED_KERNELS",
    "register_flash_attention_impl",
    "activate_flash_attention_impl",
    "list_flash_attention_impls",
    "current_flash_attention_impl",
    "restore_flash_attention_impl",
    "bias",
    "experimental",
    "flex_attention",
    "varlen",
]

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(IntEnum):
    """Implementations of attention, by PyTorch's names and numbers."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


_ALL = (
    SDPBackend.CUDNN_ATTENTION,
    SDPBackend.FLASH_ATTENTION,
    SDPBackend.EFFICIENT_ATTENTION,
    SDPBackend.MATH,
    SDPBackend.OVERRIDEABLE,
)
_enabled: contextvars.ContextVar[tuple[SDPBackend, ...]] = contextvars.ContextVar(
    "sdpa_backends", default=_ALL
)


def _cur_sdpa_kernel_backends(with_priority: bool = False) -> list[SDPBackend]:
    """The backends that are allowed now."""
    return list(_enabled.get())


@contextlib.contextmanager
def sdpa_kernel(
    backends: list[SDPBackend] | SDPBackend, set_priority: bool = False
) -> Iterator[None]:
    """Allows these backends of scaled_dot_product_attention only."""
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances, got "
            f"{type(backends).__name__}"
        )
    wanted: Iterable[SDPBackend] = [backends] if isinstance(backends, SDPBackend) else backends
    token = _enabled.set(tuple(dict.fromkeys(wanted)))
    try:
        yield
    finally:
        _enabled.reset(token)


# ---- implementations that others register ------------------------------------------------------

_implementations: dict[str, Callable] = {}
_active: list = [None, None]  # the name, and what its function gave


def register_flash_attention_impl(impl: str, *, register_fn: Callable) -> None:
    """Names a function that installs another implementation of flash attention."""
    _implementations[impl] = register_fn


def list_flash_attention_impls() -> list[str]:
    """The names that were registered."""
    return sorted(_implementations)


def current_flash_attention_impl() -> str | None:
    """The name of the implementation that is active, None for the own one."""
    return _active[0]


def activate_flash_attention_impl(impl: str) -> None:
    """Installs an implementation. ValueError for a name that was not registered."""
    if impl not in _implementations:
        raise ValueError(
            f"Unknown flash attention impl '{impl}'. "
            f"Available implementations: {list_flash_attention_impls()}"
        )
    restore_flash_attention_impl(_raise_warn=False)
    _active[:] = [impl, _implementations[impl]()]


def restore_flash_attention_impl(_raise_warn: bool = True) -> None:
    """Takes the active implementation away again."""
    name, handle = _active
    if name is None:
        if _raise_warn:
            import warnings

            warnings.warn("no flash attention implementation was activated", stacklevel=2)
        return
    if handle is not None:
        handle.remove()
    _active[:] = [None, None]
