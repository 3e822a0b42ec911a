"""Marks for Apple's profilers, which see nothing here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rushlight._absent import define
from rushlight.mps import _DEVICE

define(
    globals(),
    _DEVICE,
    """
false is_capturing_metal()
false is_metal_capture_enabled()
fails start(mode='interval', wait_until_completed=False)
fails stop()
""",
)


@contextmanager
def profile(mode: str = "interval", wait_until_completed: bool = False) -> Iterator[None]:
    """A profiled region; an error to enter, as `start` is."""
    start(mode, wait_until_completed)  # noqa: F821
    yield


@contextmanager
def metal_capture(fname: str) -> Iterator[None]:
    """A region recorded to a file; an error to enter."""
    _DEVICE.fail("metal_capture")
    yield
