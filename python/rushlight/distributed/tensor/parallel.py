"""Modules in parts on several processes; there are none in this build."""

from __future__ import annotations

from rushlight.distributed._absent import define

__all__ = define(
    globals(),
    "loss_parallel parallelize_module",
    "ColwiseParallel ParallelStyle PrepareModuleInput PrepareModuleInputOutput "
    "PrepareModuleOutput RowwiseParallel SequenceParallel",
)
