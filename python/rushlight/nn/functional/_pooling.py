"""Pooling and its inverse. Windows, strides and paddings are a number or one number a dimension."""

from __future__ import annotations

import rushlight as torch
from rushlight import Tensor


def _tuple(value, count: int) -> tuple:
    return tuple(value) if hasattr(value, "__iter__") else (value,) * count


def _stride(stride) -> list | int | tuple:
    return [] if stride is None else stride


def _output_size(output_size, sizes) -> list[int] | int:
    """`output_size` with each None replaced by the size of the input."""
    if isinstance(output_size, int):
        return output_size
    if len(sizes) <= len(output_size):
        raise ValueError(
            f"Input dimension should be at least {len(output_size) + 1}, got {len(sizes)}"
        )
    kept = sizes[-len(output_size) :]
    return [own if own is not None else given for own, given in zip(output_size, kept)]


# Maximum pooling.


def max_pool1d_with_indices(
    input: Tensor,
    kernel_size,
    stride=None,
    padding=0,
    dilation=1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """Maxima over windows of (N, C, L), and where they are."""
    return torch.max_pool1d_with_indices(
        input, kernel_size, _stride(stride), padding, dilation, ceil_mode
    )


def max_pool1d(
    input: Tensor,
    kernel_size,
    stride=None,
    padding=0,
    dilation=1,
    ceil_mode: bool = False,
    return_indices: bool = False,
):
    """Maxima over windows of (N, C, L); with `return_indices`, also where they are."""
    arguments = (input, kernel_size, _stride(stride), padding, dilation, ceil_mode)
    if return_indices:
        return torch.max_pool1d_with_indices(*arguments)
    return torch.max_pool1d(*arguments)


def max_pool2d_with_indices(
    input: Tensor,
    kernel_size,
    stride=None,
    padding=0,
    dilation=1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """Maxima over windows of (N, C, H, W), and where they are."""
    return torch._C._nn.max_pool2d_with_indices(
        input, kernel_size, _stride(stride), padding, dilation, ceil_mode
    )


def max_pool2d(
    input: Tensor,
    kernel_size,
    stride=None,
    padding=0,
    dilation=1,
    ceil_mode: bool = False,
    return_indices: bool = False,
):
    """Maxima over windows of (N, C, H, W); with `return_indices`, also where they are."""
    arguments = (input, kernel_size, _stride(stride), padding, dilation, ceil_mode)
    if return_indices:
        return torch._C._nn.max_pool2d_with_indices(*arguments)
    return torch.max_pool2d(*arguments)


def max_pool3d_with_indices(
    input: Tensor,
    kernel_size,
    stride=None,
    padding=0,
    dilation=1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """Maxima over windows of (N, C, D, H, W), and where they are."""
    return torch._C._nn.max_pool3d_with_indices(
        input, kernel_size, _stride(stride), padding, dilation, ceil_mode
    )


def max_pool3d(
    input: Tensor,
    kernel_size,
    stride=None,
    padding=0,
    dilation=1,
    ceil_mode: bool = False,
    return_indices: bool = False,
):
    """Maxima over windows of (N, C, D, H, W); with `return_indices`, also where they are."""
    arguments = (input, kernel_size, _stride(stride), padding, dilation, ceil_mode)
    if return_indices:
        return torch._C._nn.max_pool3d_with_indices(*arguments)
    return torch.max_pool3d(*arguments)


def _fractional(input: Tensor, kernel_size, output_size, output_ratio, samples, dims: int):
    name = f"fractional_max_pool{dims}d"
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    if output_size is None:
        ratios = output_ratio if isinstance(output_ratio, tuple | list) else (output_ratio,) * dims
        output_size = [int(extent * ratio) for extent, ratio in zip(input.shape[-dims:], ratios)]
    if samples is None:
        batch = 1 if input.dim() == dims + 1 else input.size(0)
        channels = input.size(-dims - 1)
        samples = torch.rand(batch, channels, dims, dtype=input.dtype, device=input.device)
    native = getattr(torch._C._nn, name)
    return native(input, kernel_size, output_size, samples)


def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size,
    output_size=None,
    output_ratio=None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Maxima over windows at random places (Graham, 2014), and where they are."""
    return _fractional(input, kernel_size, output_size, output_ratio, _random_samples, 2)


def fractional_max_pool2d(
    input: Tensor,
    kernel_size,
    output_size=None,
    output_ratio=None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
):
    """Maxima over windows at random places (Graham, 2014)."""
    both = _fractional(input, kernel_size, output_size, output_ratio, _random_samples, 2)
    return both if return_indices else both[0]


def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size,
    output_size=None,
    output_ratio=None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Maxima over windows at random places (Graham, 2014), and where they are."""
    return _fractional(input, kernel_size, output_size, output_ratio, _random_samples, 3)


def fractional_max_pool3d(
    input: Tensor,
    kernel_size,
    output_size=None,
    output_ratio=None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
):
    """Maxima over windows at random places (Graham, 2014)."""
    both = _fractional(input, kernel_size, output_size, output_ratio, _random_samples, 3)
    return both if return_indices else both[0]


# The inverse of maximum pooling.


def _unpool_output_size(input: Tensor, kernel_size, stride, padding, output_size) -> list[int]:
    """The size before pooling; `output_size` picks one of the possible sizes."""
    sizes = input.size()
    count = len(kernel_size)
    default = [
        (sizes[-count + d] - 1) * stride[d] + kernel_size[d] - 2 * padding[d] for d in range(count)
    ]
    if output_size is None:
        return default
    if len(output_size) == count + 2:
        output_size = output_size[2:]
    if len(output_size) != count:
        raise ValueError(
            f"output_size should be a sequence containing {count} or {count + 2} elements, "
            f"but it has a length of '{len(output_size)}'"
        )
    for d in range(count):
        low, high = default[d] - stride[d], default[d] + stride[d]
        if not low < output_size[d] < high:
            raise ValueError(
                f'invalid output_size "{output_size}" (dim {d} must be between {low} and {high})'
            )
    return list(output_size)


def _unpool_arguments(input: Tensor, kernel_size, stride, padding, output_size, dims: int) -> tuple:
    kernel = _tuple(kernel_size, dims)
    step = kernel if stride is None else _tuple(stride, dims)
    border = _tuple(padding, dims)
    return _unpool_output_size(input, kernel, step, border, output_size), step, border


def max_unpool1d(
    input: Tensor, indices: Tensor, kernel_size, stride=None, padding=0, output_size=None
) -> Tensor:
    """Puts the maxima of `max_pool1d` back to where they came from, among zeros."""
    size, _, _ = _unpool_arguments(input, kernel_size, stride, padding, output_size, 1)
    flat = torch._C._nn.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), [*size, 1])
    return flat.squeeze(-1)


def max_unpool2d(
    input: Tensor, indices: Tensor, kernel_size, stride=None, padding=0, output_size=None
) -> Tensor:
    """Puts the maxima of `max_pool2d` back to where they came from, among zeros."""
    size, _, _ = _unpool_arguments(input, kernel_size, stride, padding, output_size, 2)
    return torch._C._nn.max_unpool2d(input, indices, size)


def max_unpool3d(
    input: Tensor, indices: Tensor, kernel_size, stride=None, padding=0, output_size=None
) -> Tensor:
    """Puts the maxima of `max_pool3d` back to where they came from, among zeros."""
    arguments = _unpool_arguments(input, kernel_size, stride, padding, output_size, 3)
    return torch._C._nn.max_unpool3d(input, indices, *arguments)


# Power-average pooling.


def _from_mean(mean: Tensor, norm_type: float, count: int) -> Tensor:
    """(count mean) ** (1 / p), with the sign of the mean."""
    return (torch.sign(mean) * torch.relu(torch.abs(mean))).mul(count).pow(1.0 / norm_type)


def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: int, stride=None, ceil_mode: bool = False
) -> Tensor:
    """The p-norm over windows of (N, C, L)."""
    powers = input.pow(norm_type)
    mean = torch.avg_pool1d(powers, kernel_size, _stride(stride), 0, ceil_mode)
    (count,) = _tuple(kernel_size, 1)
    return _from_mean(mean, norm_type, count)


