"""The fast path of multi-head attention in inference."""

from __future__ import annotations

_enabled = True


def get_fastpath_enabled() -> bool:
    """What set_fastpath_enabled was given last; attention is one path here."""
    return _enabled


def set_fastpath_enabled(value: bool) -> None:
    """Kept for programs that set it."""
    global _enabled
    _enabled = value
