"""Overloads of PyTorch for which one of the table's stands: of numbers, and of no or one dimension.

An entry of the table that takes numbers in the place of tensors, but not of all of them, is several
overloads in PyTorch: `gt.Tensor` and `gt.Scalar`. Where all may be numbers there is one: `add`.
"""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

from rushlight import _C

# Names that follow from no other: of a number as first operand, and as second.
_OWN = {
    "xlogy": ("Scalar_Self", "Scalar_Other"),
    "special_xlog1py": ("self_scalar", "other_scalar"),
    "bitwise_left_shift": ("Scalar_Tensor", "Tensor_Scalar"),
    "bitwise_right_shift": ("Scalar_Tensor", "Tensor_Scalar"),
}
_BY_OVERLOAD = {"Tensor": ("Scalar_Tensor", "Scalar"), "Tensor_Tensor": ("Scalar", "Tensor_Scalar")}


class Form(NamedTuple):
    """What an overload is in the table."""

    general: str  # the table's overload
    number: str  # the argument that is a number, or the dimensions; "": all are tensors
    dims: int  # of reductions: how many dimensions it takes; 2 any


@functools.cache
def _rows() -> dict[str, list[dict]]:
    found: dict[str, list[dict]] = {}
    for row in _C._operator_table():
        found.setdefault(row["name"], []).append(row)
    return found


def _of_numbers(name: str, row: dict, written: bool) -> dict[str, Form]:
    faces, overload = row["faces"], row["overload"] or "default"
    operands = re.findall(r"Tensor (\w+)", row["schema"].partition(" -> ")[0])
    if "numbers" not in faces or "all_numbers" in faces or len(operands) != 2:
        return {}
    if name in _OWN:
        first, second = _OWN[name]
    elif overload in _BY_OVERLOAD:
        first, second = _BY_OVERLOAD[overload]
    elif overload == "default":
        first, second = (f"{operand}_scalar" for operand in operands)
    else:
        return {}
    forms = {second: Form(overload, operands[1], 2)}
    if written and overload == "Tensor_Tensor":
        return {"Scalar": forms[second], "Tensor": Form(overload, "", 2)}
    if written:
        return forms
    if "number_first" in faces:
        forms[first] = Form(overload, operands[0], 2)
    return forms


@functools.cache
def _stood_for(name: str) -> dict[str, Form]:
    """The overloads of `name` that calls of others of the table's are of."""
    rows = _rows().get(name)
    written = rows is None and name.endswith("_")
    found: dict[str, Form] = {}
    plain = name.removesuffix("_") if written else name
    for row in _rows().get(plain, []) if written else rows or []:
        found.update(_of_numbers(plain, row, written))
        if row["overload"] == "dims":
            found.update({"default": Form("dims", "dim", 0), "dim": Form("dims", "dim", 1)})
        elif row["overload"] == "dim_IntList":
            found["default"] = Form("dim_IntList", "dim", 0)
    return found


@functools.cache
def forms(name: str) -> dict[str, Form]:
    """The overloads of `name` that are no entries of the table, with those that do their work."""
    entries = _C._overload_names(name)
    found = _stood_for(name).items()
    return {overload: form for overload, form in found if overload not in entries}


def name_of_call(name: str, overload: str, numbers: list[str], dims: int) -> str:
    """The overload that a call is of: with these arguments as numbers, and so many dimensions."""
    for special, form in _stood_for(name).items():
        if form.general != overload:
            continue
        if form.number in [*numbers, ""] or (not numbers and form.dims == dims and dims < 2):
            return special
    return overload


def has_own_out(name: str, overload: str) -> bool:
    """Whether the out= form is X_out rather than out: so it is beside overloads of numbers."""
    special = [form for form in _stood_for(name).values() if form.dims == 2]
    return overload in _BY_OVERLOAD and any(form.general == overload for form in special)


def schema_of(text: str, form: Form) -> str:
    """The schema's text with the argument as this form has it."""
    if not form.number:
        return text
    if form.dims == 2:
        return re.sub(rf"\bTensor {form.number}\b", f"Scalar {form.number}", text, count=1)
    if form.dims == 1:
        return re.sub(rf"int\[\d*\]\?? {form.number}(=\w+)?", f"int {form.number}", text, count=1)
    without = re.sub(rf", int\[\d*\]\?? {form.number}(=\w+)?", "", text, count=1)
    return re.sub(r", bool keepdim=False", "", without, count=1)
