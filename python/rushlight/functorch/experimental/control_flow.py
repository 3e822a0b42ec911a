"""Branches and maps, under their former name."""

from rushlight._higher_order_ops import cond, map

__all__ = ["cond", "map"]
