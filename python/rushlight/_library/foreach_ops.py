"""The _foreach_ functions as operators of aten: their overloads by what the operands are."""

from __future__ import annotations

from rushlight import _foreach
from rushlight._library.python_ops import _define

_IN_ONE_TENSOR = ("add", "mul", "div")
_SINGLE = (
    "_foreach_norm.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]",
    "_foreach_max(Tensor[] self) -> Tensor[]",
    "_foreach_clone(Tensor[] self) -> Tensor[]",
    "_foreach_mm(Tensor[] self, Tensor[] mat2) -> Tensor[]",
    "_foreach_zero_(Tensor(a!)[] self) -> ()",
    "_foreach_copy_(Tensor(a!)[] self, Tensor[] src, bool non_blocking=False) -> ()",
    "_foreach_pow.ScalarAndTensor(Scalar self, Tensor[] exponent) -> Tensor[]",
)


def _both_forms(name: str, overload: str, operands: str) -> None:
    """Defines the form that gives new tensors, and the one that writes those of `self`."""
    kind = f".{overload}" if overload else ""
    _add(f"_foreach_{name}{kind}(Tensor[] self{operands}) -> Tensor[]")
    _add(f"_foreach_{name}_{kind}(Tensor(a!)[] self{operands}) -> ()")


def _add(schema: str) -> None:
    _define(schema, getattr(_foreach, schema.split("(")[0].split(".")[0]))


for _name in _foreach._UNARY:
    _both_forms(_name, "", "")
for _name, (_argument, *_) in _foreach._BINARY.items():
    _alpha = ", *, Scalar alpha=1" if _name in ("add", "sub") else ""
    _scalar = "scalar" if _argument == "other" else _argument
    _scalars = "scalars" if _argument == "other" else _argument
    _both_forms(_name, "List", f", Tensor[] {_argument}{_alpha}")
    _both_forms(_name, "Scalar", f", Scalar {_scalar}")
    _both_forms(_name, "ScalarList", f", Scalar[] {_scalars}")
    if _name in _IN_ONE_TENSOR:
        _both_forms(_name, "Tensor", f", Tensor other{_alpha if _name == 'add' else ''}")
for _name in ("addcmul", "addcdiv"):
    _pair = ", Tensor[] tensor1, Tensor[] tensor2"
    _both_forms(_name, "Scalar", f"{_pair}, Scalar value=1")
    _both_forms(_name, "ScalarList", f"{_pair}, Scalar[] scalars")
    _both_forms(_name, "Tensor", f"{_pair}, Tensor scalars")
_both_forms("lerp", "List", ", Tensor[] tensors1, Tensor[] weights")
_both_forms("lerp", "Scalar", ", Tensor[] tensors1, Scalar weight")
_both_forms("lerp", "ScalarList", ", Tensor[] tensors1, Scalar[] weight")
for _schema in _SINGLE:
    _add(_schema)