def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size, stride=None, ceil_mode: bool = False
) -> Tensor:
    """The p-norm over windows of (N, C, H, W)."""
    height, width = _tuple(kernel_size, 2)
    powers = input.pow(norm_type)
    mean = torch._C._nn.avg_pool2d(powers, kernel_size, _stride(stride), 0, ceil_mode)
    return _from_mean(mean, norm_type, height * width)


def lp_pool3d(
    input: Tensor, norm_type: float, kernel_size, stride=None, ceil_mode: bool = False
) -> Tensor:
    """The p-norm over windows of (N, C, D, H, W)."""
    depth, height, width = _tuple(kernel_size, 3)
    powers = input.pow(norm_type)
    mean = torch._C._nn.avg_pool3d(powers, kernel_size, _stride(stride), 0, ceil_mode)
    return _from_mean(mean, norm_type, depth * height * width)


# Pooling to a given size; None in `output_size` keeps the input's.


def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Maxima of `output_size` stretches of (N, C, L), and where they are."""
    return torch.adaptive_max_pool1d(input, output_size)


def adaptive_max_pool1d(input: Tensor, output_size, return_indices: bool = False):
    """Maxima of `output_size` stretches of (N, C, L)."""
    both = torch.adaptive_max_pool1d(input, output_size)
    return both if return_indices else both[0]


def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Maxima of a grid of regions of (N, C, H, W), and where they are."""
    return torch._C._nn.adaptive_max_pool2d(input, _output_size(output_size, input.size()))


def adaptive_max_pool2d(input: Tensor, output_size, return_indices: bool = False):
    """Maxima of a grid of regions of (N, C, H, W)."""
    both = torch._C._nn.adaptive_max_pool2d(input, _output_size(output_size, input.size()))
    return both if return_indices else both[0]


def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Maxima of a grid of regions of (N, C, D, H, W), and where they are."""
    return torch._C._nn.adaptive_max_pool3d(input, _output_size(output_size, input.size()))


def adaptive_max_pool3d(input: Tensor, output_size, return_indices: bool = False):
    """Maxima of a grid of regions of (N, C, D, H, W)."""
    both = torch._C._nn.adaptive_max_pool3d(input, _output_size(output_size, input.size()))
    return both if return_indices else both[0]


def adaptive_avg_pool2d(input: Tensor, output_size) -> Tensor:
    """Means of a grid of regions of (N, C, H, W)."""
    return torch._C._nn.adaptive_avg_pool2d(input, _output_size(output_size, input.size()))


def adaptive_avg_pool3d(input: Tensor, output_size) -> Tensor:
    """Means of a grid of regions of (N, C, D, H, W)."""
    return torch._C._nn.adaptive_avg_pool3d(input, _output_size(output_size, input.size()))
