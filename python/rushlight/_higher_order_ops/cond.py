"""A branch."""

from __future__ import annotations

from collections.abc import Callable

import rushlight as torch
from rushlight import _C, Tensor
from rushlight.utils import _pytree as pytree


def cond(
    pred: bool | int | float | Tensor,
    true_fn: Callable,
    false_fn: Callable,
    operands: tuple | list = (),
) -> object:
    """true_fn(*operands) where `pred` holds, else false_fn(*operands).

    Only one of them runs, save in vmap with a `pred` of the batch: both run there, and each element
    gets its own. In a graph that is traced the choice is a node, and each function a graph.
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
    if isinstance(pred, Tensor) and _C._dispatch_is_open():
        from rushlight.fx.experimental.proxy_tensor import get_proxy_mode

        mode = get_proxy_mode()
        if mode is not None and mode.is_tracked(pred):
            from rushlight._higher_order_ops._traced_cond import traced_cond

            return traced_cond(mode, pred, true_fn, false_fn, operands)
    return true_fn(*operands) if pred else false_fn(*operands)
