"""What libraries and devices this build can use, and settings under the names programs ask by.

Rushlight computes with kernels of its own. Settings of other libraries are kept as they are set,
so that programs can read back what they wrote; they change nothing.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_SUBMODULES = (
    "cpu",
    "cuda",
    "cudnn",
    "cusparselt",
    "kleidiai",
    "mha",
    "miopen",
    "mkl",
    "mkldnn",
    "mps",
    "nnpack",
    "openmp",
    "opt_einsum",
    "python_native",
    "quantized",
    "xeon",
    "xnnpack",
)
_PRECISIONS = ("none", "ieee", "tf32", "bf16")
_frozen = False


def disable_global_flags() -> None:
    """From now on settings may change within the modules' `flags` contexts only."""
    global _frozen
    _frozen = True


def flags_frozen() -> bool:
    """Whether settings may change within `flags` contexts only."""
    return _frozen


@contextmanager
def _changes_allowed() -> Iterator[None]:
    global _frozen
    before = _frozen
    _frozen = False
    try:
        yield
    finally:
        _frozen = before


class ContextProp:
    """A setting of a module, read and written by two functions."""

    def __init__(self, getter: Callable[[], Any], setter: Callable[[Any], None]) -> None:
        self.getter = getter
        self.setter = setter

    def __get__(self, obj: object, objtype: type | None = None) -> Any:
        return self.getter()

    def __set__(self, obj: object, val: Any) -> None:
        if flags_frozen():
            raise RuntimeError(
                f"not allowed to set {obj.__name__} flags after disable_global_flags; please use "
                "flags() context manager instead"
            )
        self.setter(val)


class PropModule(types.ModuleType):
    """A module with settings: the names of module `m`, and properties of the subclass."""

    def __init__(self, m: types.ModuleType, name: str) -> None:
        super().__init__(name)
        self.m = m

    def __getattr__(self, attr: str) -> Any:
        return getattr(self.m, attr)


def _setting(values: dict[str, Any], name: str, check: Callable[[Any], Any]) -> ContextProp:
    """The setting `name` of a table; `check` gives the value to keep, or refuses it."""

    def write(value: Any) -> None:
        values[name] = check(value)

    return ContextProp(lambda: values[name], write)


def _boolean(name: str) -> Callable[[Any], bool]:
    def check(value: Any) -> bool:
        if not isinstance(value, bool):
            raise RuntimeError(f"{name} expects a bool, but got {type(value).__name__}")
        return value

    return check


def _precision(value: Any) -> str:
    if value not in _PRECISIONS:
        raise RuntimeError(
            f"Invalid precision: {value!r}, expected one of " + ", ".join(map(repr, _PRECISIONS))
        )
    return value


class _FP32Precision:
    """The precision asked for in products of f32; they are computed in f32 always."""

    def __init__(self, initial: str = "none") -> None:
        self.__dict__["_values"] = {"fp32_precision": initial}

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "fp32_precision":
            raise AttributeError("Unknown attribute " + name)
        self._values[name] = _precision(value)

    def __getattr__(self, name: str) -> Any:
        if name != "fp32_precision":
            raise AttributeError("Unknown attribute " + name)
        return self._values[name]


_values: dict[str, Any] = {"fp32_precision": "none"}


class GenericModule(PropModule):
    """This module, with the setting that holds for all backends."""

    fp32_precision = _setting(_values, "fp32_precision", _precision)


def set_flags(_fp32_precision: str = "none") -> tuple[str]:
    """Sets the precision asked for in products of f32; gives what it was."""
    before = (_values["fp32_precision"],)
    if _fp32_precision is not None:
        _values["fp32_precision"] = _precision(_fp32_precision)
    return before


@contextmanager
def flags(fp32_precision: str = "none") -> Iterator[None]:
    """Sets the precision asked for in products of f32 within the context."""
    with _changes_allowed():
        before = set_flags(fp32_precision)
    try:
        yield
    finally:
        with _changes_allowed():
            set_flags(*before)


def _install(name: str, kind: type) -> None:
    """Gives a loaded module the settings that are properties of `kind`."""
    import sys

    settings = {k: v for k, v in vars(kind).items() if isinstance(v, (ContextProp, property))}
    sys.modules[name].__class__ = type(kind.__name__, (types.ModuleType,), settings)


def __getattr__(name: str) -> object:
    """Imports a submodule at its first use."""
    if name in _SUBMODULES:
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_install(__name__, GenericModule)
