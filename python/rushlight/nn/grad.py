"""The gradients of convolutions, as functions."""

from __future__ import annotations

from typing import Any

import rushlight as torch
from rushlight import Tensor

_SIDE = {"input": 0, "weight": 1}


def _list(value: Any, count: int) -> list[int]:
    return [value] * count if isinstance(value, int) else list(value)


def _gradient(
    of: str, count: int, given: tuple, grad_output: Tensor, options: tuple, groups: int
) -> Tensor:
    stride, padding, dilation = (_list(option, count) for option in options)
    mask = [of == "input", of == "weight", False]
    found = torch.ops.aten.convolution_backward(
        grad_output, *given, None, stride, padding, dilation, False, [0] * count, groups, mask
    )
    return found[_SIDE[of]]


def _of_input(count: int, input_size: Any, weight: Tensor, grad_output: Tensor, *rest: Any):
    like = grad_output.new_empty(1).expand(tuple(input_size))
    return _gradient("input", count, (like, weight), grad_output, rest[:3], rest[3])


def _of_weight(count: int, given: Tensor, weight_size: Any, grad_output: Tensor, *rest: Any):
    like = grad_output.new_empty(1).expand(tuple(weight_size))
    return _gradient("weight", count, (given, like), grad_output, rest[:3], rest[3])


def conv1d_input(
    input_size: Any,
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv1d with respect to its input."""
    return _of_input(1, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv1d_weight(
    input: Tensor,
    weight_size: Any,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv1d with respect to its weight."""
    return _of_weight(1, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv2d_input(
    input_size: Any,
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv2d with respect to its input."""
    return _of_input(2, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv2d_weight(
    input: Tensor,
    weight_size: Any,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv2d with respect to its weight."""
    return _of_weight(2, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv3d_input(
    input_size: Any,
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv3d with respect to its input."""
    return _of_input(3, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv3d_weight(
    input: Tensor,
    weight_size: Any,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of conv3d with respect to its weight."""
    return _of_weight(3, input, weight_size, grad_output, stride, padding, dilation, groups)
