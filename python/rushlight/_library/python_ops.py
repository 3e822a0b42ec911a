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


def _check(holds: Any, message: str = "Expected Tensor with single nonzero value, but got zero"):
    if not holds:
        raise RuntimeError(message)


def _pin(tensor: Tensor, device: Any = None) -> Tensor:
    return tensor.pin_memory(device)


def _reduce_rows(tensor: Tensor, other: Tensor, reduce: str) -> Any:
    raise RuntimeError(
        f"_sparse_mm_reduce_impl: Expected self to be a sparse CSR tensor, got {tensor.layout}"
    )


_define("_local_scalar_dense(Tensor self) -> Scalar", _read)
_define("item(Tensor self) -> Scalar", _read)
_define("is_nonzero(Tensor self) -> bool", lambda tensor: bool(_read(tensor)))
_define("_is_all_true(Tensor self) -> Tensor", lambda tensor: tensor.all())
_define("_is_any_true(Tensor self) -> Tensor", lambda tensor: tensor.any())
_define("_assert_async(Tensor self) -> ()", lambda tensor: _check(_read(tensor)))
_define(
    "_assert_async.msg(Tensor self, str assert_msg) -> ()", lambda x, text: _check(_read(x), text)
)
_define("_assert_scalar(Scalar self, str assert_msg) -> ()", _check)
_define("sym_size.int(Tensor self, int dim) -> SymInt", lambda tensor, dim: tensor.size(dim))
_define("sym_stride.int(Tensor self, int dim) -> SymInt", lambda tensor, dim: tensor.stride(dim))
_define("sym_numel(Tensor self) -> SymInt", lambda tensor: tensor.numel())
_define("sym_storage_offset(Tensor self) -> SymInt", lambda tensor: tensor.storage_offset())
_define("_pin_memory(Tensor self, Device? device=None) -> Tensor", _pin)
_define(
    "_sparse_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) "
    "-> Tensor",
    _C._VariableFunctions.addmm,
)
_define(
    "_sparse_mm_reduce_impl(Tensor self, Tensor other, str reduce) -> (Tensor, Tensor)",
    _reduce_rows,
)
