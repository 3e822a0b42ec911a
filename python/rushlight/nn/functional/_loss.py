"""Losses. `reduction` is "none", "mean" or "sum"; `size_average` and `reduce` are its older
form.
"""

from __future__ import annotations

import math

import rushlight as torch
from rushlight import Tensor

from . import _reduction
from ._reduction import choose


def _broadcast(input: Tensor, target: Tensor) -> list[Tensor]:
    """Both expanded to a common shape, with a warning where they differ."""
    if target.size() != input.size():
        import warnings

        warnings.warn(
            f"Using a target size ({target.size()}) that is different to the input size "
            f"({input.size()}). This will likely lead to incorrect results due to broadcasting. "
            "Please ensure they have the same size.",
            stacklevel=3,
        )
        return torch.broadcast_tensors(input, target)
    return [input, target]


def _check_reduction(reduction: str) -> None:
    if not isinstance(reduction, str) or reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")


def _reduce(loss: Tensor, reduction: str) -> Tensor:
    if reduction == "none":
        return loss
    return loss.mean() if reduction == "mean" else loss.sum()


def _weighted(loss: Tensor, weight: Tensor, input: Tensor, reduction: str) -> Tensor:
    """The weighted loss; its mean is over the sum of the weights."""
    if weight.size() != input.size():
        raise ValueError("Weights and input must have the same size.")
    loss = loss * weight
    _check_reduction(reduction)
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.sum() / weight.sum()


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative log likelihood: `input` (N, C, ...) log-probabilities, `target` (N, ...)
    classes.
    """
    number = choose(size_average, reduce, reduction)
    return torch._C._nn.nll_loss_nd(input, target, weight, number, ignore_index)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The cross entropy of logits `input` (N, C, ...) and `target`: classes (N, ...) or
    probabilities.
    """
    number = choose(size_average, reduce, reduction)
    return torch._C._nn.cross_entropy_loss(
        input, target, weight, number, ignore_index, label_smoothing
    )


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative log likelihood of Poisson counts; `full` adds Stirling's approximation."""
    if size_average is not None or reduce is not None:
        reduction = _reduction.legacy_get_string(size_average, reduce)
    _check_reduction(reduction)
    number = _reduction.get_enum(reduction)
    return torch.poisson_nll_loss(input, target, log_input, full, eps, number)


