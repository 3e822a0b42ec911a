"""Decompositions: functions that do what aten operators do, in simpler ones.

For `make_fx(decomposition_table=)`, `run_decompositions` and back ends that know few operators.
Operators that are compositions are opened without them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rushlight import _ops

__all__ = [
    "core_aten_decompositions", "decomposition_table", "get_decompositions",
    "register_decomposition", "remove_decompositions",
]  # fmt: skip

decomposition_table: dict[Any, Callable] = {}  # by operator


def _overloads(operator: Any) -> list[Any]:
    if isinstance(operator, _ops.OpOverloadPacket):
        return [getattr(operator, form) for form in operator.overloads()]
    return [operator]


def register_decomposition(
    aten_op: Any,
    registry: dict[Any, Callable] | None = None,
    *,
    type: str = "post_autograd",
    unsafe: bool = False,
) -> Callable[[Callable], Callable]:
    """Decorates a function that does what an operator, or each of a list of them, does.

    registry: the table that it goes into. RuntimeError where the operator has one there.
    """
    table = decomposition_table if registry is None else registry

    def register(fn: Callable) -> Callable:
        listed = aten_op if isinstance(aten_op, (list, tuple)) else [aten_op]
        for operator in (form for one in listed for form in _overloads(one)):
            if operator in table:
                raise RuntimeError(f"duplicate registrations for {operator}")
            table[operator] = fn
        return fn

    return register


def get_decompositions(aten_ops: Sequence[Any], type: str = "post_autograd") -> dict[Any, Callable]:
    """The decompositions of these operators, or of all forms of them; those that there are."""
    forms = [form for operator in aten_ops for form in _overloads(operator)]
    return {form: decomposition_table[form] for form in forms if form in decomposition_table}


def remove_decompositions(decompositions: dict[Any, Callable], aten_ops: Iterable[Any]) -> None:
    """Takes those of these operators out of a table."""
    for operator in aten_ops:
        for form in _overloads(operator):
            decompositions.pop(form, None)


def core_aten_decompositions() -> dict[Any, Callable]:
    """The decompositions of operators that PyTorch's core set of aten leaves out."""
    return {form: fn for form, fn in decomposition_table.items() if form not in _core()}


def _core() -> set[Any]:
    from rushlight import ops

    names = "gelu elu leaky_relu hardtanh _softmax _log_softmax addmm clamp_min var masked_fill"
    return {form for name in names.split() for form in _overloads(getattr(ops.aten, name))}


from rushlight._decomp import decompositions as decompositions  # noqa: E402  fills the table
