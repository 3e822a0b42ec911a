"""The older name of rushlight.distributed.tensor.experimental."""

from __future__ import annotations

from rushlight.distributed.tensor import experimental
from rushlight.distributed.tensor.experimental import *  # noqa: F403

__all__ = experimental.__all__
