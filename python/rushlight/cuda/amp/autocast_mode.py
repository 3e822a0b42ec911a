"""Regions of autocast for CUDA devices, under their older name."""

from rushlight.cuda.amp import autocast, custom_bwd, custom_fwd  # noqa: F401
