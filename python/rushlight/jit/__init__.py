"""torch.jit for programs that script their functions and modules.

Here a scripted function or module is compiled by `torch.compile`: the Python that was written runs,
with eager's results, and its operators are fused. There is no second language, so nothing that
Python allows is refused, and `is_scripting()` is never true. `trace` makes a function or module of
the calls of one run (see _trace). `save` and `load` write and read both, in files of Rushlight's
own (see _archive): archives of TorchScript are not read.
"""

from __future__ import annotations

import functools
import inspect
import io
import typing
import warnings
from collections import namedtuple
from collections.abc import Callable
from typing import Any, Final

import rushlight as torch
import rushlight.jit.annotations  # takes the place of the name that __future__ left here
from rushlight import fx
from rushlight.futures import Future
from rushlight.jit._function import ScriptFunction as ScriptFunction
from rushlight.jit._record import TracerWarning as TracerWarning
from rushlight.jit._settings import enable_onednn_fusion as enable_onednn_fusion
from rushlight.jit._settings import fuser as fuser
from rushlight.jit._settings import onednn_fusion_enabled as onednn_fusion_enabled
from rushlight.jit._settings import optimized_execution as optimized_execution
from rushlight.jit._settings import script_method as script_method
from rushlight.jit._trace import TracedFunction as TracedFunction
from rushlight.jit._trace import TracingCheckError as TracingCheckError
from rushlight.jit._trace import is_tracing as is_tracing
from rushlight.jit._trace import trace as trace
from rushlight.jit._trace import trace_module as trace_module

__all__ = [
    "Attribute", "Error", "Final", "Future", "RecursiveScriptModule", "ScriptFunction",
    "ScriptModule", "TopLevelTracedModule", "TracerWarning", "TracingCheckError", "annotate",
    "enable_onednn_fusion", "export", "fork", "freeze", "fuser", "ignore", "interface",
    "is_scripting", "is_tracing", "isinstance", "load", "onednn_fusion_enabled",
    "optimize_for_inference", "optimized_execution", "save", "script", "script_if_tracing",
    "script_method", "set_fusion_strategy", "strict_fusion", "trace", "trace_module", "unused",
    "wait",
]  # fmt: skip

_isinstance = isinstance

Attribute = namedtuple("Attribute", ["value", "type"])
Attribute.__doc__ = "A value of a module with the type that a script is told."


class Error(RuntimeError):
    """What a script that fails would raise."""


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

    def save(self, f: Any, _extra_files: dict[str, Any] | None = None) -> None:
        """Writes it to a file, which `torch.jit.load` reads."""
        save(self, f, _extra_files)

    def save_to_buffer(self, _extra_files: dict[str, Any] | None = None) -> bytes:
        """The bytes of that file."""
        return _archive.to_bytes(self, _extra_files)


class TopLevelTracedModule(ScriptModule):
    """What `trace` makes of a module: it makes the calls of the run that was traced.

    graph: the calls of forward as an fx graph. code: the same as Python. Methods that were traced
    beside forward are methods.
    """

    def __init__(self, original_name: str = "") -> None:
        super().__init__()
        self.__dict__["_compiled_call_impl"] = None  # each method is compiled on its own
        self.__dict__["_original_name"] = original_name

    @property
    def original_name(self) -> str:
        """The name of the class that was traced."""
        return self.__dict__["_original_name"]

    @property
    def graph(self) -> fx.Graph:
        """The calls of forward."""
        return self.__dict__["_traces"]["forward"].graph

    inlined_graph = graph

    @property
    def code(self) -> str:
        """The calls of forward as the source of a function."""
        return self.__dict__["_traces"]["forward"].code.src

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Makes the calls of the run that was traced."""
        return self.__dict__["_methods"]["forward"](*args, **kwargs)

    def extra_repr(self) -> str:
        """The class that was traced."""
        return f"original_name={self.original_name}"

    def _get_name(self) -> str:
        return self.original_name

    def __reduce__(self) -> tuple:
        return _loaded, (self.save_to_buffer(),)

    def __deepcopy__(self, memo: dict) -> TopLevelTracedModule:
        return _loaded(self.save_to_buffer())


def _loaded(content: bytes) -> Any:
    return load(io.BytesIO(content))


class RecursiveScriptModule(ScriptModule):
    """What `script` makes of a module: it shares parameters, buffers and submodules with it."""

    @property
    def original_name(self) -> str:
        """The name of the class that was scripted."""
        return type(self).__bases__[1].__name__

    def extra_repr(self) -> str:
        """The class that was scripted."""
        return f"original_name={self.original_name}"

    def __reduce__(self) -> tuple:
        members = {k: v for k, v in self.__dict__.items() if k != "_compiled_call_impl"}
        return _scripted, (type(self).__bases__[1], members)


def _scripted(original: type, members: dict[str, Any]) -> torch.nn.Module:
    """The scripted module of a class with these members."""
    plain = original.__new__(original)
    plain.__dict__.update(members)
    return _script_module(plain)


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
    if _isinstance(obj, (ScriptFunction, TracedFunction, ScriptModule, type)):
        return obj
    if _isinstance(obj, torch.nn.Module):
        return _script_module(obj)
    if inspect.isfunction(inspect.unwrap(obj)) or inspect.ismethod(obj):
        return ScriptFunction(obj)
    raise RuntimeError(f"script: expected a function, a module or a class, got {type(obj)}")


def is_scripting() -> bool:
    """False: scripted code is Python that runs as such."""
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


from rushlight.jit import _archive  # noqa: E402  needs the classes above
from rushlight.jit._archive import load as load  # noqa: E402
from rushlight.jit._archive import save as save  # noqa: E402
