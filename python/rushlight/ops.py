"""Operators of the table by name and overload: rushlight.ops.aten.add.Tensor."""

from rushlight._ops import _Namespace

aten = _Namespace("aten")
