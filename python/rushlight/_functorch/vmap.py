"""vmap: a function of one element, carried out on a batch of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import rushlight as torch
from rushlight import Tensor
from rushlight._functorch._batched import Level
from rushlight.utils._pytree import (
    TreeSpec,
    _broadcast_to_and_flatten,
    tree_flatten,
    tree_unflatten,
)

in_dims_t = int | tuple
out_dims_t = int | tuple


def vmap(
    func: Callable,
    in_dims: int | tuple = 0,
    out_dims: int | tuple = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable:
    """A function that maps `func` over a dimension of its arguments.

    in_dims: the dimension of each argument (a tree like the arguments), None for those that all
    elements share, as they do keyword arguments. out_dims: where the results have the batch.
    randomness: 'error', 'same' numbers for all elements, or 'different' ones. chunk_size:
    how many elements to take at once.

    Operators without a batching rule run once for each element. Numbers cannot be read inside, nor
    control flow depend on them.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            "Only allowed values for randomness are 'error', 'different', or 'same'. Got "
            f"{randomness}"
        )
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        size, dims, leaves, spec = _process_batched_inputs(in_dims, args, func)
        _check_out_dims(out_dims, func)

        def mapped(length: int, part: list) -> Any:
            level = Level(length, randomness)
            with level:
                given = tree_unflatten(_entered(level, part, dims), spec)
                result = func(*given, **kwargs)
            return _left(level, result, out_dims, func)

        if chunk_size is None or chunk_size >= size:
            return mapped(size, leaves)
        return _in_chunks(mapped, size, dims, leaves, out_dims, randomness, chunk_size)

    return wrapped


def _name(func: Callable) -> str:
    return getattr(func, "__name__", None) or repr(func)


def _process_batched_inputs(
    in_dims: int | tuple, args: tuple, func: Callable
) -> tuple[int, list, list, TreeSpec]:
    """The size of the batch, and the leaves of the arguments with their dimensions."""
    head = f"vmap({_name(func)}, in_dims={in_dims}, ...)(<inputs>): "
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"{head}expected `in_dims` to be int or a (potentially nested) tuple matching the "
            f"structure of inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({_name(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you "
            "are trying to vmap over a function with no inputs. The latter is unsupported."
        )
    leaves, spec = tree_flatten(args)
    dims = _broadcast_to_and_flatten(in_dims, spec)
    if dims is None:
        raise ValueError(
            f"{head}in_dims is not compatible with the structure of `inputs`. in_dims has "
            f"structure {tree_flatten(in_dims)[1]} but inputs has structure {spec}."
        )
    dims = [_checked_dim(head, leaf, dim) for leaf, dim in zip(leaves, dims, strict=True)]
    sizes = [x.size(dim) for x, dim in zip(leaves, dims, strict=True) if dim is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if any(size != sizes[0] for size in sizes):
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    return sizes[0], dims, leaves, spec


def _checked_dim(head: str, leaf: Any, dim: Any) -> int | None:
    if dim is not None and (not isinstance(dim, int) or isinstance(dim, bool)):
        raise ValueError(
            f"{head}Got in_dim={dim} for an input but in_dim must be either an integer dimension "
            "or None."
        )
    if dim is None:
        return None
    if not isinstance(leaf, Tensor):
        raise ValueError(
            f"{head}Got in_dim={dim} for an input but the input is of type {type(leaf)}. We cannot "
            "vmap over non-Tensor arguments, please use None as the respective in_dim"
        )
    if not -leaf.dim() <= dim < leaf.dim():
        raise ValueError(
            f"{head}Got in_dim={dim} for some input, but that input is a Tensor of dimensionality "
            f"{leaf.dim()} so expected in_dim to satisfy -{leaf.dim()} <= in_dim < {leaf.dim()}."
        )
    return dim % leaf.dim()


def _entered(level: Level, leaves: list, dims: list) -> list:
    """The leaves as elements of the batch."""
    return [
        leaf if dim is None else level.wrap(leaf.movedim(dim, 0))
        for leaf, dim in zip(leaves, dims, strict=True)
    ]


def _check_out_dims(out_dims: Any, func: Callable) -> None:
    flat = tree_flatten(out_dims)[0]
    if not all(dim is None or isinstance(dim, int) for dim in flat):
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a "
            "python collection of ints representing where in the outputs the vmapped dimension "
            "should appear."
        )


def _left(level: Level, result: Any, out_dims: Any, func: Callable) -> Any:
    """The results of the whole batch, the batch where out_dims says."""
    outputs, spec = tree_flatten(result)
    if isinstance(result, Tensor) and isinstance(out_dims, tuple) and len(out_dims) == 1:
        out_dims = out_dims[0]
    dims = _broadcast_to_and_flatten(out_dims, spec)
    if dims is None:
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible "
            f"with the structure of `outputs`. out_dims has structure {tree_flatten(out_dims)[1]} "
            f"but outputs has structure {spec}."
        )
    placed = [_placed(level, x, dim, func) for x, dim in zip(outputs, dims, strict=True)]
    return tree_unflatten(placed, spec)


def _placed(level: Level, output: Any, dim: int | None, func: Callable) -> Any:
    if dim is None:
        if level.is_batched(output):
            raise ValueError(
                f"vmap({_name(func)}, ...): `{_name(func)}` can not return a BatchedTensor when "
                "out_dim is None"
            )
        return output
    if not isinstance(output, Tensor):
        raise ValueError(
            f"vmap({_name(func)}, ...): `{_name(func)}` must only return Tensors, got type "
            f"{type(output)}. Did you mean to set out_dims= to None for output?"
        )
    whole = level.whole(output)
    if not level.is_batched(output):
        whole = whole.unsqueeze(0).expand(level.size, *whole.shape)
    return whole.movedim(0, dim) if dim else whole


def _in_chunks(
    mapped: Callable,
    size: int,
    dims: list,
    leaves: list,
    out_dims: Any,
    randomness: str,
    chunk_size: int,
) -> Any:
    """The results of some elements at a time, joined."""
    flats, spec = [], None
    state = torch.get_rng_state() if randomness == "same" else None
    for start, length in _chunks(size, chunk_size):
        if state is not None:
            torch.set_rng_state(state)
        part = [_cut(x, dim, start, length) for x, dim in zip(leaves, dims, strict=True)]
        flat, spec = tree_flatten(mapped(length, part))
        flats.append(flat)
    joined_dims = _broadcast_to_and_flatten(out_dims, spec)
    joined = [
        column[0] if dim is None else torch.cat(column, dim)
        for column, dim in zip(map(list, zip(*flats, strict=True)), joined_dims, strict=True)
    ]
    return tree_unflatten(joined, spec)


def _chunks(size: int, chunk_size: int) -> Iterator[tuple[int, int]]:
    for start in range(0, size, chunk_size):
        yield start, min(chunk_size, size - start)


def _cut(leaf: Any, dim: int | None, start: int, length: int) -> Any:
    return leaf if dim is None else leaf.narrow(dim, start, length)
