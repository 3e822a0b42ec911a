"""The functions of groups of processes, by the module's name that programs import them from."""

from __future__ import annotations

from rushlight import distributed
from rushlight.distributed import *  # noqa: F403

__all__ = distributed.__all__
