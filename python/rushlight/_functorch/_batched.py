"""Tensors that stand for one element of a batch, and the levels of vmap that they belong to.

A level is a mode: every function called inside a vmap comes to it, and it answers with the
batching rule of the function. A BatchedTensor looks like one element; `_value` holds them all along
its first dimension, and may itself be batched at a level further out.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from rushlight import _C, Tensor
from rushlight.overrides import TorchFunctionMode


class BatchedTensor(Tensor):
    """One element of a batch: `_value` has the batch along dimension 0, `_level` whose it is."""

    _operators_only = True  # there are no rules for compositions of them

    @classmethod
    def __torch_function__(
        cls, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        """Reached where the level's mode is off: in a batching rule, and after the vmap."""
        from rushlight._functorch import _batch_rules

        level = deepest((args, kwargs))
        if level is None:
            return _batch_rules.call_escaped(func, args, kwargs or {})
        return _batch_rules.call(level, func, args, kwargs or {})


def deepest(value: Any) -> Level | None:
    """The innermost level in force that an argument is an element of."""
    found = None
    for tensor in _tensors(value):
        level = tensor._level
        if level in _own.levels and (found is None or level.depth > found.depth):
            found = level
    return found


def _tensors(value: Any) -> Iterator[BatchedTensor]:
    if isinstance(value, BatchedTensor):
        yield value
    elif isinstance(value, dict):
        yield from _tensors(tuple(value.values()))
    elif isinstance(value, slice):
        yield from _tensors((value.start, value.stop, value.step))
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _tensors(item)


def text(tensor: BatchedTensor) -> str:
    inner = "\n".join("    " + line for line in repr(tensor._value).splitlines())
    return f"BatchedTensor(lvl={tensor._level.depth}, bdim=0, value=\n{inner}\n)"


@contextlib.contextmanager
def without_overrides() -> Iterator[None]:
    """Functions take a BatchedTensor as the element that it looks like, without numbers."""
    state = _C._set_torch_function_state(2)
    try:
        yield
    finally:
        _C._set_torch_function_state(state)


class _Own(threading.local):
    """A thread's levels in force, outermost first."""

    def __init__(self) -> None:
        self.levels: list[Level] = []


_own = _Own()


def active_levels() -> list[Level]:
    """The levels in force in this thread, outermost first."""
    return list(_own.levels)


class Level(TorchFunctionMode):
    """One vmap in force."""

    _operators_only = True

    def __init__(self, size: int, randomness: str) -> None:
        super().__init__()
        self.size = size
        self.randomness = randomness
        self.depth = 0

    def __enter__(self) -> Level:
        self.depth = len(_own.levels) + 1
        _own.levels.append(self)
        super().__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        _own.levels.remove(self)

    def __torch_function__(
        self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        from rushlight._functorch import _batch_rules

        level = deepest((args, kwargs)) or self
        if level.depth < self.depth:
            level = self
        return _batch_rules.call(level, func, args, kwargs or {})

    @contextlib.contextmanager
    def suspended(self) -> Iterator[None]:
        """Functions do not come to this level, which must be the innermost."""
        _C._pop_torch_function_stack()
        _own.levels.remove(self)
        try:
            yield
        finally:
            _own.levels.append(self)
            _C._push_on_torch_function_stack(self)

    def wrap(self, value: Any) -> Any:
        """The results of a function on whole batches, as elements; containers item by item."""
        if isinstance(value, Tensor):
            return _make(self, value)
        if isinstance(value, (tuple, list)):
            items = [self.wrap(item) for item in value]
            if hasattr(value, "n_fields"):
                return type(value)(tuple(items))
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        return value

    def is_batched(self, value: Any) -> bool:
        """Whether a tensor is an element of this level's batch."""
        return isinstance(value, BatchedTensor) and value._level is self

    def whole(self, value: Any) -> Any:
        """The batch behind an element; everything else as it is."""
        return value._value if self.is_batched(value) else value

    def element(self, value: Any, index: int) -> Any:
        """Element `index` of the batches in a tree of arguments."""
        if self.is_batched(value):
            return value._value[index]
        if isinstance(value, dict):
            return {key: self.element(item, index) for key, item in value.items()}
        if isinstance(value, slice):
            parts = (value.start, value.stop, value.step)
            return slice(*(self.element(part, index) for part in parts))
        if type(value) in (tuple, list):
            return type(value)(self.element(item, index) for item in value)
        return value

    def involves(self, value: Any) -> bool:
        """Whether a tree of arguments has an element of this level's batch."""
        if isinstance(value, Tensor):
            return self.is_batched(value)
        if isinstance(value, dict):
            return any(map(self.involves, value.values()))
        if isinstance(value, slice):
            return any(map(self.involves, (value.start, value.stop, value.step)))
        if isinstance(value, (tuple, list)):
            return any(map(self.involves, value))
        return False


def _make(level: Level, value: Tensor) -> BatchedTensor:
    shape, dtype = value.shape[1:], value.dtype
    with without_overrides():
        shown = _C._VariableFunctions.empty(shape, dtype=dtype, device="meta")
        made = Tensor._make_subclass(BatchedTensor, shown)
    made._value = value
    made._level = level
    return made


def batch_over(value: Tensor, level: Level) -> Tensor:
    """The tensor as the same element for a whole level, where it is not batched there."""
    if isinstance(value, BatchedTensor):
        if value._level is level:
            return value
        if value._level.depth > level.depth:
            return _make(value._level, batch_over(value._value, level))
    return _make(level, value.unsqueeze(0).expand(level.size, *value.shape))


def physical(value: Tensor) -> Tensor:
    """The tensor behind all levels."""
    while isinstance(value, BatchedTensor):
        value = value._value
    return value


def rewrap(raw: Tensor, like: Tensor) -> Tensor:
    """A tensor as an element of the batches that another is an element of."""
    if not isinstance(like, BatchedTensor):
        return raw
    return _make(like._level, rewrap(raw, like._value))
