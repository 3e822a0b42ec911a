"""Random number generators: seeds and states."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rushlight._C import (
    Generator,
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)

__all__ = [
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
    "thread_safe_generator",
]


def thread_safe_generator() -> Generator | None:
    """The generator that data sets should draw from: of a data loader's worker thread, its own.

    None elsewhere; data loaders have processes as workers, so it is None everywhere.
    """
    return None


@contextmanager
def fork_rng(
    devices: object = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str | None = None,
) -> Iterator[None]:
    """Context after which the default generator goes on as if nothing had been drawn in it.

    There are no generators of other devices: `devices` and `device_type` make no difference.
    """
    if not enabled:
        yield
        return
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)
