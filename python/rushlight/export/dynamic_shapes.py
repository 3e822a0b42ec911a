"""Sizes that an exported graph leaves open."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from rushlight import Tensor
from rushlight._dynamo.exc import UserError, UserErrorType
from rushlight.utils._pytree import tree_flatten

__all__ = ["Dim", "dims"]


class _DimHint(enum.Enum):
    AUTO = "AUTO"
    DYNAMIC = "DYNAMIC"
    STATIC = "STATIC"

    def __repr__(self) -> str:
        return f"DimHint({self.value})"


class Dim:
    """A size that may differ from call to call, the same wherever the name stands.

    min, max: what it may be, both included.
    """

    AUTO = _DimHint.AUTO
    DYNAMIC = _DimHint.DYNAMIC
    STATIC = _DimHint.STATIC

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        if not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        self.min = 0 if min is None else min
        self.max = max
        if max is not None and max <= self.min:
            raise AssertionError(f"Cannot create Dim with inconsistent min={self.min}, max={max}")
        self.__name__ = name

    def __repr__(self) -> str:
        parts = [repr(self.__name__)]
        if self.min > 2 or self.max is None:
            parts.append(f"min={self.min}")
        if self.max is not None:
            parts.append(f"max={self.max}")
        return f"Dim({', '.join(parts)})"


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Several Dims of the same range."""
    return tuple(Dim(name, min=min, max=max) for name in names)


class OpenSize(NamedTuple):
    """Dimension `dim` of leaf `leaf` of the arguments is open: it is the size called `name`."""

    leaf: int
    dim: int
    name: str


class Range(NamedTuple):
    """What a size may be; max None: anything."""

    min: int
    max: int | None


_HINTED = "s_"  # how the sizes of hints are called


def _fail(text: str) -> None:
    raise UserError(UserErrorType.INVALID_INPUT, text)


def open_sizes(
    function: Callable, args: tuple, kwargs: Mapping[str, Any], shapes: Any
) -> tuple[list[OpenSize], dict[str, Range], bool]:
    """The open sizes that dynamic_shapes asks for, the range of each, and whether hints are."""
    found: list[OpenSize] = []
    ranges: dict[str, Range] = {}
    if shapes is None:
        return found, ranges, False
    bound = inspect.signature(function).bind(*args, **kwargs).arguments
    if isinstance(shapes, Mapping):
        if set(shapes) - set(bound):
            _fail(
                "When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg "
                f"names {list(bound)} of `inputs`, but here they are {list(shapes)}. Alternatively,"
                " you could also ignore arg names entirely and specify `dynamic_shapes` as a "
                "list/tuple matching `inputs`."
            )
        pairs = [(shapes.get(name), value, name) for name, value in bound.items()]
    else:
        if len(shapes) != len(bound):
            _fail(
                f"dynamic_shapes has {len(shapes)} entries, the call has {len(bound)} arguments: "
                f"{list(bound)}"
            )
        pairs = [(s, value, name) for s, (name, value) in zip(shapes, bound.items())]
    leaf = 0
    for shape, value, name in pairs:
        leaf = _walk(shape, value, name, leaf, found, ranges)
    hinted = any(name.startswith(_HINTED) for name in ranges)
    return found, ranges, hinted


def _walk(shape: Any, value: Any, name: str, leaf: int, found: list, ranges: dict) -> int:
    """Notes the open sizes of one argument, whose first leaf is `leaf`; gives the leaf after it."""
    if isinstance(value, Tensor):
        entries = shape.items() if isinstance(shape, Mapping) else enumerate(shape or ())
        for dim, size in entries:
            _note(size, value, name, leaf, dim, found, ranges)
        return leaf + 1
    count = len(tree_flatten(value)[0])
    if shape is None:
        return leaf + count
    if isinstance(value, Mapping) and isinstance(shape, Mapping):
        for key, item in value.items():
            leaf = _walk(shape.get(key), item, f"{name}[{key!r}]", leaf, found, ranges)
        return leaf
    if isinstance(value, (tuple, list)) and isinstance(shape, (tuple, list)):
        if len(value) != len(shape):
            _fail(
                f"dynamic_shapes of {name} has {len(shape)} entries, the argument has {len(value)}"
            )
        for number, (entry, item) in enumerate(zip(shape, value)):
            leaf = _walk(entry, item, f"{name}[{number}]", leaf, found, ranges)
        return leaf
    _fail(
        f"dynamic_shapes of {name} is {shape!r}, which does not fit an argument of type "
        f"{type(value).__name__}"
    )


def _note(
    size: Any, tensor: Tensor, name: str, leaf: int, dim: int, found: list, ranges: dict
) -> None:
    if size is None or size is Dim.STATIC or isinstance(size, int):
        return
    if not -tensor.dim() <= dim < tensor.dim():
        _fail(f"dynamic_shapes of {name} names dimension {dim} of a {tensor.dim()}-D tensor")
    dim %= tensor.dim()
    if size in (Dim.AUTO, Dim.DYNAMIC):
        size = Dim(f"{_HINTED}{len(ranges)}")
    elif not isinstance(size, Dim):
        _fail(
            f"dynamic_shapes of {name}[{dim}] must be None, an int, a Dim or a hint, got {size!r}"
        )
    given = tensor.shape[dim]
    if given < size.min or (size.max is not None and given > size.max):
        _fail(f"{name}.shape[{dim}] = {given} is outside the range of {size!r}")
    found.append(OpenSize(leaf, dim, size.__name__))
    ranges[size.__name__] = Range(size.min, size.max)
