"""Operators by name and overload: rushlight.ops.aten.add.Tensor, and those of libraries."""

from __future__ import annotations

from rushlight._ops import _HigherOrder, _Namespace

aten = _Namespace("aten")
higher_order = _HigherOrder()
loaded_libraries: set[str] = set()


def load_library(path: str) -> None:
    """Loads a shared library, whose static initializers may define operators."""
    import ctypes
    import os

    found = os.path.realpath(path)
    ctypes.CDLL(found)
    loaded_libraries.add(found)


def __getattr__(name: str) -> _Namespace:
    if name.startswith("__"):
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    made = _Namespace(name)
    globals()[name] = made
    return made
