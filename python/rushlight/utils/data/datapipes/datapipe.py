"""The bases of pipes: of streams, and of maps from keys to data."""

from __future__ import annotations

import functools
import inspect
import pickle
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from rushlight.utils.data.dataset import Dataset, IterableDataset

__all__ = ["DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe"]

T_co = TypeVar("T_co", covariant=True)


class _Functions:
    """The short names of pipes, under which other pipes call them: `pipe.map(f)`."""

    functions: dict[str, Callable]
    reduce_ex_hook: Callable | None = None
    getstate_hook: Callable | None = None
    str_hook: Callable | None = None
    repr_hook: Callable | None = None

    def __getattr__(self, attribute_name: str) -> Any:
        functions = type(self).functions
        if attribute_name in functions:
            made = functools.partial(functions[attribute_name], self)
            functools.update_wrapper(made, functions[attribute_name])
            return made
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{attribute_name}'")

    @classmethod
    def register_function(cls, function_name: str, function: Callable) -> None:
        """Gives a function of a pipe a short name."""
        cls.functions[function_name] = function

    def __getstate__(self) -> Any:
        state = self.__dict__
        hook = type(self).getstate_hook
        return hook(state) if hook is not None else state

    def __reduce_ex__(self, *args: Any, **kwargs: Any) -> Any:
        hook = type(self).reduce_ex_hook
        if hook is not None:
            try:
                return hook(self)
            except NotImplementedError:
                pass
        return super().__reduce_ex__(*args, **kwargs)

    @classmethod
    def set_getstate_hook(cls, hook_fn: Callable) -> None:
        """Sets what makes a pipe's state, in the place of its attributes."""
        if cls.getstate_hook is not None and hook_fn is not None:
            raise RuntimeError("Attempt to override existing getstate_hook")
        cls.getstate_hook = staticmethod(hook_fn) if hook_fn is not None else None

    @classmethod
    def set_reduce_ex_hook(cls, hook_fn: Callable) -> None:
        """Sets how a pipe is pickled."""
        if cls.reduce_ex_hook is not None and hook_fn is not None:
            raise RuntimeError("Attempt to override existing reduce_ex_hook")
        cls.reduce_ex_hook = staticmethod(hook_fn) if hook_fn is not None else None

    def __repr__(self) -> str:
        hook = type(self).repr_hook
        return hook(self) if hook is not None else type(self).__name__

    def __str__(self) -> str:
        hook = type(self).str_hook
        return hook(self) if hook is not None else type(self).__name__

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *type(self).functions})


def _add(functions: dict, name: str, function: Callable) -> None:
    if name in functions:
        raise Exception(f"Unable to add DataPipe function name {name} as it is already taken")
    functions[name] = function


def _maker(cls: type) -> Callable:
    @functools.wraps(cls, updated=())
    def make(source: Any, *args: Any, **kwargs: Any) -> Any:
        return cls(source, *args, **kwargs)

    return make


def _checked_iter(method: Callable) -> Callable:
    """__iter__ that resets the pipe, and ends the iterators made before.

    One that is a generator does so when its first item is asked for.
    """

    def begin(self: IterDataPipe) -> Iterator:
        number = self.__dict__.get("_valid_iterator_id", 0) + 1
        self._valid_iterator_id = number
        self.reset()
        return _checked_items(self, method(self), number)

    def later(self: IterDataPipe) -> Iterator:
        yield from begin(self)

    lazy = inspect.isgeneratorfunction(method)

    @functools.wraps(method)
    def wrapped(self: IterDataPipe) -> Iterator:
        return later(self) if lazy else begin(self)

    wrapped._is_checked = True
    return wrapped


def _checked_items(pipe: IterDataPipe, items: Any, number: int) -> Iterator:
    for item in items:
        if pipe._valid_iterator_id != number:
            raise RuntimeError(
                "This iterator has been invalidated because another iterator has been created from "
                f"the same IterDataPipe: {pipe!r}\nThis may be caused by multiple references to "
                "the same IterDataPipe. We recommend using `.fork()` if that is necessary."
            )
        yield item


class IterDataPipe(_Functions, IterableDataset[T_co]):
    """A stream of data, made of others: `__init__` takes them, `__iter__` gives the items.

    A pipe has one iterator at a time; `reset` is called when a new one is made.
    """

    functions: dict[str, Callable] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = cls.__dict__.get("__iter__")
        if own is not None and not getattr(own, "_is_checked", False):
            cls.__iter__ = _checked_iter(own)

    def __iter__(self) -> Iterator:
        raise NotImplementedError

    def reset(self) -> None:
        """Makes the pipe ready for a new iterator."""

    @classmethod
    def register_datapipe_as_function(
        cls, function_name: str, cls_to_register: type, enable_df_api_tracing: bool = False
    ) -> None:
        """Gives a class of pipes a short name."""
        _add(cls.functions, function_name, _maker(cls_to_register))


class DFIterDataPipe(IterDataPipe):
    """A stream of data frames."""


class MapDataPipe(_Functions, Dataset[T_co]):
    """Data by keys, made of other such: `__getitem__` gives one item."""

    functions: dict[str, Callable] = {}

    @classmethod
    def register_datapipe_as_function(cls, function_name: str, cls_to_register: type) -> None:
        """Gives a class of pipes a short name."""
        _add(cls.functions, function_name, _maker(cls_to_register))


class DataChunk(list):
    """Items that travel together: a batch."""

    def __init__(self, items: Any) -> None:
        items = list(items)
        super().__init__(items)
        self.items = items

    def as_str(self, indent: str = "") -> str:
        """The items as text, after an indent."""
        return indent + "[" + ", ".join(str(item) for item in iter(self)) + "]"

    def __iter__(self) -> Iterator:
        yield from super().__iter__()

    def raw_iterator(self) -> Iterator:
        """The items as they are."""
        yield from self.items


def _serializable(value: Any) -> bool:
    try:
        pickle.dumps(value)
    except Exception:
        return False
    return True
