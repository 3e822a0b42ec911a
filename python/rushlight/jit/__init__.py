"""torch.jit for programs that script their functions and modules.

Here a scripted function or module is compiled by `torch.compile`: the Python that was written runs,
with eager's results, and its operators are fused. There is no second language, so nothing that
Python allows is refused, and `is_scripting()` is never true. Archives of TorchScript (`save`,
`load`) and traces are not offered: save a `state_dict`, and compile instead of tracing.
"""

from __future__ import annotations

import functools
import inspect
import typing
import warnings
from collections import namedtuple
from collections.abc import Callable
from typing import Any, Final

import rushlight as torch
import rushlight.jit.annotations  # takes the place of the name that __future__ left here
from rushlight.futures import Future

__all__ = [
    "Attribute", "Error", "Final", "Future", "RecursiveScriptModule", "ScriptFunction",
    "ScriptModule", "TracerWarning", "annotate", "export", "fork", "freeze", "ignore", "interface",
    "is_scripting", "is_tracing", "isinstance", "optimize_for_inference", "script",
    "script_if_tracing", "set_fusion_strategy", "strict_fusion", "unused", "wait",
]  # fmt: skip

_isinstance = isinstance
_ABSENT = {
    "load": "archives of TorchScript are not read: load a state_dict with torch.load",
    "save": "archives of TorchScript are not written: save a state_dict with torch.save",
    "trace": "functions are not traced: torch.compile captures them at each call",
    "trace_module": "modules are not traced: torch.compile captures them at each call",
}

Attribute = namedtuple("Attribute", ["value", "type"])
Attribute.__doc__ = "A value of a module with the type that a script is told."


class Error(RuntimeError):
    """What a script that fails would raise."""


class TracerWarning(Warning):
    """What tracing would warn of."""


class ScriptFunction:
    """A function that `script` compiled."""

    def __init__(self, function: Callable) -> None:
        self._function = function
        self._compiled = torch.compile(function)
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._compiled(*args, **kwargs)

    @property
    def name(self) -> str:
        """The function's name."""
        return self._function.__name__

    @property
    def qualified_name(self) -> str:
        """Its name with that of its module."""
        return f"{self._function.__module__}.{self._function.__qualname__}"

    @property
    def code(self) -> str:
        """Its source in Python."""
        return inspect.getsource(self._function)


class ScriptModule(torch.nn.Module):
    """A module whose `forward` is compiled."""

    def __init__(self) -> None:
        super().__init__()
        self.compile()

    @property
    def original_name(self) -> str:
        """The name of the class that was scripted."""
        return type(self).__name__

    @property
    def code(self) -> str:
        """The source of `forward` in Python."""
        return inspect.getsource(type(self).forward)


class RecursiveScriptModule(ScriptModule):
    """What `script` makes of a module: it shares parameters, buffers and submodules with it."""

    @property
    def original_name(self) -> str:
        """The name of the class that was scripted."""
        return type(self).__bases__[1].__name__

    def extra_repr(self) -> str:
        """The class that was scripted."""
        return f"original_name={self.original_name}"


@functools.cache
def _scripted_class(original: type) -> type:
    return type("RecursiveScriptModule", (RecursiveScriptModule, original), {})


def _script_module(module: torch.nn.Module) -> torch.nn.Module:
    kind = _scripted_class(type(module))
    made = kind.__new__(kind)
    made.__dict__.update(module.__dict__)
    made.compile()
    return made


def script(
    obj: Any,
    optimize: Any = None,
    _frames_up: int = 0,
    _rcb: Any = None,
    example_inputs: Any = None,
) -> Any:
    """Compiles a function or a module. Classes and what is scripted already come back as they are.

    Raises RuntimeError for anything else.
    """
    if optimize is not None:
        warnings.warn(
            "`optimize` is deprecated and has no effect. Use `with torch.jit.optimized_execution()`"
            " instead",
            FutureWarning,
            stacklevel=2,
        )
    if _isinstance(obj, (ScriptFunction, ScriptModule, type)):
        return obj
    if _isinstance(obj, torch.nn.Module):
        return _script_module(obj)
    if inspect.isfunction(inspect.unwrap(obj)) or inspect.ismethod(obj):
        return ScriptFunction(obj)
    raise RuntimeError(f"script: expected a function, a module or a class, got {type(obj)}")


