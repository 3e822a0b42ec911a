"""Decorators of pipes: short names, checks of arguments and of items, determinism."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Iterator
from typing import Any

from rushlight.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe

_determinism = False
_runtime_validation_enabled = True


class functional_datapipe:
    """Gives a class of pipes a short name, under which other pipes make one of themselves."""

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name = name
        self.enable_df_api_tracing = enable_df_api_tracing

    def __call__(self, cls: type) -> type:
        if not (isinstance(cls, type) and issubclass(cls, (IterDataPipe, MapDataPipe))):
            raise TypeError("`functional_datapipe` can only decorate IterDataPipe or MapDataPipe")
        base = IterDataPipe if issubclass(cls, IterDataPipe) else MapDataPipe
        base.register_datapipe_as_function(self.name, cls)
        return cls


class guaranteed_datapipes_determinism:
    """A block in which pipes that are not deterministic cannot be made."""

    prev: bool

    def __init__(self) -> None:
        global _determinism
        self.prev = _determinism
        _determinism = True

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        global _determinism
        _determinism = self.prev


class non_deterministic:
    """Marks a class of pipes as not deterministic: always, or where a function of its arguments
    says so.
    """

    cls: type | None = None

    def __init__(self, arg: Any) -> None:
        if isinstance(arg, type):
            if not issubclass(arg, IterDataPipe):
                raise TypeError(
                    "Only `IterDataPipe` can be decorated with `non_deterministic`, but "
                    f"{arg.__name__} is found"
                )
            self.cls = arg
            self.deterministic_fn = None
        elif callable(arg):
            self.deterministic_fn = arg
        else:
            raise TypeError(f"{arg} can not be decorated by non_deterministic")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.cls is not None:
            if _determinism:
                raise TypeError(_NOT_DETERMINISTIC.format(self.cls.__name__))
            return self.cls(*args, **kwargs)
        self.cls = args[0]
        return self.deterministic_wrapper_fn

    def deterministic_wrapper_fn(self, *args: Any, **kwargs: Any) -> IterDataPipe:
        """A pipe of the class, where determinism is not asked for or the arguments give it."""
        result = self.deterministic_fn(*args, **kwargs)
        if not isinstance(result, bool):
            raise TypeError(
                "deterministic_fn of `non_deterministic` decorator is required to return a "
                f"boolean value, but {type(result)} is found"
            )
        if _determinism and result:
            raise TypeError(_NOT_DETERMINISTIC.format(self.cls.__name__))
        return self.cls(*args, **kwargs)


_NOT_DETERMINISTIC = (
    "{} is non-deterministic with the inputs, but you set 'guaranteed_datapipes_determinism'. You "
    "can turn off determinism for this DataPipe if that is acceptable for your application"
)


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of an annotation, as far as classes tell."""
    origin = typing.get_origin(hint)
    if hint is Any or isinstance(hint, (str, typing.TypeVar)):
        return True
    if origin is typing.Union:
        return any(_fits(value, each) for each in typing.get_args(hint))
    kind = origin or hint
    return isinstance(value, kind) if isinstance(kind, type) else True


def argument_validation(f: Callable) -> Callable:
    """Checks the arguments of a call against the annotations."""
    signature = inspect.signature(f)
    hints = typing.get_type_hints(f)

    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        for name, value in bound.arguments.items():
            if name in hints and not _fits(value, hints[name]):
                raise TypeError(
                    f"Expected argument '{name}' as {hints[name]}, but found {type(value)}"
                )
        return f(*args, **kwargs)

    return wrapper


class runtime_validation_disabled:
    """A block in which items are not checked."""

    prev: bool

    def __init__(self) -> None:
        global _runtime_validation_enabled
        self.prev = _runtime_validation_enabled
        _runtime_validation_enabled = False

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        global _runtime_validation_enabled
        _runtime_validation_enabled = self.prev


def runtime_validation(f: Callable) -> Callable:
    """Checks what __iter__ gives against its annotation, Iterator[T]."""
    if f.__name__ != "__iter__":
        raise TypeError(f"Can not decorate function {f.__name__} with 'runtime_validation'")
    arguments = typing.get_args(typing.get_type_hints(f).get("return", Any))
    hint = arguments[0] if arguments else Any

    @functools.wraps(f)
    def wrapper(self: Any) -> Iterator:
        for item in f(self):
            if _runtime_validation_enabled and not _fits(item, hint):
                raise RuntimeError(
                    f"Expected an instance as subtype of {hint}, but found {item}({type(item)})"
                )
            yield item

    return wrapper
