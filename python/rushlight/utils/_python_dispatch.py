"""TorchDispatchMode, and questions about subclasses of Tensor that wrap other tensors.

A mode's __torch_dispatch__ is asked for every operator below autograd, so gradients' operators are
seen too, under their names in torch.ops.aten. Compositions are seen as what they call.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from rushlight import _C, Tensor
from rushlight._C import (
    _get_dispatch_stack_at,
    _len_torch_dispatch_stack,
    _pop_torch_dispatch_stack,
    _push_on_torch_dispatch_stack,
)


class TorchDispatchMode:
    """Context whose __torch_dispatch__ is asked first for every operator called in it.

    While it handles a call it is off, so it may call the operator itself.
    """

    def __init__(self, _dispatch_key: object = None) -> None:
        if _dispatch_key is not None:
            raise NotImplementedError("TorchDispatchMode: dispatch keys are not offered")

    def __torch_dispatch__(
        self, func: Callable, types: tuple, args: tuple = (), kwargs: dict | None = None
    ) -> object:
        raise NotImplementedError

    def __enter__(self) -> TorchDispatchMode:
        _push_on_torch_dispatch_stack(self)
        return self

    def __exit__(self, *_: object) -> None:
        _pop_torch_dispatch_stack()

    @classmethod
    def push(cls, *args: object, **kwargs: object) -> TorchDispatchMode:
        """The mode itself, for `with Mode.push():`."""
        return cls(*args, **kwargs)

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Whether the library itself put it there."""
        return False


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that lets every call through."""

    def __torch_dispatch__(
        self, func: Callable, types: tuple, args: tuple = (), kwargs: dict | None = None
    ) -> object:
        return func(*args, **(kwargs or {}))


def _push_mode(mode: TorchDispatchMode) -> None:
    _push_on_torch_dispatch_stack(mode)


def _pop_mode(k: object = None) -> TorchDispatchMode:
    return _pop_torch_dispatch_stack()


def _get_current_dispatch_mode_stack() -> list[TorchDispatchMode]:
    return [_get_dispatch_stack_at(i) for i in range(_len_torch_dispatch_stack())]


def _get_current_dispatch_mode() -> TorchDispatchMode | None:
    stack = _get_current_dispatch_mode_stack()
    return stack[-1] if stack else None


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether a mode is on."""
    return _len_torch_dispatch_stack() > 0


def any_torch_dispatch_mode_on_stack() -> bool:
    """Whether a mode is on."""
    return _len_torch_dispatch_stack() > 0


@contextlib.contextmanager
def _pop_mode_temporarily(k: object = None) -> Iterator[TorchDispatchMode]:
    mode = _pop_mode(k)
    try:
        yield mode
    finally:
        _push_mode(mode)


@contextlib.contextmanager
def _disable_current_modes() -> Iterator[list[TorchDispatchMode]]:
    modes = [_pop_mode() for _ in range(_len_torch_dispatch_stack())]
    try:
        yield modes[::-1]
    finally:
        for mode in reversed(modes):
            _push_mode(mode)


# ---- Subclasses ----------------------------------------------------------------------------------


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether an object is of a subclass that says how it is made of plain tensors."""
    return is_traceable_wrapper_subclass_type(type(t))


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Whether a class is such a subclass: it has __tensor_flatten__ and __tensor_unflatten__."""
    return (
        issubclass(t, Tensor)
        and t is not Tensor
        and hasattr(t, "__tensor_flatten__")
        and hasattr(t, "__tensor_unflatten__")
    )


def transform_subclass(
    t: Any,
    callback: Callable[[str, Tensor], Tensor],
    outer_size: object = None,
    outer_stride: object = None,
) -> Tensor:
    """The subclass made of callback(name, tensor) of each tensor that it is made of."""
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    size = t.size() if outer_size is None else outer_size
    stride = t.stride() if outer_stride is None else outer_stride
    return type(t).__tensor_unflatten__(inner, context, size, stride)


def return_and_correct_aliasing(func: Any, args: tuple, kwargs: dict, out: Any) -> Any:
    """What a wrapper's __torch_dispatch__ gives back: of in-place forms the argument itself.

    Wrappers have no memory of their own that results could share, so views need nothing.
    """
    schema = func._schema
    written = [bool(result.alias_info and result.alias_info.is_write) for result in schema.returns]
    name = func._opname
    if name.endswith("_") and not name.endswith("__"):
        return args[0]
    if not any(written):
        return out
    given = {a.name: value for a, value in zip(schema.arguments, args)}
    given.update(kwargs or {})
    found = [given[a.name] for a in schema.arguments if a.is_write and a.name in given]
    return found[0] if len(written) == 1 else tuple(found)


class _DisableTorchDispatch:
    """Context in which no __torch_dispatch__ is asked, neither of classes nor of modes."""

    def __init__(self) -> None:
        self._saved: list[bool] = []

    def __enter__(self) -> None:
        self._saved.append(_C._set_dispatch_enabled(False))

    def __exit__(self, *_: object) -> None:
        _C._set_dispatch_enabled(self._saved.pop())


_C._DisableTorchDispatch = _DisableTorchDispatch
