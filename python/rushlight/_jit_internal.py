"""What programs take from TorchScript's compiler: here functions are Python, and run as that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from rushlight.jit import export as export
from rushlight.jit import ignore as ignore
from rushlight.jit import is_scripting as is_scripting
from rushlight.jit import unused as unused

__all__ = ["Final", "boolean_dispatch", "export", "ignore", "is_scripting", "unused"]

Function = TypeVar("Function", bound=Callable)


def _copy_to_script_wrapper(fn: Function) -> Function:
    """Decorator: the function."""
    return fn


def _overload(fn: Function) -> Function:
    """Decorator for the declaration of an overload: the function."""
    return fn


_overload_method = _overload


def boolean_dispatch(
    arg_name: str,
    arg_index: int,
    default: bool,
    if_true: Callable,
    if_false: Callable,
    module_name: str,
    func_name: str,
) -> Callable:
    """A function that is one of two, by an argument that is True or False."""

    def function(*args: Any, **kwargs: Any) -> Any:
        given = args[arg_index] if arg_index < len(args) else kwargs.get(arg_name, default)
        return (if_true if given else if_false)(*args, **kwargs)

    function.__name__ = func_name or if_true.__name__
    function.__module__ = module_name or if_true.__module__
    return function
