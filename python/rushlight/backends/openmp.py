"""OpenMP, which this build does not use: threads come from a pool of its own."""

from __future__ import annotations


def is_available() -> bool:
    """False."""
    return False
