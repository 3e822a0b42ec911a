"""Sizes that may be symbols: here every size is a number, and these functions take numbers.

SymInt and its kin wrap a number for programs that make them; nothing here gives one back.
"""

from __future__ import annotations

import math
from typing import Any

from rushlight._public import publish


class _Symbol:
    def __init__(self, node: Any) -> None:
        self.node = node

    def _value(self) -> Any:
        return self.node

    def __repr__(self) -> str:
        return str(self.node)

    def __bool__(self) -> bool:
        return bool(self.node)

    def __int__(self) -> int:
        return int(self.node)

    def __float__(self) -> float:
        return float(self.node)

    def __eq__(self, other: object) -> bool:
        return self.node == (other.node if isinstance(other, _Symbol) else other)

    def __hash__(self) -> int:
        return hash(self.node)


class SymInt(_Symbol):
    """A size behind a wrapper."""

    def __index__(self) -> int:
        return int(self.node)

    def as_integer_ratio(self) -> tuple[int, int]:
        """The size over one."""
        return int(self.node), 1

    def bit_length(self) -> int:
        """How many bits the size needs."""
        return int(self.node).bit_length()

    def conjugate(self) -> SymInt:
        """The size itself."""
        return self


class SymFloat(_Symbol):
    """A number behind a wrapper."""

    def as_integer_ratio(self) -> tuple[int, int]:
        """The number as a fraction."""
        return float(self.node).as_integer_ratio()

    def conjugate(self) -> SymFloat:
        """The number itself."""
        return self

    def hex(self) -> str:
        """The number in hexadecimal."""
        return float(self.node).hex()

    def is_integer(self) -> bool:
        """Whether the number is whole."""
        return float(self.node).is_integer()


class SymBool(_Symbol):
    """A condition behind a wrapper."""


def sym_not(a: Any) -> Any:
    """The negation of a condition."""
    return not a


def sym_float(a: Any) -> Any:
    """The number as a float."""
    return float(a)


def sym_int(a: Any) -> Any:
    """The number as an integer, cut towards zero."""
    return math.trunc(float(a)) if not isinstance(a, int) else int(a)


def sym_max(a: Any, b: Any) -> Any:
    """The greater number; a float where one of them is."""
    return _common(max(a, b), a, b)


def sym_min(a: Any, b: Any) -> Any:
    """The smaller number; a float where one of them is."""
    return _common(min(a, b), a, b)


def _common(value: Any, a: Any, b: Any) -> Any:
    return float(value) if isinstance(a, float) or isinstance(b, float) else value


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """t where the condition holds, else f, which must be of its type."""
    if type(t) is not type(f):
        raise AssertionError(f"sym_ite: expected two values of one type, got {type(t)}, {type(f)}")
    return t if b else f


def sym_sum(*args: Any) -> Any:
    """The sum of numbers, given one by one or as a sequence."""
    given = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
    return sum(given)


def sym_sqrt(a: Any) -> Any:
    """The square root."""
    return math.sqrt(a)


def sym_fresh_size(expr: Any) -> Any:
    """The size itself."""
    return expr


def sym_constrain_range(size: Any, *, min: int | None = None, max: int | None = None) -> None:
    """An error where a size is not between bounds."""
    if (min is not None and size < min) or (max is not None and size > max):
        raise RuntimeError(f"Invalid value range for {size} between [{min}, {max}].")


def sym_constrain_range_for_size(
    size: Any, *, min: int | None = None, max: int | None = None
) -> None:
    """An error where a size is not between bounds, or negative."""
    sym_constrain_range(size, min=0 if min is None else min, max=max)


publish("rushlight", SymBool, SymFloat, SymInt)
