"""A module's replicas in several processes; there is no group of processes in this build."""

from __future__ import annotations

from typing import Any

from rushlight.distributed._absent import no_group
from rushlight.nn.modules.module import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """Raises ValueError: there is no group of processes."""

    def __init__(self, module: Module, *args: Any, **kwargs: Any) -> None:
        no_group("DistributedDataParallel")
