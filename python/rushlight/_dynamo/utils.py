"""Counters of what compile did."""

from __future__ import annotations

import collections

from rushlight import _C

# Ours counts nothing here: see compile_statistics. Programs read and clear it.
counters: collections.defaultdict = collections.defaultdict(collections.Counter)


def compile_statistics() -> dict[str, int]:
    """How many segments ran, how many plans were made and found, what was fused."""
    return _C._compile_statistics()


def is_compile_supported(device_type: object) -> bool:
    """Whether tensors of the device can be compiled for."""
    return str(device_type).startswith("cpu")
