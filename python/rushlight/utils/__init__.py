"""Helpers around training: data loading, checkpointing, hooks, trees."""

from __future__ import annotations

__all__ = ["set_module", "swap_tensors"]


def __getattr__(name: str) -> object:
    """Imports a submodule at its first use, so that importing the package stays cheap."""
    import importlib
    import importlib.util

    full_name = f"{__name__}.{name}"
    if name == "swap_tensors":
        return importlib.import_module("rushlight.utils._swap").swap_tensors
    if name.startswith("__") or importlib.util.find_spec(full_name) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(full_name)


def set_module(obj: object, mod: str) -> None:
    """Sets the module that an object says it is of."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod
