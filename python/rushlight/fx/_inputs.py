"""The inputs of a traced function: what stands for its parameters, and the call with that."""

from __future__ import annotations

import functools
import inspect
import operator
import types
import typing
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight.fx.codegen import _PyTreeCodeGen, _PyTreeInfo
from rushlight.fx.node import has_side_effect
from rushlight.utils._pytree import tree_flatten, tree_map, tree_unflatten

if TYPE_CHECKING:
    from rushlight.fx._symbolic_trace import Tracer
    from rushlight.fx.proxy import Proxy

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class PHBase:
    """Stands, among concrete arguments, for a leaf of a structure that stays an input."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


@has_side_effect
def _assert_is_none(value: object, msg: str) -> None:
    if value is not None:
        raise AssertionError(msg)


_assert_is_none.__module__ = "rushlight.fx._symbolic_trace"
has_side_effect(rushlight._assert)


def annotations_of(function: Callable) -> dict[str, object]:
    """The types that a function is annotated with; those of the library are texts in its source."""
    inner = inspect.unwrap(function)
    if str(getattr(inner, "__module__", "")).startswith("rushlight."):
        return typing.get_type_hints(inner)
    return getattr(inner, "__annotations__", {})


class Inputs:
    """What stands for the parameters of a function, and how it is called with that."""

    def __init__(
        self,
        tracer: Tracer,
        function: Callable,
        is_module: bool,
        concrete: Mapping[str, object] | tuple | None,
    ) -> None:
        self._tracer = tracer
        self._function = function
        parameters = list(inspect.signature(function).parameters.values())
        self._kinds = {parameter.name: parameter.kind for parameter in parameters}
        self._types = annotations_of(function)
        self.given: dict[str, object] = {}
        if is_module:
            if not parameters:
                raise RuntimeError("``self`` argument cannot be part of *args expansion!")
            self.given[parameters.pop(0).name] = tracer.root
        if isinstance(concrete, tuple):
            if len(concrete) != len(parameters):
                raise RuntimeError(
                    f"Tracing expected {len(parameters)} arguments but got {len(concrete)} concrete"
                    " arguments"
                )
            concrete = {p.name: value for p, value in zip(parameters, concrete)}
        # The others stay in the order of the definition.
        parameters.sort(key=lambda parameter: parameter.kind in _VARIADIC)
        for parameter in parameters:
            self.given[parameter.name] = self._stand_in(parameter, concrete or {})

    def _stand_in(self, parameter: inspect.Parameter, concrete: Mapping[str, object]) -> object:
        name = parameter.name
        if parameter.kind in _VARIADIC:
            stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**"
            return self._tracer.create_proxy("placeholder", stars + name, (), {})
        default = () if parameter.default is parameter.empty else (parameter.default,)
        if name not in concrete:
            kind = self._types.get(name)
            return self._tracer.create_proxy("placeholder", name, default, {}, type_expr=kind)
        count = 0

        def leaf(value: object) -> object:
            nonlocal count
            count += 1
            stand_in = self._tracer.create_proxy("placeholder", f"{name}_{count}", default, {})
            if isinstance(value, PHBase):
                stand_in.node.meta.update(vars(value))
                return stand_in
            self._specialize(stand_in, name, value)
            return value

        return tree_map(leaf, concrete[name])

    def _specialize(self, stand_in: Proxy, name: str, value: object) -> None:
        """Has the graph check that an input is the value that it was traced with."""
        tracer = self._tracer
        text = f"{name} has been specialized to have value {value} but got another value"
        if value is None:
            tracer.create_proxy("call_function", _assert_is_none, (stand_in, text), {})
        elif isinstance(value, (bool, int, float, str)):
            equal = tracer.create_proxy("call_function", operator.eq, (stand_in, value), {})
            tracer.create_proxy("call_function", rushlight._assert, (equal, text), {})
        else:
            warnings.warn(
                f"Was not able to add assertion to guarantee correct input {name} to specialized "
                "function. It is up to the user to make sure that your inputs match the inputs you "
                "specialized the function with.",
                stacklevel=2,
            )

    def call(self) -> tuple[Callable, list]:
        """A function of the stand-ins by position, and these.

        Where an argument is a structure, the graph's code is called with structures too.
        """
        names, values = list(self.given), list(self.given.values())
        called = self._positional(names)
        leaves, spec = tree_flatten(tuple(values))
        if len(leaves) == len(values) and all(a is b for a, b in zip(leaves, values)):
            return called, values
        codegen = _PyTreeCodeGen(_PyTreeInfo(names, spec, None))
        self._tracer.graph.set_codegen(codegen)

        def flat(*given: object) -> Any:
            result = called(*tree_unflatten(list(given), spec))
            results, out_spec = tree_flatten(result)
            codegen.pytree_info = codegen.pytree_info._replace(out_spec=out_spec)
            return results

        return flat, leaves

    def _positional(self, names: list[str]) -> Callable:
        """The function, called with all arguments by position."""
        if any(kind in _VARIADIC for kind in self._kinds.values()):
            flat = _flat(self._function)
            return lambda *given: flat(**dict(zip(names, given)))
        keyword = inspect.Parameter.KEYWORD_ONLY
        if keyword not in self._kinds.values():
            return self._function

        def call(*given: object) -> object:
            pairs = list(zip(names, given))
            args = [value for name, value in pairs if self._kinds[name] is not keyword]
            return self._function(*args, **{n: v for n, v in pairs if self._kinds[n] is keyword})

        return call


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
