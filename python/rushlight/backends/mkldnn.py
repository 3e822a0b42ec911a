"""oneDNN, which this build does not use: settings are kept and change nothing, but for
`fp32_precision` here and of `matmul`: see `set_float32_matmul_precision`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rushlight import backends as _backends

VERBOSE_OFF = 0
VERBOSE_ON = 1
VERBOSE_ON_CREATION = 2

_values: dict[str, Any] = {
    "enabled": True,
    "deterministic": False,
    "allow_tf32": None,
    "fp32_precision": "none",
}
_CHECKS = {
    "enabled": _backends._boolean("set_enabled_mkldnn"),
    "deterministic": _backends._boolean("set_deterministic_mkldnn"),
    "allow_tf32": _backends._boolean("set_allow_tf32_mkldnn"),
    "fp32_precision": _backends._precision,
}
conv = _backends._FP32Precision()
matmul = _backends._FP32Precision()
rnn = _backends._FP32Precision()


def is_available() -> bool:
    """False: kernels are Rushlight's own."""
    return False


def is_acl_available() -> bool:
    """False."""
    return False


class verbose:
    """oneDNN's messages; there is no oneDNN to give any."""

    def __init__(self, level: int) -> None:
        self.level = level

    def __enter__(self) -> verbose:
        if self.level != VERBOSE_OFF:
            raise RuntimeError("mkldnn.verbose: Rushlight is built without oneDNN")
        return self

    def __exit__(self, *_: object) -> bool:
        return False


def set_flags(
    _enabled: bool | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
    _fp32_precision: str = "none",
) -> tuple:
    """Sets those that are not None; gives what all of them were."""
    before = tuple(_values.values())
    given = (_enabled, _deterministic, _allow_tf32, _fp32_precision)
    for name, value in zip(_values, given, strict=True):
        if value is not None:
            _values[name] = _CHECKS[name](value)
    _backends._apply_precision()
    return before


@contextmanager
def flags(
    enabled: bool = False,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
) -> Iterator[None]:
    """Sets all of them within the context."""
    before = dict(_values)
    set_flags(enabled, deterministic, allow_tf32, fp32_precision)
    try:
        with _backends._changes_allowed():
            yield
    finally:
        _values.update(before)
        _backends._apply_precision()


class MkldnnModule(_backends.PropModule):
    """This module, with its settings."""

    conv = conv
    matmul = matmul
    rnn = rnn
    enabled = _backends._setting(_values, "enabled", _CHECKS["enabled"])
    deterministic = _backends._setting(_values, "deterministic", _CHECKS["deterministic"])
    allow_tf32 = _backends._setting(_values, "allow_tf32", _CHECKS["allow_tf32"])
    fp32_precision = _backends._setting(_values, "fp32_precision", _backends._precision)

    def is_available(self) -> bool:
        """False."""
        return is_available()


_backends._install(__name__, MkldnnModule)
