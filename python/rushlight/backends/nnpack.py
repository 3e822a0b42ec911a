"""NNPACK, which this build does not use: the setting is kept and changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rushlight import backends as _backends

_values = {"enabled": False}


def is_available() -> bool:
    """False."""
    return False


def set_flags(_enabled: bool) -> tuple[bool]:
    """Sets whether NNPACK may be used; gives what it was."""
    before = (_values["enabled"],)
    _values["enabled"] = _backends._boolean("set_enabled_NNPACK")(_enabled)
    return before


@contextmanager
def flags(enabled: bool = False) -> Iterator[None]:
    """Sets it within the context."""
    before = set_flags(enabled)
    try:
        with _backends._changes_allowed():
            yield
    finally:
        set_flags(*before)
