"""Windows of `M` points.

A symmetric window (`sym`) is the same from both ends, for filters; otherwise it is the first `M`
points of a symmetric one of `M + 1` points, for spectra. All are float32 or float64.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import pi, sqrt

import rushlight as torch
from rushlight import Tensor


def _check(name: str, M: int, dtype: torch.dtype, layout: torch.layout) -> None:
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not torch.strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if dtype not in (torch.float32, torch.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")


class _Place:
    """How a window is to be made: the keywords that all windows share."""

    def __init__(
        self,
        name: str,
        M: int,
        dtype: torch.dtype | None,
        layout: torch.layout,
        device: torch.device | str | None,
        requires_grad: bool,
    ) -> None:
        self.options = {
            "dtype": torch.get_default_dtype() if dtype is None else dtype,
            "layout": layout,
            "device": device,
            "requires_grad": requires_grad,
        }
        _check(name, M, self.options["dtype"], layout)

    def empty(self) -> Tensor:
        return torch.empty((0,), **self.options)

    def points(self, start: float, end: float, steps: int) -> Tensor:
        return torch.linspace(start=start, end=end, steps=steps, **self.options)


def exponential(
    M: int,
    *,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    dtype: torch.dtype | None = None,
    layout: torch.layout = torch.strided,
    device: torch.device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """exp(-|n - center| / tau)."""
    place = _Place("exponential", M, dtype, layout, device, requires_grad)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    if M == 0:
        return place.empty()
    if center is None:
        center = (M if not sym and M > 1 else M - 1) / 2.0
    scale = 1 / tau
    points = place.points(-center * scale, (-center + (M - 1)) * scale, M)
    return torch.exp(-torch.abs(points))


def cosine(
    M: int,
    *,
    sym: bool = True,
    dtype: torch.dtype | None = None,
    layout: torch.layout = torch.strided,
    device: torch.device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """sin(pi (n + 1/2) / M), also known as the sine window."""
    place = _Place("cosine", M, dtype, layout, device, requires_grad)
    if M == 0:
        return place.empty()
    step = pi / (M + 1 if not sym and M > 1 else M)
    return torch.sin(place.points(0.5 * step, (0.5 + (M - 1)) * step, M))


def gaussian(
    M: int,
    *,
    std: float = 1.0,
    sym: bool = True,
    dtype: torch.dtype | None = None,
    layout: torch.layout = torch.strided,
    device: torch.device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """exp(-x^2 / (2 std^2)) around the middle."""
    place = _Place("gaussian", M, dtype, layout, device, requires_grad)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    if M == 0:
        return place.empty()
    start = -(M if not sym and M > 1 else M - 1) / 2.0
    scale = 1 / (std * sqrt(2))
    points = place.points(start * scale, (start + (M - 1)) * scale, M)
    return torch.exp(-(points**2))


def kaiser(
    M: int,
    *,
    beta: float = 12.0,
    sym: bool = True,
    dtype: torch.dtype | None = None,
    layout: torch.layout = torch.strided,
    device: torch.device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """I0(beta sqrt(1 - x^2)) / I0(beta) for x from -1 to 1."""
    place = _Place("kaiser", M, dtype, layout, device, requires_grad)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    if M == 0:
        return place.empty()
    if M == 1:
        return torch.ones((1,), **place.options)
    step = 2.0 * beta / (M if not sym else M - 1)
    # In float32 the rounded end may lie beyond beta, and the root below would be NaN.
    end = min(beta, -beta + (M - 1) * step)
    points = place.points(-beta, end, M)
    peak = torch.tensor(beta, dtype=points.dtype, device=device)
    inside = torch.clamp_min(peak * peak - points**2, 0)
    return torch.special.i0(torch.sqrt(inside)) / torch.special.i0(peak)


def hamming(
    M: int,
    *,
    sym: bool = True,
    dtype: torch.dtype | None = None,
    layout: torch.layout = torch.strided,
    device: torch.device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """The general Hamming window with alpha = 0.54."""
    return general_cosine(
        M,
        a=(0.54, 1.0 - 0.54),
        sym=sym,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )


def hann(
    M: int,
    *,
    sym: bool = True,
    dtype: torch.dtype | None = None,
    layout: torch.layout = torch.strided,
    device: torch.device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """(1 - cos(2 pi n / (M - 1))) / 2."""
    return general_cosine(
        M,
        a=(0.5, 0.5),
        sym=sym,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )


def blackman(
    M: int,
    *,
    sym: bool = True,
    dtype: torch.dtype | None = None,
    layout: torch.layout = torch.strided,
    device: torch.device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """0.42 - cos(z) / 2 + 0.08 cos(2 z) with z = 2 pi n / (M - 1)."""
    _Place("blackman", M, dtype, layout, device, requires_grad)
    return general_cosine(
        M,
        a=(0.42, 0.5, 0.08),
        sym=sym,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )


def bartlett(
    M: int,
    *,
    sym: bool = True,
    dtype: torch.dtype | None = None,
    layout: torch.layout = torch.strided,
    device: torch.device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A triangle from 0 to 1 and back."""
    place = _Place("bartlett", M, dtype, layout, device, requires_grad)
    if M == 0:
        return place.empty()
    step = 2.0 / (M if not sym and M > 1 else max(M - 1, 1))
    start = -1 if M > 1 else 0
    return 1 - torch.abs(place.points(start, start + (M - 1) * step, M))


def general_cosine(
    M,
    *,
    a: Iterable,
    sym: bool = True,
    dtype: torch.dtype | None = None,
    layout: torch.layout = torch.strided,
    device: torch.device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """The sum of (-1)^i a[i] cos(2 pi i n / (M - 1)) over the coefficients `a`."""
    place = _Place("general_cosine", M, dtype, layout, device, requires_grad)
    if M == 0:
        return place.empty()
    if M == 1:
        return torch.ones((1,), **place.options)
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    if not a:
        raise ValueError("Coefficients cannot be empty")
    step = 2 * pi / (M if not sym else M - 1)
    points = place.points(0, (M - 1) * step, M)
    factors = torch.tensor(
        [(-1) ** i * w for i, w in enumerate(a)], device=device, dtype=points.dtype
    )
    rates = torch.arange(len(factors), dtype=factors.dtype, device=factors.device)
    return (factors.unsqueeze(-1) * torch.cos(rates.unsqueeze(-1) * points)).sum(0)


def general_hamming(
    M,
    *,
    alpha: float = 0.54,
    sym: bool = True,
    dtype: torch.dtype | None = None,
    layout: torch.layout = torch.strided,
    device: torch.device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """alpha - (1 - alpha) cos(2 pi n / (M - 1))."""
    return general_cosine(
        M,
        a=(alpha, 1.0 - alpha),
        sym=sym,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )


def nuttall(
    M: int,
    *,
    sym: bool = True,
    dtype: torch.dtype | None = None,
    layout: torch.layout = torch.strided,
    device: torch.device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """The Blackman-Harris window of four terms with the smallest side lobes, after Nuttall."""
    return general_cosine(
        M,
        a=(0.3635819, 0.4891775, 0.1365995, 0.0106411),
        sym=sym,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )
