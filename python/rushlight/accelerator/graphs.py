"""Recorded work of accelerators, of which there are none."""

from rushlight.accelerator import (  # noqa: F401
    Graph,
)
