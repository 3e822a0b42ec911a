"""Borders."""

from __future__ import annotations

from rushlight import Tensor

from .. import functional as F
from .module import Module
from .utils import _ntuple

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]


class _Pad(Module):
    """`padding` holds (before, after) pairs from the last dimension on, or one number for all."""

    __constants__ = ["padding"]
    _spatial: int
    _mode: str

    def __init__(self, padding) -> None:
        super().__init__()
        self.padding = _ntuple(2 * self._spatial)(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _CircularPadNd(_Pad):
    _mode = "circular"

    def _check_input_dim(self, input: Tensor) -> None:
        allowed = (self._spatial + 1, self._spatial + 2)
        if input.dim() not in allowed:
            raise ValueError(
                f"expected {allowed[0]}D or {allowed[1]}D input (got {input.dim()}D input)"
            )

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        return F.pad(input, self.padding, "circular")


class CircularPad1d(_CircularPadNd):
    """Wraps around."""

    _spatial = 1


class CircularPad2d(_CircularPadNd):
    """Wraps around."""

    _spatial = 2


class CircularPad3d(_CircularPadNd):
    """Wraps around."""

    _spatial = 3


class _ConstantPadNd(Module):
    __constants__ = ["padding", "value"]
    _spatial: int
    value: float

    def __init__(self, padding, value: float) -> None:
        super().__init__()
        self.value = value
        self.padding = _ntuple(2 * self._spatial)(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """A constant value."""

    _spatial = 1


class ConstantPad2d(_ConstantPadNd):
    """A constant value."""

    _spatial = 2


class ConstantPad3d(_ConstantPadNd):
    """A constant value."""

    _spatial = 3


class ReflectionPad1d(_Pad):
    """Mirrors at the edge, which is not repeated."""

    _spatial, _mode = 1, "reflect"


class ReflectionPad2d(_Pad):
    """Mirrors at the edge, which is not repeated."""

    _spatial, _mode = 2, "reflect"


class ReflectionPad3d(_Pad):
    """Mirrors at the edge, which is not repeated."""

    _spatial, _mode = 3, "reflect"


class ReplicationPad1d(_Pad):
    """Repeats the edge."""

    _spatial, _mode = 1, "replicate"


class ReplicationPad2d(_Pad):
    """Repeats the edge."""

    _spatial, _mode = 2, "replicate"


class ReplicationPad3d(_Pad):
    """Repeats the edge."""

    _spatial, _mode = 3, "replicate"


class ZeroPad1d(ConstantPad1d):
    """Zeros."""

    def __init__(self, padding) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    """Zeros."""

    def __init__(self, padding) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad3d(ConstantPad3d):
    """Zeros."""

    def __init__(self, padding) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"
