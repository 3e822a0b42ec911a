"""Operators of aten that are written in Python: those that give numbers instead of tensors."""

from __future__ import annotations

from typing import Any

from rushlight import _C, Tensor
from rushlight._library import registry
from rushlight._library.schema import Schema


def _read(tensor: Tensor) -> Any:
    before = _C._set_dispatch_enabled(False)
    try:
        return tensor.item()
    finally:
        _C._set_dispatch_enabled(before)


def _define(schema: str, kernel: Any) -> None:
    op = registry.Operator("aten", Schema(schema))
    op.kernels["default"] = kernel
    registry.add(op)


_define("_local_scalar_dense(Tensor self) -> Scalar", _read)
_define("sym_size.int(Tensor self, int dim) -> SymInt", lambda tensor, dim: tensor.size(dim))
