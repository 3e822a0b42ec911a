"""Tensors in parts on several processes; there are none in this build.

No tensor is a DTensor, so programs that ask by isinstance go the way of plain tensors.
"""

from __future__ import annotations

from rushlight.distributed._absent import define

__all__ = define(
    globals(),
    "distribute_module distribute_tensor empty full ones rand randn zeros",
    "DTensor Partial Placement Replicate Shard",
)
