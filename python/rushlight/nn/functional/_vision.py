"""Padding, patches, resizing, sampling at coordinates, and distances."""

from __future__ import annotations

import rushlight as torch
from rushlight import Tensor

# What grid_sample's native operator takes for the names of modes.
GRID_SAMPLE_INTERPOLATION_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}


def _pair(value) -> tuple:
    return tuple(value) if hasattr(value, "__iter__") else (value, value)


def pad(
    input: Tensor, pad: list[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    """Adds borders: `pad` holds (before, after) pairs from the last dimension on.

    `mode` is "constant", "reflect", "replicate" or "circular"; negative borders cut.
    """
    return torch._C._nn.pad(input, pad, mode, value)


def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The p-norm of x1 - x2 + eps along the last dimension."""
    return torch.pairwise_distance(x1, x2, p, eps, keepdim)


def assert_int_or_pair(arg: list[int], arg_name: str, message: str) -> None:
    """Raises unless `arg` is a number or a pair."""
    assert isinstance(arg, int) or len(arg) == 2, message.format(arg_name)


def unfold(input: Tensor, kernel_size, dilation=1, padding=0, stride=1) -> Tensor:
    """The patches of (N, C, H, W) under a sliding window, as columns (N, C kh kw, L)."""
    return torch._C._nn.im2col(
        input, _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride)
    )


def fold(input: Tensor, output_size, kernel_size, dilation=1, padding=0, stride=1) -> Tensor:
    """Adds the columns of `unfold` back to where their patches were."""
    return torch._C._nn.col2im(
        input,
        _pair(output_size),
        _pair(kernel_size),
        _pair(dilation),
        _pair(padding),
        _pair(stride),
    )


# Resizing: mode -> by number of spatial dimensions, the native operator.
_NEAREST = {
    "nearest": ("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d"),
    "nearest-exact": (
        "_upsample_nearest_exact1d",
        "_upsample_nearest_exact2d",
        "_upsample_nearest_exact3d",
    ),
}
_SMOOTH = {
    ("linear", 1): "upsample_linear1d",
    ("bilinear", 2): "upsample_bilinear2d",
    ("trilinear", 3): "upsample_trilinear3d",
    ("bicubic", 2): "upsample_bicubic2d",
}
_SPATIAL = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}


def _is_integer(value) -> bool:
    return isinstance(value, int) or (isinstance(value, float) and value.is_integer())


def _resolve_sizes(input: Tensor, size, scale_factor, recompute: bool | None, mode: str) -> tuple:
    """The output size and scale factors, one of which may be None."""
    dims = input.dim() - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if size is not None:
        if isinstance(size, list | tuple):
            if len(size) != dims:
                raise ValueError(
                    "Input and output must have the same number of spatial dimensions, but got "
                    "input "
                    f"with spatial dimensions of {list(input.shape[2:])} and output size of "
                    f"{size}. "
                    "Please provide input tensor in (N, C, d1, d2, ...,dK) format and output size "
                    "in "
                    "(o1, o2, ...,oK) format."
                )
            output, scales = list(size), None
        else:
            output, scales = [size] * dims, None
    elif isinstance(scale_factor, list | tuple):
        if len(scale_factor) != dims:
            raise ValueError(
                "Input and scale_factor must have the same number of spatial dimensions, but got "
                "input "
                f"with spatial dimensions of {list(input.shape[2:])} and scale_factor of shape "
                f"{scale_factor}. Please provide input tensor in (N, C, d1, d2, ...,dK) format and "
                "scale_factor in (s1, s2, ...,sK) format."
            )
        output, scales = None, list(scale_factor)
    else:
        output, scales = None, [scale_factor] * dims
    if recompute and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if (recompute or mode == "area") and output is None:
        output = [int(input.size(i + 2) * scales[i]) for i in range(dims)]
        scales = None
    return output, scales


def interpolate(
    input: Tensor,
    size: int | None = None,
    scale_factor: list[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resizes (N, C, ...) to `size` or by `scale_factor`.

    `mode` is "nearest", "nearest-exact", "area", "linear", "bilinear", "bicubic" or "trilinear".
    """
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError(
                "align_corners option can only be set with the interpolating modes: linear | "
                "bilinear | "
                "bicubic | trilinear"
            )
    elif align_corners is None:
        align_corners = False
    dims = input.dim() - 2
    output, scales = _resolve_sizes(input, size, scale_factor, recompute_scale_factor, mode)
    if antialias and not (mode in ("bilinear", "bicubic") and input.ndim == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D "
            "tensor as "
            "input"
        )
    nn = torch._C._nn
    if mode in _NEAREST and dims in (1, 2, 3):
        return getattr(nn, _NEAREST[mode][dims - 1])(input, output, scales)
    if mode == "area" and dims in (1, 2, 3):
        if dims == 1:
            return torch.adaptive_avg_pool1d(input, output)
        return getattr(nn, f"adaptive_avg_pool{dims}d")(input, output)
    if (mode, dims) in _SMOOTH:
        name = _SMOOTH[mode, dims]
        if antialias:
            name = f"_{name}_aa"
        return getattr(nn, name)(input, output, align_corners, scales)
    if mode in _SPATIAL and dims in (1, 2, 3):
        raise NotImplementedError(
            f"Got {dims + 2}D input, but {mode} mode needs {_SPATIAL[mode] + 2}D input"
        )
    raise NotImplementedError(
        "Input Error: Only 3D, 4D and 5D input Tensors supported"
        f" (got {input.dim()}D) for the modes: nearest | linear | bilinear | bicubic | trilinear "
        "| area | "
        f"nearest-exact (got {mode})"
    )


def _deprecated(old: str, new: str) -> None:
    import warnings

    warnings.warn(
        f"`nn.functional.{old}` is deprecated. Use `nn.functional.{new}` instead.", stacklevel=3
    )


def upsample(
    input: Tensor, size=None, scale_factor=None, mode="nearest", align_corners=None
) -> Tensor:
    """The older name of `interpolate`."""
    _deprecated("upsample", "interpolate")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size=None, scale_factor=None) -> Tensor:
    """The older name of `interpolate` with mode "nearest"."""
    _deprecated("upsample_nearest", "interpolate")
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size=None, scale_factor=None) -> Tensor:
    """The older name of `interpolate` with mode "bilinear" and aligned corners."""
    _deprecated("upsample_bilinear", "interpolate")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


