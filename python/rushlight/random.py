"""Random number generators: seeds and states."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rushlight._C import (
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
]


@contextmanager
def fork_rng(
    devices: object = None, enabled: bool = True, *_: object, **__: object
) -> Iterator[None]:
    """Context after which the default generator goes on as if nothing had been drawn in it."""
    if not enabled:
        yield
        return
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)
