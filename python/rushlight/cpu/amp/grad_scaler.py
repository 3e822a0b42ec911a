"""Scaling of losses on the CPU, under its older name."""

from rushlight.cpu.amp import GradScaler  # noqa: F401
