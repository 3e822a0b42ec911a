"""XNNPACK, which this build does not use."""

from __future__ import annotations

from rushlight import backends as _backends


def _refuse(value: object) -> None:
    raise RuntimeError("Assignment not supported")


class XNNPACKEngine(_backends.PropModule):
    """This module, with its settings."""

    enabled = _backends.ContextProp(lambda: False, _refuse)


_backends._install(__name__, XNNPACKEngine)
