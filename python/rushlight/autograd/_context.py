"""Context managers that also decorate functions, generators and classes' methods."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

__all__ = ["BareDecoratorContext", "DecoratorContext"]


def _wrap_generator(make: Callable[[], Any], function: Callable) -> Callable:
    """The generator function with each stretch between two yields inside a fresh context."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        generator = function(*args, **kwargs)
        try:
            with make():
                response = generator.send(None)
            while True:
                try:
                    request = yield response
                except GeneratorExit:
                    with make():
                        generator.close()
                    raise
                except BaseException as error:
                    with make():
                        response = generator.throw(error)
                else:
                    with make():
                        response = generator.send(request)
        except StopIteration as stop:
            return stop.value

    return wrapper


_GENERATOR = 0x20  # CO_GENERATOR of `inspect`, which is slow to import


def _is_generator_function(function: Callable) -> bool:
    code = getattr(function, "__code__", None)
    return code is not None and bool(code.co_flags & _GENERATOR)


def _decorate(make: Callable[[], Any], function: Callable) -> Callable:
    if isinstance(function, type):
        warnings.warn(
            f"Decorating classes is deprecated and will be disabled in future versions. "
            f"You should only decorate functions or methods. {function.__name__}'s __init__ is "
            f"decorated.",
            FutureWarning,
            stacklevel=3,
        )
        function.__init__ = _decorate(make, function.__init__)
        return function
    if _is_generator_function(function):
        return _wrap_generator(make, function)

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with make():
            return function(*args, **kwargs)

    return wrapper


class DecoratorContext:
    """Base of context managers whose instances decorate functions."""

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, *_: object) -> Any:
        raise NotImplementedError

    def __call__(self, function: Callable) -> Callable:
        return _decorate(self.clone, function)

    def clone(self) -> DecoratorContext:
        """A fresh instance of the same settings, for one call of the decorated function."""
        return self.__class__()


class BareDecoratorContext(DecoratorContext):
    """Allows `@cls` without parentheses, besides `@cls()`."""

    def __new__(cls, function: Callable | None = None) -> Any:
        if function is None:
            return super().__new__(cls)
        return cls()(function)