def _shared_along_one_dim(var: Tensor, input: Tensor) -> bool:
    """Whether `var` has the shape of `input` but for one dimension of size 1."""
    if var.ndim != input.ndim:
        return False
    other = [own for own, wanted in zip(var.size(), input.size()) if own != wanted]
    return other == [1]


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """The negative log likelihood of `target` under normal distributions with variance `var`."""
    if not isinstance(var, Tensor):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * torch.ones_like(input)
    elif torch.any(var < 0):
        raise ValueError("var has negative entry/entries")
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            var = var.unsqueeze(-1)
        elif not _shared_along_one_dim(var, input):
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    var = var.clone()
    with torch.no_grad():
        var.clamp_(min=eps)
    dtype = torch.promote_types(torch.result_type(input, target), var.dtype)
    half = dtype in (torch.float16, torch.bfloat16)
    if half:  # the terms cancel
        input, target, var = input.float(), target.float(), var.float()
    loss = 0.5 * (torch.log(var) + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    loss = _reduce(loss, reduction)
    return loss.to(dtype) if half else loss


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """The Kullback-Leibler divergence; `input` holds log-probabilities. "batchmean" divides by
    N.
    """
    if size_average is not None or reduce is not None:
        number = _reduction.legacy_get_enum(size_average, reduce)
    elif reduction == "batchmean":
        number = _reduction.get_enum("sum")
    else:
        if reduction == "mean":
            import warnings

            warnings.warn(
                "reduction: 'mean' divides the total loss by both the batch size and the support "
                "size. "
                "'batchmean' divides only by the batch size, and aligns with the KL div math "
                "definition. 'mean' will be changed to behave the same as 'batchmean' in the next "
                "major release.",
                stacklevel=2,
            )
        number = _reduction.get_enum(reduction)
    loss = torch.kl_div(input, target, number, log_target=log_target)
    if reduction == "batchmean" and input.dim() != 0:
        loss = loss / input.size()[0]
    return loss


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The cross entropy of probabilities `input` and `target` of the same shape."""
    number = choose(size_average, reduce, reduction)
    if target.size() != input.size():
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size "
            f"({input.size()}) is deprecated. Please ensure they have the same size."
        )
    if weight is not None and weight.size() != target.size():
        weight = weight.expand(torch.broadcast_shapes(weight.size(), target.size()))
    return torch._C._nn.binary_cross_entropy(input, target, weight, number)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """The cross entropy of sigmoid(`input`) and `target`; `pos_weight` weighs the positive
    class.
    """
    number = choose(size_average, reduce, reduction)
    if target.size() != input.size():
        raise ValueError(
            f"Target size ({target.size()}) must be the same as input size ({input.size()})"
        )
    return torch.binary_cross_entropy_with_logits(input, target, weight, pos_weight, number)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Half the squared error over `beta` where the error is below `beta`, else error - beta / 2."""
    input, target = _broadcast(input, target)
    number = choose(size_average, reduce, reduction)
    if beta == 0.0:
        return torch._C._nn.l1_loss(input, target, number)
    return torch._C._nn.smooth_l1_loss(input, target, number, beta)


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """Half the squared error where the error is below `delta`, else delta (error - delta / 2)."""
    input, target = _broadcast(input, target)
    if weight is not None:
        loss = torch._C._nn.huber_loss(input, target, 0, delta)
        return _weighted(loss, weight, input, reduction)
    return torch._C._nn.huber_loss(input, target, _reduction.get_enum(reduction), delta)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The absolute error."""
    input, target = _broadcast(input, target)
    if weight is not None:
        if size_average is not None or reduce is not None:
            reduction = _reduction.legacy_get_string(size_average, reduce)
        return _weighted((input - target).abs(), weight, input, reduction)
    return torch._C._nn.l1_loss(input, target, choose(size_average, reduce, reduction))


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The squared error."""
    input, target = _broadcast(input, target)
    if weight is not None:
        if size_average is not None or reduce is not None:
            reduction = _reduction.legacy_get_string(size_average, reduce)
        return _weighted((input - target) ** 2, weight, input, reduction)
    return torch._C._nn.mse_loss(input, target, choose(size_average, reduce, reduction))


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, -target (input1 - input2) + margin)."""
    number = choose(size_average, reduce, reduction)
    if input1.dim() != input2.dim() or input1.dim() != target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return torch.margin_ranking_loss(input1, input2, target, margin, number)


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """x where the target is 1, max(0, margin - x) where it is -1."""
    number = choose(size_average, reduce, reduction)
    return torch.hinge_embedding_loss(input, target, margin, number)


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The hinge loss between every label of a sample and every other class."""
    return torch._C._nn.multilabel_margin_loss(
        input, target, choose(size_average, reduce, reduction)
    )


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """log(1 + exp(-target x))."""
    return torch._C._nn.soft_margin_loss(input, target, choose(size_average, reduce, reduction))


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over classes of the one-against-all logistic loss."""
    if size_average is not None or reduce is not None:
        reduction = _reduction.legacy_get_string(size_average, reduce)
    log_sigmoid = torch._C._nn.log_sigmoid
    loss = -(target * log_sigmoid(input) + (1 - target) * log_sigmoid(-input))
    if weight is not None:
        loss = loss * weight
    loss = loss.sum(dim=input.dim() - 1) / input.size(input.dim() - 1)
    _check_reduction(reduction)
    return _reduce(loss, reduction)


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """1 - cos where the target is 1, max(0, cos - margin) where it is -1."""
    number = choose(size_average, reduce, reduction)
    return torch.cosine_embedding_loss(input1, input2, target, margin, number)


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The hinge loss between the right class and every other, to the power `p` (1 or 2)."""
    number = choose(size_average, reduce, reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    return torch._C._nn.multi_margin_loss(input, target, p, margin, weight, number)


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor,
    target_lengths: Tensor,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """The connectionist temporal classification loss (Graves et al., 2006)."""
    return torch.ctc_loss(
        log_probs,
        targets,
        input_lengths,
        target_lengths,
        blank,
        _reduction.get_enum(reduction),
        zero_infinity,
    )


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin) for the p-norm distance."""
    number = choose(size_average, reduce, reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return torch.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, number)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function=None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """The triplet margin loss for any distance function."""
    if distance_function is None:
        distance_function = torch.pairwise_distance
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    dims = anchor.ndim, positive.ndim, negative.ndim
    if len(set(dims)) != 1:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {dims[0]}D, positive {dims[1]}D, and negative "
            f"{dims[2]}D inputs"
        )
    near = distance_function(anchor, positive)
    far = distance_function(anchor, negative)
    if swap:  # the negative may be nearer to the positive than to the anchor
        far = torch.minimum(far, distance_function(positive, negative))
    loss = torch.clamp_min(margin + near - far, 0)
    _check_reduction(reduction)
    return _reduce(loss, reduction)
