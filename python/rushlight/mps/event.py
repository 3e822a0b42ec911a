"""Events of Apple's GPUs, of which there are none."""

from rushlight.mps import (  # noqa: F401
    Event,
)
