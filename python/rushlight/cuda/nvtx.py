"""Marks for NVIDIA's profilers, which see nothing here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rushlight._absent import define
from rushlight.cuda import _DEVICE

define(
    globals(),
    _DEVICE,
    """
fails mark(msg)
fails range_end(range_id)
fails range_pop()
fails range_push(msg)
fails range_start(msg)
""",
)


@contextmanager
def range(msg: str, *args: object, **kwargs: object) -> Iterator[None]:
    """A named region; an error to enter, as `range_push` is."""
    range_push(msg.format(*args, **kwargs))  # noqa: F821
    yield
