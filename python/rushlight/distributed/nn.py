"""Collectives that gradients pass through; there is no group of processes in this build."""

from __future__ import annotations

from rushlight.distributed._absent import define

__all__ = define(
    globals(),
    "all_gather all_reduce all_to_all all_to_all_single broadcast gather reduce reduce_scatter "
    "scatter",
)
