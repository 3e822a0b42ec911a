"""Custom functions inside vmap: by their own rule, or one made from forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import rushlight as torch
from rushlight import Tensor
from rushlight._functorch._batched import Level, active_levels
from rushlight.utils._pytree import (
    _broadcast_to_and_flatten,
    tree_flatten,
    tree_map_only,
    tree_unflatten,
)


class VmapInfo(NamedTuple):
    """What a function's vmap rule is told of the batch."""

    batch_size: int
    randomness: str


_SETUP = (
    "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, "
    "...), it must override the setup_context staticmethod."
)


def apply_batched(cls: type, apply: Callable, args: tuple) -> Any:
    """A function's apply, where its arguments may be elements of a batch."""
    for level in reversed(active_levels()):
        if level.involves(args):
            return _apply(level, cls, args)
    return apply(*args)


def _apply(level: Level, cls: type, args: tuple) -> Any:
    from rushlight.autograd.function import Function, _is_setup_context_defined

    if not _is_setup_context_defined(cls.setup_context):
        raise RuntimeError(_SETUP)
    own_rule = cls.vmap is not Function.vmap
    if own_rule and cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and "
            "an overriden vmap staticmethod. Please set generate_vmap_rule=False or delete the "
            "overriden vmap staticmethod to avoid ambiguity."
        )
    if own_rule:
        return _by_rule(level, cls, args)
    if not cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please "
            "override and implement the vmap staticmethod or set generate_vmap_rule=True."
        )
    return _one_by_one(level, cls, args)


def _by_rule(level: Level, cls: type, args: tuple) -> Any:
    in_dims = tuple(0 if level.is_batched(arg) else None for arg in args)
    wholes = [level.whole(arg) for arg in args]
    with level.suspended():
        result = cls.vmap(VmapInfo(level.size, level.randomness), in_dims, *wholes)
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(
            f"Expected the vmap staticmethod of {cls.__name__} to return an (output, out_dims) "
            f"tuple, got {type(result)}"
        )
    return _placed(level, cls.__name__, *result)


def by_library_rule(level: Level, operator: Any, args: tuple, kwargs: dict) -> Any:
    """An operator of a library, by the vmap rule that it has."""
    given, keywords = operator.schema.bind(operator.qualname, args, kwargs)
    in_dims = tuple(_dims_of(level, arg) for arg in given)
    wholes = [tree_map_only(Tensor, level.whole, arg) for arg in given]
    info = VmapInfo(level.size, level.randomness)
    output, out_dims = operator.vmap(info, in_dims, *wholes, **keywords)
    return _placed(level, operator.qualname, output, out_dims)


def _dims_of(level: Level, arg: Any) -> Any:
    if isinstance(arg, list):
        return [0 if level.is_batched(each) else None for each in arg]
    return 0 if level.is_batched(arg) else None


def _placed(level: Level, name: str, output: Any, out_dims: Any) -> Any:
    """What a vmap rule gave, as elements."""
    flat, spec = tree_flatten(output)
    dims = _broadcast_to_and_flatten(out_dims, spec)
    if dims is None:
        raise RuntimeError(f"The vmap rule of {name} returned out_dims that do not fit its output")
    wrapped = [
        value if dim is None else level.wrap(value.movedim(dim, 0))
        for value, dim in zip(flat, dims, strict=True)
    ]
    return tree_unflatten(wrapped, spec)


def _one_by_one(level: Level, cls: type, args: tuple) -> Any:
    """The function once for each element, each with a place on the tape of its own."""
    with level.suspended():
        rows = [cls.apply(*level.element(args, i)) for i in range(level.size)]
        if isinstance(rows[0], Tensor):
            return level.wrap(torch.stack(rows))
        columns = list(zip(*rows, strict=True))
        stacked = [torch.stack(c) if isinstance(c[0], Tensor) else c[0] for c in columns]
    return level.wrap(tuple(stacked))
