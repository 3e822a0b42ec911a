"""Scaling of losses on CUDA devices, under its older name."""

from rushlight.cuda.amp import GradScaler  # noqa: F401
