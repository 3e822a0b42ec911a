"""Engines for quantised operators, of which there are none."""

from __future__ import annotations

from rushlight import backends as _backends


def _refuse(value: object) -> None:
    raise RuntimeError(
        f"quantized engine {value} is not supported: there are no quantised operators"
    )


class QuantizedEngine(_backends.PropModule):
    """This module, with its settings."""

    engine = _backends.ContextProp(lambda: "none", _refuse)
    supported_engines = property(lambda self: ["none"])


_backends._install(__name__, QuantizedEngine)
