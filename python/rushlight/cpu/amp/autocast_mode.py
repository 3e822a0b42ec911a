"""Regions of autocast for the CPU, under their older name."""

from rushlight.cpu.amp import autocast  # noqa: F401
