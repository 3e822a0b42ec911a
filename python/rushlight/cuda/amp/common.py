"""Whether mixed precision can work at all on CUDA devices."""

from rushlight.cuda.amp import amp_definitely_not_available  # noqa: F401
