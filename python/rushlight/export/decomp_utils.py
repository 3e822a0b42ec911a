"""Which operators of a program are opened, and by what."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from rushlight import _C, ops
from rushlight._decomp.core_aten import core

__all__ = ["CustomDecompTable", "default_decompositions"]


@functools.cache
def opening_operators() -> dict[Any, Callable]:
    """The operators that are made of others, each by itself: calling it opens it."""
    found: dict[Any, Callable] = {}
    for row in _C._operator_table():
        opens = row["opens"] and "native_" not in row["name"]  # those are in the core set
        packet = getattr(ops.aten, row["name"], None) if opens else None
        if packet is not None:
            operator = getattr(packet, row["overload"] or "default")
            found[operator] = operator
    return found


class CustomDecompTable(dict):
    """What run_decompositions opens: functions by operator, at first all that are made of others.

    Those that PyTorch's core set of aten leaves out have functions that do what they do.
    Deleting an operator keeps it; assigning a function runs that in its place.
    """

    def __init__(self) -> None:
        super().__init__({**opening_operators(), **core})

    def copy(self) -> CustomDecompTable:
        """Another table of the same."""
        made = CustomDecompTable()
        made.clear()
        made.update(self)
        return made

    def materialize(self) -> dict[Any, Callable]:
        """The same as a plain dict."""
        return dict(self)

    def _opens(self, operator: Any) -> bool:
        """Whether what an operator is made of is to be seen in its place."""
        return operator in self

    def _functions(self) -> dict[Any, Callable]:
        """What runs in the place of operators."""
        return {operator: function for operator, function in self.items() if function != operator}


def default_decompositions() -> CustomDecompTable:
    """A new table of what run_decompositions opens where it is given none, to be changed."""
    return CustomDecompTable()
