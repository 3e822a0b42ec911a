"""Control of NVIDIA's profilers, which see nothing here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rushlight._absent import define
from rushlight.cuda import _DEVICE

define(
    globals(),
    _DEVICE,
    """
fails start()
fails stop()
""",
)


@contextmanager
def profile() -> Iterator[None]:
    """A profiled region; an error to enter, as `start` is."""
    start()  # noqa: F821
    yield
