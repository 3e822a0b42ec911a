"""Running combinations of slices by an associative function, in few steps."""

from __future__ import annotations

from collections.abc import Callable

import rushlight as torch
from rushlight import Tensor
from rushlight.utils import _pytree as pytree


def associative_scan(
    combine_fn: Callable,
    xs: object,
    dim: int,
    reverse: bool = False,
    combine_mode: str = "pointwise",
) -> object:
    """The combination of all slices of `xs` along `dim` up to each one.

    combine_fn(a, b) combines two slices, must be associative and must not change its arguments.
    combine_mode: "generic" here, as in PyTorch without a GPU.
    """
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(
            f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}"
        )
    if combine_mode == "pointwise":
        raise ValueError(
            "For combine_mode='pointwise', all input tensors need to be on CUDA or XPU"
        )
    leaves, spec = pytree.tree_flatten(xs)
    if not leaves:
        raise ValueError("Expected at least 1 xs leaf")
    leaves = [leaf.movedim(dim, 0) for leaf in leaves]
    if len({leaf.shape[0] for leaf in leaves}) != 1:
        raise ValueError(f"All xs leaves must have the same size in dimension {dim}")
    if reverse:
        leaves = [leaf.flip(0) for leaf in leaves]

    def combine(left: list[Tensor], right: list[Tensor]) -> list[Tensor]:
        def one(a: list[Tensor], b: list[Tensor]) -> list[Tensor]:
            made = combine_fn(pytree.tree_unflatten(a, spec), pytree.tree_unflatten(b, spec))
            return pytree.tree_flatten(made)[0]

        return torch.vmap(one)(left, right)

    leaves = _scan(combine, leaves)
    if reverse:
        leaves = [leaf.flip(0) for leaf in leaves]
    return pytree.tree_unflatten([leaf.movedim(0, dim) for leaf in leaves], spec)


def _scan(combine: Callable, leaves: list[Tensor]) -> list[Tensor]:
    """Combines neighbours, scans those pairs, and fills in the elements between."""
    size = leaves[0].shape[0]
    if size < 2:
        return leaves
    odd = _scan(combine, combine([x[:-1:2] for x in leaves], [x[1::2] for x in leaves]))
    if size == 2:
        even = [x[:1] for x in leaves]
    else:
        before = [x[:-1] for x in odd] if size % 2 == 0 else odd
        between = combine(before, [x[2::2] for x in leaves])
        even = [torch.cat([x[:1], y]) for x, y in zip(leaves, between)]
    return [_interleave(a, b) for a, b in zip(even, odd)]


def _interleave(even: Tensor, odd: Tensor) -> Tensor:
    pairs = torch.stack([even[: odd.shape[0]], odd], dim=1).flatten(0, 1)
    return torch.cat([pairs, even[odd.shape[0] :]])
