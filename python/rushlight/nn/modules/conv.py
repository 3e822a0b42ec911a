"""Convolution and its transpose."""

from __future__ import annotations

from rushlight import Tensor

from .. import functional as F
from ._conv_base import _ConvNd, _ConvTransposeNd, _LazyConvXdMixin
from .utils import _pair, _single, _triple

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
]


class _Conv(_ConvNd):
    _spread = None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device=None,
        dtype=None,
    ) -> None:
        spread = type(self)._spread
        super().__init__(
            in_channels,
            out_channels,
            spread(kernel_size),
            spread(stride),
            padding if isinstance(padding, str) else spread(padding),
            spread(dilation),
            False,
            spread(0),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        function = getattr(F, f"conv{len(self.kernel_size)}d")
        padding = self.padding
        if self.padding_mode != "zeros":
            borders = self._reversed_padding_repeated_twice
            input = F.pad(input, borders, mode=self.padding_mode)
            padding = type(self)._spread(0)
        return function(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Conv):
    """Convolution of (N, C, L) or (C, L)."""

    _spread = staticmethod(_single)


class Conv2d(_Conv):
    """Convolution of (N, C, H, W) or (C, H, W)."""

    _spread = staticmethod(_pair)


class Conv3d(_Conv):
    """Convolution of (N, C, D, H, W) or (C, D, H, W)."""

    _spread = staticmethod(_triple)


class _ConvTranspose(_ConvTransposeNd):
    _spread = None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups: int = 1,
        bias: bool = True,
        dilation=1,
        padding_mode: str = "zeros",
        device=None,
        dtype=None,
    ) -> None:
        spread = type(self)._spread
        super().__init__(
            in_channels,
            out_channels,
            spread(kernel_size),
            spread(stride),
            spread(padding),
            spread(dilation),
            True,
            spread(output_padding),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        dims = len(self.kernel_size)
        if self.padding_mode != "zeros":
            raise ValueError(f"Only `zeros` padding mode is supported for {type(self).__name__}")
        output_padding = self._output_padding(
            input, output_size, self.stride, self.padding, self.kernel_size, dims, self.dilation
        )
        return getattr(F, f"conv_transpose{dims}d")(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            output_padding,
            self.groups,
            self.dilation,
        )


class ConvTranspose1d(_ConvTranspose):
    """The transpose of Conv1d, also called fractionally strided convolution."""

    _spread = staticmethod(_single)


class ConvTranspose2d(_ConvTranspose):
    """The transpose of Conv2d, also called fractionally strided convolution."""

    _spread = staticmethod(_pair)


class ConvTranspose3d(_ConvTranspose):
    """The transpose of Conv3d, also called fractionally strided convolution."""

    _spread = staticmethod(_triple)


class _LazyConv(_LazyConvXdMixin):
    def __init__(
        self,
        out_channels: int,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device=None,
        dtype=None,
    ) -> None:
        # No bias yet, so that none is made before the shape is known.
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode)
        self._make_lazy(out_channels, bias, device, dtype)


class LazyConv1d(_LazyConv, Conv1d):
    """Conv1d that learns `in_channels` from its first input."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """Conv2d that learns `in_channels` from its first input."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """Conv3d that learns `in_channels` from its first input."""

    cls_to_become = Conv3d


class _LazyConvTranspose(_LazyConvXdMixin):
    def __init__(
        self,
        out_channels: int,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups: int = 1,
        bias: bool = True,
        dilation=1,
        padding_mode: str = "zeros",
        device=None,
        dtype=None,
    ) -> None:
        super().__init__(
            0,
            0,
            kernel_size,
            stride,
            padding,
            output_padding,
            groups,
            False,
            dilation,
            padding_mode,
        )
        self._make_lazy(out_channels, bias, device, dtype)


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """ConvTranspose1d that learns `in_channels` from its first input."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """ConvTranspose2d that learns `in_channels` from its first input."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """ConvTranspose3d that learns `in_channels` from its first input."""

    cls_to_become = ConvTranspose3d
