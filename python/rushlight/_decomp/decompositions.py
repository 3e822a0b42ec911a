"""The decompositions. Each takes what its operator takes, and stand-ins of fx for tensors."""

from __future__ import annotations

import math
from typing import Any

import rushlight as torch
from rushlight import ops
from rushlight._decomp import register_decomposition

aten = ops.aten


# ---- Activations ---------------------------------------------------------------------------------


@register_decomposition(aten.silu)
def silu(self: Any) -> Any:
    return self * torch.sigmoid(self)


@register_decomposition(aten.gelu)
def gelu(self: Any, *, approximate: str = "none") -> Any:
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (self + 0.044715 * self * self * self)
        return 0.5 * self * (1 + torch.tanh(inner))
    return self * 0.5 * (1 + torch.erf(self * math.sqrt(0.5)))


@register_decomposition(aten.softplus)
def softplus(self: Any, beta: float = 1, threshold: float = 20) -> Any:
    scaled = self * beta
    return torch.where(scaled > threshold, self, torch.log1p(torch.exp(scaled)) / beta)


@register_decomposition(aten.hardsigmoid)
def hardsigmoid(self: Any) -> Any:
    return torch.clamp(torch.clamp(self + 3, min=0), max=6) / 6


@register_decomposition(aten.hardswish)
def hardswish(self: Any) -> Any:
    return self * torch.clamp(torch.clamp(self + 3, min=0), max=6) / 6


@register_decomposition(aten.mish)
def mish(self: Any) -> Any:
    return self * torch.tanh(softplus(self))


