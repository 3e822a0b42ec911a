"""A function over slices."""

from __future__ import annotations

from collections.abc import Callable

import rushlight as torch
from rushlight.utils import _pytree as pytree


def map(f: Callable, xs: object, *args: object) -> object:
    """f(x, *args) for each slice x of `xs` along its first dimension, stacked."""
    leaves, spec = pytree.tree_flatten(xs)
    sizes = {leaf.shape[0] for leaf in leaves}
    if len(sizes) != 1 or 0 in sizes:
        raise RuntimeError(f"map: leading dimensions of xs must be equal and not 0, got {sizes}")
    results = [
        pytree.tree_flatten(f(pytree.tree_unflatten([leaf[i] for leaf in leaves], spec), *args))
        for i in range(sizes.pop())
    ]
    stacked = [torch.stack(parts) for parts in zip(*(flat for flat, _ in results))]
    return pytree.tree_unflatten(stacked, results[0][1])
