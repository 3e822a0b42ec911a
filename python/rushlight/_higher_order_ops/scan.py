"""A loop over slices that carries a state."""

from __future__ import annotations

from collections.abc import Callable

import rushlight as torch
from rushlight.utils import _pytree as pytree


def scan(
    combine_fn: Callable, init: object, xs: object, *, dim: int = 0, reverse: bool = False
) -> tuple[object, object]:
    """Runs carry, y = combine_fn(carry, x) over the slices x of `xs` along `dim`, from `init` on.

    Gives the last carry, and all y stacked along `dim` in the order of the slices.
    """
    leaves, spec = pytree.tree_flatten(xs)
    if not leaves:
        raise RuntimeError("scan() operator requires at least one xs leaf")
    sizes = {leaf.shape[dim] for leaf in leaves}
    if len(sizes) != 1 or 0 in sizes:
        raise RuntimeError(
            f"scan: all xs leaves need the same size, not 0, in dimension {dim}, got {sizes}"
        )
    carry, outputs, out_spec = init, [], None
    order = range(sizes.pop())
    for i in reversed(order) if reverse else order:
        carry, y = combine_fn(
            carry, pytree.tree_unflatten([leaf.select(dim, i) for leaf in leaves], spec)
        )
        flat, out_spec = pytree.tree_flatten(y)
        outputs.append(flat)
    if reverse:
        outputs.reverse()
    stacked = [torch.stack(parts, dim) for parts in zip(*outputs)]
    return carry, pytree.tree_unflatten(stacked, out_spec)