@register_decomposition(aten.elu)
def elu(self: Any, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Any:
    negative = torch.expm1(self * input_scale) * (alpha * scale)
    return torch.where(self > 0, self * scale, negative)


@register_decomposition(aten.celu)
def celu(self: Any, alpha: float = 1.0) -> Any:
    return torch.where(self > 0, self, torch.expm1(self / alpha) * alpha)


@register_decomposition(aten.selu)
def selu(self: Any) -> Any:
    return elu(self, 1.6732632423543772, 1.0507009873554805)


@register_decomposition(aten.leaky_relu)
def leaky_relu(self: Any, negative_slope: float = 0.01) -> Any:
    return torch.where(self > 0, self, self * negative_slope)


@register_decomposition(aten.log_sigmoid)
def log_sigmoid(self: Any) -> Any:
    return torch.clamp(self, max=0) - torch.log1p(torch.exp(-torch.abs(self)))


@register_decomposition(aten.hardtanh)
def hardtanh(self: Any, min_val: float = -1, max_val: float = 1) -> Any:
    return torch.clamp(self, min_val, max_val)


@register_decomposition(aten.threshold)
def threshold(self: Any, threshold: float, value: float) -> Any:
    return torch.where(self <= threshold, value, self)


@register_decomposition(aten.hardshrink)
def hardshrink(self: Any, lambd: float = 0.5) -> Any:
    return torch.where(torch.abs(self) <= lambd, 0.0, self)


@register_decomposition(aten._softmax.default)
def _softmax(self: Any, dim: int) -> Any:
    exponentials = torch.exp(self - torch.amax(self, dim, keepdim=True))
    return exponentials / torch.sum(exponentials, dim, keepdim=True)


@register_decomposition(aten._log_softmax.default)
def _log_softmax(self: Any, dim: int) -> Any:
    shifted = self - torch.amax(self, dim, keepdim=True)
    return shifted - torch.log(torch.sum(torch.exp(shifted), dim, keepdim=True))


# ---- Arithmetic ----------------------------------------------------------------------------------


@register_decomposition(aten.rsub)
def rsub(self: Any, other: Any, alpha: float = 1) -> Any:
    return torch.sub(other, self * alpha)


@register_decomposition(aten.addcmul)
def addcmul(self: Any, tensor1: Any, tensor2: Any, *, value: float = 1) -> Any:
    return self + tensor1 * tensor2 * value


@register_decomposition(aten.addcdiv)
def addcdiv(self: Any, tensor1: Any, tensor2: Any, *, value: float = 1) -> Any:
    return self + tensor1 / tensor2 * value


@register_decomposition(aten.lerp)
def lerp(self: Any, end: Any, weight: Any) -> Any:
    return self + (end - self) * weight


@register_decomposition(aten.frac)
def frac(self: Any) -> Any:
    return self - torch.trunc(self)


@register_decomposition(aten.sinc)
def sinc(self: Any) -> Any:
    angle = self * math.pi
    return torch.where(self == 0, 1.0, torch.sin(angle) / angle)


@register_decomposition(aten.xlogy.Tensor)
def xlogy(self: Any, other: Any) -> Any:
    product = torch.where(self == 0, 0.0, self * torch.log(other))
    return torch.where(torch.isnan(other), other, product)


@register_decomposition(aten.logit)
def logit(self: Any, eps: float | None = None) -> Any:
    if eps is not None:
        self = torch.clamp(self, eps, 1 - eps)
    return torch.log(self / (1 - self))


@register_decomposition(aten.logaddexp)
def logaddexp(self: Any, other: Any) -> Any:
    larger = torch.maximum(self, other)
    return larger + torch.log1p(torch.exp(-torch.abs(self - other)))


@register_decomposition(aten.clamp_min)
def clamp_min(self: Any, min: Any) -> Any:
    return torch.clamp(self, min=min)


@register_decomposition(aten.clamp_max)
def clamp_max(self: Any, max: Any) -> Any:
    return torch.clamp(self, max=max)


@register_decomposition(aten.masked_fill.Scalar)
def masked_fill(self: Any, mask: Any, value: float) -> Any:
    return torch.where(mask, value, self)


# ---- Reductions and products ---------------------------------------------------------------------


@register_decomposition(aten.logsumexp)
def logsumexp(self: Any, dim: list[int], keepdim: bool = False) -> Any:
    largest = torch.amax(self, dim, keepdim=True)
    largest = torch.where(torch.isinf(largest), 0.0, largest)
    total = torch.log(torch.sum(torch.exp(self - largest), dim, keepdim=True)) + largest
    return total if keepdim else torch.amax(total, dim)


@register_decomposition(aten.addmm)
def addmm(
    self: Any,
    mat1: Any,
    mat2: Any,
    out_dtype: torch.dtype | None = None,
    *,
    beta: float = 1,
    alpha: float = 1,
) -> Any:
    product = torch.mm(mat1, mat2) if out_dtype is None else torch.mm(mat1, mat2, out_dtype)
    return self * beta + product * alpha


@register_decomposition(aten.baddbmm)
def baddbmm(
    self: Any,
    batch1: Any,
    batch2: Any,
    out_dtype: torch.dtype | None = None,
    *,
    beta: float = 1,
    alpha: float = 1,
) -> Any:
    product = (
        torch.bmm(batch1, batch2) if out_dtype is None else torch.bmm(batch1, batch2, out_dtype)
    )
    return self * beta + product * alpha


# ---- Gradients -----------------------------------------------------------------------------------


@register_decomposition(aten.tanh_backward.default)
def tanh_backward(grad_output: Any, output: Any) -> Any:
    return grad_output * (1 - output * output)


@register_decomposition(aten.sigmoid_backward.default)
def sigmoid_backward(grad_output: Any, output: Any) -> Any:
    return grad_output * (output * (1 - output))


@register_decomposition(aten.threshold_backward.default)
def threshold_backward(grad_output: Any, self: Any, threshold: float) -> Any:
    return torch.where(self <= threshold, 0.0, grad_output)


@register_decomposition(aten._softmax_backward_data.default)
def _softmax_backward_data(grad_output: Any, output: Any, dim: int, input_dtype: Any) -> Any:
    product = grad_output * output
    return product - output * torch.sum(product, dim, keepdim=True)
