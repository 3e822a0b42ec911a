"""Streams of CUDA devices, of which there are none."""

from rushlight.cuda import (  # noqa: F401
    Event,
    ExternalStream,
    Stream,
)
