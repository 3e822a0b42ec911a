"""What libraries and devices this build can use, and settings under the names programs ask by.

Rushlight computes with kernels of its own. Settings of other libraries are kept as they are set,
so that programs can read back what they wrote; they change nothing, but for `fp32_precision` here
and of `mkldnn` and `mkldnn.matmul`: see `set_float32_matmul_precision`.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rushlight import _settings

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
_PRECISIONS = ("none", "ieee", "tf32", "bf16", "bf16x6")  # the last is our own
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
        if name == "fp32_precision":
            _apply_precision()

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


def _apply_precision() -> None:
    """Matrix products take the precision of the nearest setting that is not "none"."""
    asked = [_values["fp32_precision"]]
    mkldnn = sys.modules.get("rushlight.backends.mkldnn")
    if mkldnn is not None:
        asked += [mkldnn._values["fp32_precision"], mkldnn.matmul.fp32_precision]
    _settings._ask_backend_precision(next((x for x in reversed(asked) if x != "none"), "none"))


class _FP32Precision:
    """The precision asked for in some products of f32: of `mkldnn.matmul` alone it has effect."""

    def __init__(self, initial: str = "none") -> None:
        self.__dict__["_values"] = {"fp32_precision": initial}

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "fp32_precision":
            raise AttributeError("Unknown attribute " + name)
        self._values[name] = _precision(value)
        _apply_precision()

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
        _apply_precision()
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
