"""A branch."""

from __future__ import annotations

from collections.abc import Callable

import rushlight as torch
from rushlight import Tensor
from rushlight.utils import _pytree as pytree


def cond(
    pred: bool | int | float | Tensor,
    true_fn: Callable,
    false_fn: Callable,
    operands: tuple | list = (),
) -> object:
    """true_fn(*operands) where `pred` holds, else false_fn(*operands).

    Only one of them runs, save in vmap with a `pred` of the batch: both run there, and each element
    gets its own.
    """
    from rushlight._functorch._batched import BatchedTensor

    if isinstance(pred, BatchedTensor):
        taken, spec = pytree.tree_flatten(true_fn(*operands))
        other, other_spec = pytree.tree_flatten(false_fn(*operands))
        if spec != other_spec:
            raise RuntimeError(f"cond: the branches differ in structure: {spec} and {other_spec}")
        return pytree.tree_unflatten([torch.where(pred, a, b) for a, b in zip(taken, other)], spec)
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    return true_fn(*operands) if pred else false_fn(*operands)
