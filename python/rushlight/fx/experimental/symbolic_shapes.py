"""Questions about symbolic sizes, for programs that serve tracers: sizes are numbers here."""

from __future__ import annotations

from typing import Any

__all__ = [
    "GuardOnDataDependentSymNode", "free_symbols", "free_unbacked_symbols", "guard_bool",
    "guard_float", "guard_int", "guard_or_false", "guard_or_true", "guard_size_oblivious",
    "has_free_symbols", "has_free_unbacked_symbols", "is_concrete_bool", "is_concrete_float",
    "is_concrete_int", "statically_known_false", "statically_known_true", "sym_and", "sym_eq",
    "sym_or",
]  # fmt: skip


class GuardOnDataDependentSymNode(RuntimeError):
    """What PyTorch raises for a size that depends on data; never raised here."""


def guard_bool(a: Any) -> bool:
    """The condition."""
    return bool(a)


def guard_int(a: Any) -> int:
    """The number."""
    return int(a)


def guard_float(a: Any) -> float:
    """The number."""
    return float(a)


# What is known, as is everything.
guard_or_false = guard_or_true = guard_bool


def guard_size_oblivious(expr: Any) -> bool:
    """The condition."""
    return bool(expr)


def statically_known_true(x: Any) -> bool:
    """Whether the condition is true."""
    return bool(x)


def statically_known_false(x: Any) -> bool:
    """Whether the condition is false."""
    return not x


def is_concrete_int(a: Any) -> bool:
    """True: there are no others."""
    return True


is_concrete_float = is_concrete_bool = is_concrete_int


def free_symbols(val: Any) -> set:
    """The symbols in a value: none."""
    return set()


free_unbacked_symbols = free_symbols


def has_free_symbols(val: Any) -> bool:
    """Whether a value has symbols: never."""
    return False


def has_free_unbacked_symbols(x: Any) -> bool:
    """Whether a value has symbols that depend on data: never."""
    return False


def sym_and(x: Any, *others: Any) -> bool:
    """Whether all conditions hold."""
    return all((x, *others))


def sym_or(x: Any, *others: Any) -> bool:
    """Whether a condition holds."""
    return any((x, *others))


def sym_eq(x: Any, y: Any) -> bool:
    """Whether numbers, or lists of numbers, are equal."""
    if isinstance(x, (tuple, list)) and isinstance(y, (tuple, list)):
        return len(x) == len(y) and all(map(sym_eq, x, y))
    return x == y
