"""MIOpen, which this build does not use: the setting is kept and changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rushlight import backends as _backends

_values = {"immediate": False}
_immediate_value = _backends._boolean("set_immediate_miopen")


def set_flags(_immediate: bool | None = None) -> tuple[bool]:
    """Sets whether MIOpen chooses without measuring; gives what it was."""
    before = (_values["immediate"],)
    if _immediate is not None:
        _values["immediate"] = _immediate_value(_immediate)
    return before


@contextmanager
def flags(immediate: bool = False) -> Iterator[None]:
    """Sets it within the context."""
    before = set_flags(immediate)
    try:
        with _backends._changes_allowed():
            yield
    finally:
        set_flags(*before)


class MiopenModule(_backends.PropModule):
    """This module, with its setting."""

    immediate = _backends._setting(_values, "immediate", _immediate_value)


_backends._install(__name__, MiopenModule)