_SAMPLE_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
_SAMPLE_PADDING = {"zeros": 0, "border": 1, "reflection": 2}


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Samples (N, C, H, W) at the coordinates `grid` (N, h, w, 2), which lie in [-1, 1]."""
    if mode not in _SAMPLE_MODES:
        raise ValueError(
            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', "
            f"but got: '{mode}'"
        )
    if padding_mode not in _SAMPLE_PADDING:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
            f"'reflection', but got: '{padding_mode}'"
        )
    if align_corners is None:
        align_corners = False
        _warn_corners("grid_sample")
    return torch.grid_sampler(
        input, grid, _SAMPLE_MODES[mode], _SAMPLE_PADDING[padding_mode], align_corners
    )


def _warn_corners(name: str) -> None:
    import warnings

    warnings.warn(
        f"Default {name} and affine_grid behavior has changed to align_corners=False since 1.3.0. "
        "Please specify align_corners=True if the old behavior is desired. See the documentation "
        "of "
        f"{name} for details.",
        stacklevel=3,
    )


def affine_grid(theta: Tensor, size: list[int], align_corners: bool | None = None) -> Tensor:
    """The sampling grid of affine maps `theta` (N, 2, 3) for an output (N, C, H, W), or in 3-D."""
    if align_corners is None:
        align_corners = False
        _warn_corners("affine_grid")
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    dims = len(size) - 2
    if dims not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, "
            "respectively. "
            f"Got size {size}."
        )
    if theta.dim() != 3 or theta.shape[-2] != dims or theta.shape[-1] != dims + 1:
        raise ValueError(
            f"Expected a batch of {dims}D affine matrices of shape Nx{dims}x{dims + 1} for size "
            f"{size}. "
            f"Got {theta.shape}."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    return torch.affine_grid_generator(theta, size, align_corners)
