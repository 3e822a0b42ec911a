"""The older name of rushlight.distributed.tensor."""

from __future__ import annotations

from rushlight.distributed import tensor
from rushlight.distributed.tensor import *  # noqa: F403

__all__ = tensor.__all__
