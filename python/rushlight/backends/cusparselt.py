"""cuSPARSELt, which this build does not use."""

from __future__ import annotations


def is_available() -> bool:
    """False."""
    return False


def version() -> int | None:
    """None: there is none."""
    return None


def get_max_alg_id() -> int | None:
    """None: there are no algorithms."""
    return None