def is_scripting() -> bool:
    """False: scripted code is Python that runs as such."""
    return False


def is_tracing() -> bool:
    """False: nothing is traced."""
    return False


def export(fn: Callable) -> Callable:
    """Marks a method to be scripted beside `forward`; every method can be called here anyway."""
    return fn


def unused(fn: Callable) -> Callable:
    """Marks a method that a script would leave out. Here it runs."""
    return fn


def ignore(drop: Any = False, **kwargs: Any) -> Callable:
    """Marks a method to be left to Python, where all of them are here."""
    if callable(drop):
        return drop
    if not _isinstance(drop, bool):
        raise RuntimeError(
            f"Argument to @torch.jit.ignore must be a bool or a function but got {drop}"
        )
    return lambda fn: fn


def interface(obj: type) -> type:
    """Marks a class of methods that modules have in common. Raises RuntimeError for no class."""
    if not inspect.isclass(obj):
        raise RuntimeError("interface must be applied to a class")
    return obj


def _overload(func: Callable) -> Callable:
    return func


def _overload_method(func: Callable) -> Callable:
    return func


def script_if_tracing(fn: Callable) -> Callable:
    """The function itself: it would be scripted inside a trace only."""

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return wrapper


_script_if_tracing = script_if_tracing


def annotate(the_type: Any, the_value: Any) -> Any:
    """The value, whose type a script would be told."""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Whether an object is of a type, or of one of a tuple; containers are looked into.

    Knows List, Dict, Tuple, Optional and Union of types, whose objects must all fit.
    """
    if _isinstance(target_type, tuple):
        return any(isinstance(obj, one) for one in target_type)
    origin, inner = typing.get_origin(target_type), typing.get_args(target_type)
    if origin is None:
        return _isinstance(obj, type(None) if target_type is None else target_type)
    if origin is typing.Union or type(target_type).__name__ == "UnionType":
        return any(isinstance(obj, one) for one in inner)
    if not _isinstance(obj, origin):
        return False
    if origin is list:
        return all(isinstance(item, inner[0]) for item in obj)
    if origin is dict:
        return all(isinstance(k, inner[0]) and isinstance(v, inner[1]) for k, v in obj.items())
    if origin is tuple:
        return len(obj) == len(inner) and all(map(isinstance, obj, inner))
    raise RuntimeError(f"isinstance: {target_type} is none of List, Dict, Tuple, Optional, Union")


def fork(func: Callable, *args: Any, **kwargs: Any) -> Future:
    """Calls a function; its result is in the Future, as it is in PyTorch outside of a script."""
    future: Future = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future) -> Any:
    """The result of a Future."""
    return future.wait()


def freeze(
    mod: torch.nn.Module, preserved_attrs: list[str] | None = None, optimize_numerics: bool = True
) -> torch.nn.Module:
    """A copy of a scripted module in eval mode whose parameters are constants.

    Raises RuntimeError where the module was not scripted or is in training mode.
    """
    if not _isinstance(mod, ScriptModule):
        raise RuntimeError(
            "Freezing expects a ScriptModule as input. Please use torch.jit.script or "
            "torch.jit.trace to script your 'nn.Module'."
        )
    if mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() "
            "on your module before freezing."
        )
    import copy

    return copy.deepcopy(mod).requires_grad_(False)


def optimize_for_inference(
    mod: torch.nn.Module, other_methods: list[str] | None = None
) -> torch.nn.Module:
    """A scripted module, frozen."""
    return freeze(mod.eval() if _isinstance(mod, ScriptModule) else mod)


_fusion = [("STATIC", 2), ("DYNAMIC", 10)]


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Sets how kernels would be specialised, and returns what was set before.

    Kernels here never depend on sizes, so that no strategy changes what they do.
    """
    before = list(_fusion)
    _fusion[:] = strategy
    return before


class strict_fusion:
    """In such a block PyTorch would raise where a script was not fused. Here it does nothing."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *args: object) -> None:
        return None


def __getattr__(name: str) -> Any:
    if name in _ABSENT:
        raise AttributeError(f"rushlight.jit has no '{name}': {_ABSENT[name]}")
    raise AttributeError(f"module 'rushlight.jit' has no attribute '{name}'")
