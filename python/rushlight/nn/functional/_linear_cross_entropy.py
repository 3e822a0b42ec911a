"""The cross entropy of the logits of a linear layer."""

from __future__ import annotations

import rushlight as torch
from rushlight import Tensor

from ._loss import cross_entropy


def _check_linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    linear_bias: Tensor | None,
    ignore_index: int | None,
) -> None:
    shape = tuple(linear_weight.shape)
    if input.ndim not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.ndim}")
    if len(shape) < 2:
        raise RuntimeError(
            f"expected linear_weight with dimensionality at least 2, got {len(shape)}"
        )
    if input.shape[-1] != shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), "
            f"got {input.shape[-1]} and {shape[-1]}, respectively"
        )
    if len(shape) > 2 and input.ndim == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {shape} requires batched input, "
            f"(N, {shape[-1]}), got unbatched input with shape {tuple(input.shape)}"
        )
    if linear_bias is not None and tuple(linear_bias.shape) != shape[:-1]:
        raise RuntimeError(
            f"expected linear_bias shape {shape[:-1]}, got {tuple(linear_bias.shape)}"
        )
    if target.is_floating_point():
        if ignore_index is not None:
            raise RuntimeError(
                "ignore_index cannot be specified when target contains probabilities"
            )
    elif target.dtype not in (torch.int64, torch.uint8):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {target.dtype}")


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: object = None,
) -> Tensor:
    """The cross entropy of the logits that a linear layer makes of `input` (..., in_features).

    `linear_weight` is (C, *out, in_features) or, with a single class dimension, (C, in_features).
    """
    _check_linear_cross_entropy(input, linear_weight, target, linear_bias, ignore_index)
    classes, out_shape = linear_weight.shape[0], linear_weight.shape[1:-1]
    flat = linear_weight.reshape(-1, linear_weight.shape[-1])
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = torch._C._nn.linear(input, flat, bias)
    logits = logits.reshape(*input.shape[:-1], classes, *out_shape)
    return cross_entropy(
        logits,
        target,
        weight,
        ignore_index=-100 if ignore_index is None else ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )
