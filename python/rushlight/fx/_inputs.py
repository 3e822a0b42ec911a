"""The inputs of a traced function: what stands for its parameters, and the call with that."""

from __future__ import annotations

import functools
import inspect
import operator
import types
from collections.abc import Callable
from typing import TYPE_CHECKING

import rushlight
from rushlight.fx.node import has_side_effect

if TYPE_CHECKING:
    from rushlight.fx.proxy import Proxy, Tracer

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def stand_ins(
    tracer: Tracer, function: Callable, is_module: bool, concrete: dict[str, object]
) -> dict[str, object]:
    """What stands for the parameters, by name: a graph has them in the order of its code.

    Numbers, texts and None among `concrete` stay inputs, and the graph checks that they are given.
    """
    parameters = list(inspect.signature(function).parameters.values())
    given: dict[str, object] = {}
    if is_module:
        given[parameters.pop(0).name] = tracer.root
    parameters.sort(key=lambda parameter: parameter.kind in _VARIADIC)  # the others stay in order
    for parameter in parameters:
        name = parameter.name
        default = () if parameter.default is parameter.empty else (parameter.default,)
        if parameter.kind in _VARIADIC:
            stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**"
            given[name] = tracer.create_proxy("placeholder", stars + name, (), {})
        elif name not in concrete:
            given[name] = tracer.create_proxy("placeholder", name, default, {})
        else:
            given[name] = value = concrete[name]
            if value is None or isinstance(value, (bool, int, float, str)):
                stand_in = tracer.create_proxy("placeholder", f"{name}_1", default, {})
                _specialize(tracer, stand_in, name, value)
    return given


def _specialize(tracer: Tracer, stand_in: Proxy, name: str, value: object) -> None:
    text = f"{name} has been specialized to have value {value} but got another value"
    if value is None:
        tracer.create_proxy("call_function", _assert_is_none, (stand_in, text), {})
        return
    equal = tracer.create_proxy("call_function", operator.eq, (stand_in, value), {})
    tracer.create_proxy("call_function", rushlight._assert, (equal, text), {})


@has_side_effect
def _assert_is_none(value: object, msg: str) -> None:
    if value is not None:
        raise AssertionError(msg)


has_side_effect(rushlight._assert)


def call_with(function: Callable, given: dict[str, object]) -> object:
    """The result of the function on what stands for its parameters."""
    kinds = {name: p.kind for name, p in inspect.signature(function).parameters.items()}
    if any(kind in _VARIADIC for kind in kinds.values()):
        return _flat(function)(**given)
    named = {name for name, kind in kinds.items() if kind is inspect.Parameter.KEYWORD_ONLY}
    args = [value for name, value in given.items() if name not in named]
    return function(*args, **{name: given[name] for name in named})


def _flat(function: Callable) -> Callable:
    """The function with *args and **kwargs as parameters: one stand-in is given for all of them."""
    code = function.__code__
    stars = [f for f in (inspect.CO_VARARGS, inspect.CO_VARKEYWORDS) if code.co_flags & f]
    flat = code.replace(
        co_flags=code.co_flags & ~sum(stars),
        co_argcount=code.co_argcount + code.co_kwonlyargcount + len(stars),
        co_kwonlyargcount=0,
        co_posonlyargcount=0,
    )
    made = types.FunctionType(
        flat, function.__globals__, function.__name__, None, function.__closure__
    )
    return functools.update_wrapper(made, function)
