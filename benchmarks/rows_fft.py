"""Rows of Fourier transforms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from rows import Row

BATCH = 64


def _numbers(torch: Any, shape: tuple[int, ...], dtype: str) -> Any:
    torch.manual_seed(0)
    parts = {"complex64": "float32", "complex128": "float64"}
    if dtype not in parts:
        return torch.randn(*shape, dtype=getattr(torch, dtype))
    return torch.view_as_complex(torch.randn(*shape, 2, dtype=getattr(torch, parts[dtype])))


def _lines(name: str, n: int, dtype: str = "complex64") -> Callable[[Any], Callable[[], Any]]:
    """`name` of BATCH lines of n elements."""

    def make(torch: Any) -> Callable[[], Any]:
        x = _numbers(torch, (BATCH, n), dtype)
        call = getattr(torch.fft, name)
        return lambda: call(x)

    return make


def _planes(name: str, size: int, dtype: str) -> Callable[[Any], Callable[[], Any]]:
    def make(torch: Any) -> Callable[[], Any]:
        x = _numbers(torch, (8, size, size), dtype)
        call = getattr(torch.fft, name)
        return lambda: call(x)

    return make


def _columns(torch: Any) -> Callable[[], Any]:
    x = _numbers(torch, (1024, BATCH), "complex64")
    return lambda: torch.fft.fft(x, dim=0)


def _spectrogram(torch: Any) -> Callable[[], Any]:
    torch.manual_seed(0)
    x, window = torch.randn(8, 160000), torch.hann_window(400)
    return lambda: torch.stft(x, 400, 160, window=window, return_complex=True)


def _gradient(torch: Any) -> Callable[[], Any]:
    torch.manual_seed(0)
    x = torch.randn(BATCH, 1024, requires_grad=True)
    back = torch.fft.rfft(torch.randn(BATCH, 1024))
    return lambda: torch.autograd.grad(torch.fft.rfft(x), x, back)


def _row(n: int) -> Row:
    return Row(
        f"fft, {BATCH} x {n}",
        _lines("fft", n),
        1.0,
        traffic=16 * BATCH * n,
        operations=5 * BATCH * n * math.log2(n),
    )


FFT_ROWS = [_row(n) for n in (64, 256, 1000, 1009, 1024, 4096, 65536)] + [
    Row(f"fft of complex128, {BATCH} x 1024", _lines("fft", 1024, "complex128"), 1.0,
        traffic=32 * BATCH * 1024),
    Row(f"rfft, {BATCH} x 1024", _lines("rfft", 1024, "float32"), 1.0, traffic=8 * BATCH * 1024),
    Row(f"irfft, {BATCH} x 513", _lines("irfft", 513), 1.0, traffic=8 * BATCH * 1024),
    Row(f"fft over the first dimension, 1024 x {BATCH}", _columns, 1.0, traffic=16 * BATCH * 1024),
    Row("fft2, 8 x 256 x 256", _planes("fft2", 256, "complex64"), 1.0, traffic=32 * 8 * 256**2),
    Row("rfft2, 8 x 256 x 256", _planes("rfft2", 256, "float32"), 1.0, traffic=20 * 8 * 256**2),
    Row("rfft with its gradient, 64 x 1024", _gradient, 1.0, traffic=24 * BATCH * 1024),
    Row("stft, 8 x 160000, 400 points every 160", _spectrogram, 1.0, traffic=8 * 8 * 160000 * 2.5),
]  # fmt: skip
