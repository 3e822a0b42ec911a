"""What exported programs are decomposed into: the operators of PyTorch's core set of aten.

Each takes what its operator takes. NotImplemented: that call stays the operator that it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import rushlight as torch
from rushlight import ops
from rushlight._decomp import decompositions as simpler
from rushlight._decomp import register_decomposition

aten = ops.aten
core: dict[Any, Callable] = {  # by operator
    aten.silu.default: simpler.silu,
    aten.hardswish.default: simpler.hardswish,
    aten.masked_fill.Scalar: simpler.masked_fill,
}


def _core(*operators: Any) -> Callable[[Callable], Callable]:
    return register_decomposition(operators, core)


# ---- Views ---------------------------------------------------------------------------------------


@_core(aten.t.default)
def t(self: Any) -> Any:
    return aten.permute.default(self, [1, 0] if self.dim() == 2 else list(range(self.dim())))


@_core(aten.transpose.int)
def transpose(self: Any, dim0: int, dim1: int) -> Any:
    order = list(range(self.dim()))
    if order:
        order[dim0], order[dim1] = order[dim1], order[dim0]
    return aten.permute.default(self, order)


@_core(aten.split.Tensor)
def split(self: Any, split_size: int, dim: int = 0) -> Any:
    size = self.size(dim)
    if split_size <= 0 or size == 0:
        return NotImplemented
    pieces = [min(split_size, size - start) for start in range(0, size, split_size)]
    return aten.split_with_sizes.default(self, pieces, dim)


@_core(aten._unsafe_view.default)
def _unsafe_view(self: Any, size: list[int]) -> Any:
    return aten.view.default(self, size)


# ---- Arithmetic and reductions -------------------------------------------------------------------


@_core(aten.rsub.Tensor, aten.rsub.Scalar)
def rsub(self: Any, other: Any, *, alpha: float = 1) -> Any:
    return torch.sub(other, self if alpha == 1 else self * alpha)


@_core(aten.floor_divide.default)
def floor_divide(self: Any, other: Any) -> Any:
    return torch.div(self, other, rounding_mode="floor")


@_core(aten.sum.default)
def sum(self: Any, *, dtype: torch.dtype | None = None) -> Any:
    return aten.sum.dim_IntList(self, [], dtype=dtype)


# ---- Losses --------------------------------------------------------------------------------------


def _reduced(loss: Any, reduction: int) -> Any:
    return loss if reduction == 0 else loss.mean() if reduction == 1 else aten.sum.default(loss)


@_core(aten.mse_loss.default)
def mse_loss(self: Any, target: Any, reduction: int = 1) -> Any:
    if self.dtype != target.dtype:
        return NotImplemented
    return _reduced((self - target).pow(2), reduction)


@_core(aten.nll_loss_nd.default)
def nll_loss(
    self: Any, target: Any, weight: Any = None, reduction: int = 1, ignore_index: int = -100
) -> Any:
    if weight is not None or self.dim() != target.dim() + 1 or not target.numel():
        return NotImplemented
    dim = 1 if self.dim() > 1 else 0
    kept = target != ignore_index
    picked = self.gather(dim, torch.where(kept, target, 0).unsqueeze(dim)).squeeze(dim)
    loss = torch.where(kept, -picked, 0.0)
    if reduction != 1:
        return _reduced(loss, reduction)
    return aten.sum.default(loss) / aten.sum.default(kept).to(self.dtype)


@_core(aten.cross_entropy_loss.default)
def cross_entropy_loss(
    self: Any,
    target: Any,
    weight: Any = None,
    reduction: int = 1,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Any:
    if label_smoothing or target.is_floating_point() or self.dtype.itemsize < 4:
        return NotImplemented
    costs = torch.log_softmax(self, 1 if self.dim() > 1 else 0)
    return nll_loss(costs, target, weight, reduction, ignore_index)


# ---- Layers --------------------------------------------------------------------------------------


@_core(aten.rms_norm.default)
def rms_norm(
    input: Any, normalized_shape: list[int], weight: Any = None, eps: float | None = None
) -> Any:
    if input.dtype != torch.float32 and input.dtype != torch.float64:
        return NotImplemented  # of halves it is computed in float
    eps = torch.finfo(input.dtype).eps if eps is None else eps
    dims = list(range(-len(normalized_shape), 0))
    normal = input * torch.rsqrt(input.pow(2).mean(dims, keepdim=True) + eps)
    return normal if weight is None else normal * weight


@_core(aten.batch_norm.default)
def batch_norm(
    input: Any,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Any:
    if training:
        return NotImplemented
    return aten._native_batch_norm_legit_no_training.default(
        input, weight, bias, running_mean, running_var, momentum, eps
    )[0]


@_core(aten.group_norm.default)
def group_norm(
    input: Any,
    num_groups: int,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Any:
    if not input.numel() or not input.is_contiguous():
        return NotImplemented
    samples, channels = input.size(0), input.size(1)
    positions = input.numel() // (samples * channels)
    return aten.native_group_norm.default(
        input, weight, bias, samples, channels, positions, num_groups, eps
    )[0]


@_core(aten.max_pool2d.default)
def max_pool2d(self: Any, *settings: Any) -> Any:
    return aten.max_pool2d_with_indices.default(self, *settings)[0]


@_core(aten.scaled_dot_product_attention.default)
def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    if dropout_p or enable_gqa or query.dtype.itemsize < 4 or not query.size(-1):
        return NotImplemented
    # Half of the scale to each side, so that neither product is large.
    factor = math.sqrt(1 / math.sqrt(query.size(-1)) if scale is None else abs(scale))
    left = query * (factor if scale is None or scale >= 0 else -factor)
    scores = left @ (key.transpose(-2, -1) * factor)
    if is_causal:
        rows = torch.arange(query.size(-2), device=query.device).unsqueeze(-1)
        attn_mask = torch.arange(key.size(-2), device=query.device) <= rows
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        attn_mask = torch.where(attn_mask, 0.0, -math.inf)
    if attn_mask is not None:
        scores = scores + attn_mask
    shares = torch.softmax(scores, -1)
    if attn_mask is not None:  # rows that see nothing are zero
        seen = (scores != -math.inf).any(-1, keepdim=True)
        shares = torch.where(seen, shares, 0.0)
    return shares @ value
