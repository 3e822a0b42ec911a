"""cuDNN, which this build does not use: settings are kept and change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import rushlight as torch
from rushlight import backends as _backends

CUDNN_TENSOR_DTYPES = {torch.half, torch.float, torch.double}

_values: dict[str, Any] = {
    "enabled": True,
    "benchmark": False,
    "benchmark_limit": None,
    "deterministic": False,
    "allow_tf32": True,
    "fp32_precision": "none",
    "depthwise_kernel": "auto",
}


def version() -> int | None:
    """None: there is no cuDNN."""
    return None


def is_available() -> bool:
    """False."""
    return False


def is_acceptable(tensor: torch.Tensor) -> bool:
    """False: cuDNN could not take the tensor."""
    return False


def set_flags(
    _enabled: bool | None = None,
    _benchmark: bool | None = None,
    _benchmark_limit: int | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
    _fp32_precision: str = "none",
    _depthwise_kernel: str | None = None,
) -> tuple:
    """Sets those that are not None; gives what all of them were."""
    before = tuple(_values.values())
    given = (
        _enabled,
        _benchmark,
        _benchmark_limit,
        _deterministic,
        _allow_tf32,
        _fp32_precision,
        _depthwise_kernel,
    )
    for name, value in zip(_values, given, strict=True):
        if value is not None:
            _values[name] = _CHECKS[name](value)
    return before


@contextmanager
def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
    depthwise_kernel: str = "auto",
) -> Iterator[None]:
    """Sets all of them within the context."""
    before = dict(_values)
    set_flags(
        enabled,
        benchmark,
        benchmark_limit,
        deterministic,
        allow_tf32,
        fp32_precision,
        depthwise_kernel,
    )
    try:
        with _backends._changes_allowed():
            yield
    finally:
        _values.update(before)


def _limit(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise RuntimeError(f"benchmark_limit expects an int, but got {type(value).__name__}")
    return value


def _kernel(value: Any) -> str:
    if value not in ("auto", "cudnn", "native"):
        raise RuntimeError(f"depthwise_kernel: expected 'auto', 'cudnn' or 'native', got {value!r}")
    return value


_CHECKS = {
    "enabled": _backends._boolean("set_enabled_cudnn"),
    "benchmark": _backends._boolean("set_benchmark_cudnn"),
    "benchmark_limit": _limit,
    "deterministic": _backends._boolean("set_deterministic_cudnn"),
    "allow_tf32": _backends._boolean("set_allow_tf32_cudnn"),
    "fp32_precision": _backends._precision,
    "depthwise_kernel": _kernel,
}

conv = _backends._FP32Precision("tf32")


class CudnnModule(_backends.PropModule):
    """This module, with its settings."""

    conv = conv
    enabled = _backends._setting(_values, "enabled", _CHECKS["enabled"])
    benchmark = _backends._setting(_values, "benchmark", _CHECKS["benchmark"])
    benchmark_limit = _backends._setting(_values, "benchmark_limit", _limit)
    deterministic = _backends._setting(_values, "deterministic", _CHECKS["deterministic"])
    allow_tf32 = _backends._setting(_values, "allow_tf32", _CHECKS["allow_tf32"])
    fp32_precision = _backends._setting(_values, "fp32_precision", _backends._precision)
    depthwise_kernel = _backends._setting(_values, "depthwise_kernel", _kernel)


def __getattr__(name: str) -> object:
    """Imports rushlight.backends.cudnn.rnn at its first use."""
    if name == "rnn":
        import importlib

        return importlib.import_module(f"{__name__}.rnn")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_backends._install(__name__, CudnnModule)
