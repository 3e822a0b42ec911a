"""Batch normalization folded into the layer before it, for inference."""

from __future__ import annotations

import copy
from typing import Any

import rushlight as torch
from rushlight import Tensor
from rushlight.nn.parameter import Parameter

__all__ = [
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
]


def _scale_and_shift(rm: Tensor, rv: Tensor, eps: float, weight: Any, bias: Any) -> tuple:
    """A batch normalization in evaluation as scale * x + shift."""
    scale = torch.rsqrt(rv + eps)
    scale = scale if weight is None else weight * scale
    return scale, (0 if bias is None else bias) - rm * scale


def _parameters(weight: Tensor, bias: Tensor, like: Tensor, like_bias: Any) -> tuple:
    with_grad = like.requires_grad
    bias_grad = with_grad if like_bias is None else like_bias.requires_grad
    return Parameter(weight.detach(), with_grad), Parameter(bias.detach(), bias_grad)


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """The weight and bias of a convolution that does what it and the normalization after it do.

    conv_w: (O, I, ...), or (I, O, ...) where transpose.
    """
    scale, shift = _scale_and_shift(bn_rm, bn_rv, bn_eps, bn_w, bn_b)
    sizes = [1, -1] if transpose else [-1, 1]
    weight = (conv_w * scale.reshape(sizes + [1] * (conv_w.dim() - 2))).to(conv_w.dtype)
    bias = shift if conv_b is None else conv_b * scale + shift
    return _parameters(weight, bias.to(conv_w.dtype), conv_w, conv_b)


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """The weight and bias of a layer that does what it and the normalization after it do."""
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def _check_evaluation(layer: Any, bn: Any) -> None:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("Fusion needs a batch normalization with running statistics")


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A copy of a convolution that does what it and a batch normalization do, in evaluation."""
    _check_evaluation(conv, bn)
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight,
        fused.bias,
        bn.running_mean,
        bn.running_var,
        bn.eps,
        bn.weight,
        bn.bias,
        transpose,
    )
    return fused


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A copy of a linear layer that does what it and a batch normalization do, in evaluation."""
    _check_evaluation(linear, bn)
    if bn.num_features not in (linear.out_features, 1):
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, but got "
            f"{linear.out_features} and {bn.num_features}"
        )
    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused
