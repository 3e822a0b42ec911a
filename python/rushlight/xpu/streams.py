"""Streams of Intel GPUs, of which there are none."""

from rushlight.xpu import (  # noqa: F401
    Event,
    Stream,
)
