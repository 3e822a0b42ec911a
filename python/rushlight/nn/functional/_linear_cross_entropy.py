"""The cross entropy of the logits of a linear layer."""

from __future__ import annotations

import rushlight as torch
from rushlight import Tensor

from . import _reduction


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
    z_loss: float = 0.0,
) -> Tensor:
    """The cross entropy of input (N, F) times linear_weight (C, F), whose logits are never held.

    With linear_weight (C, d1, ..., dK, F) and linear_bias (C, d1, ..., dK), targets are classes
    (N, d1, ..., dK) or probabilities (N, C, d1, ..., dK). `z_loss` times the square of each
    row's logsumexp is added to its loss. Gradients differentiate again, and backward may run
    twice; `options` are hints that change neither. RuntimeError for shapes that do not fit,
    IndexError for a target outside [0, C), ValueError for options that contradict each other.
    """
    if options is not None:
        from ..modules.linear_cross_entropy_options import LinearCrossEntropyOptions

        if not isinstance(options, LinearCrossEntropyOptions):
            raise TypeError(
                "linear_cross_entropy(): options must be LinearCrossEntropyOptions or None, got "
                f"{type(options).__name__}"
            )
        # Where PyTorch would not split the work, its options are not looked at.
        if linear_weight.dim() == 2 and not target.is_floating_point() and not label_smoothing:
            options._check(input, linear_weight)
    return torch._C._nn.linear_cross_entropy(
        input,
        linear_weight,
        target,
        linear_bias=linear_bias,
        weight=weight,
        reduction=_reduction.get_enum(reduction),
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
        z_loss=z_loss,
    )
