"""Rows of convolutions and recurrent networks, forward and trained."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from rows import Row


def _forward(kind: str, shape: tuple[int, ...], *sizes: int, **options: Any) -> Callable:
    def make(torch: Any) -> Callable[[], Any]:
        torch.manual_seed(0)
        layer = getattr(torch.nn, kind)(*sizes, **options).requires_grad_(False)
        x = torch.randn(*shape)
        return lambda: layer(x)

    return make


def _training(kind: str, shape: tuple[int, ...], *sizes: int, **options: Any) -> Callable:
    def make(torch: Any) -> Callable[[], Any]:
        torch.manual_seed(0)
        layer = getattr(torch.nn, kind)(*sizes, **options)
        x = torch.randn(*shape).requires_grad_()
        grad = torch.randn_like(layer(x))

        def step() -> None:
            layer.zero_grad()
            x.grad = None
            layer(x).backward(grad)

        return step

    return make


def _rows(name: str, kind: str, shape: tuple[int, ...], *sizes: int, **options: Any) -> list[Row]:
    stride, groups = options.get("stride", 1), options.get("groups", 1)
    positions = math.prod(size // stride for size in shape[2:])
    taps = sizes[2] ** (len(shape) - 2)
    work = 2.0 * shape[0] * positions * taps * sizes[0] * sizes[1] / groups
    return [
        Row(f"{name}, forward", _forward(kind, shape, *sizes, **options), 1.0, 0.0, work),
        Row(f"{name}, training", _training(kind, shape, *sizes, **options), 1.0, 0.0, 3 * work),
    ]


def _channels_last(torch: Any) -> Callable[[], Any]:
    torch.manual_seed(0)
    layer = torch.nn.Conv2d(64, 64, 3, padding=1).requires_grad_(False)
    x = torch.randn(8, 64, 56, 56).to(memory_format=torch.channels_last)
    layer = layer.to(memory_format=torch.channels_last)
    return lambda: layer(x)


def _recurrent(kind: str, train: bool) -> Callable[[Any], Callable[[], Any]]:
    def make(torch: Any) -> Callable[[], Any]:
        torch.manual_seed(0)
        layer = getattr(torch.nn, kind)(128, 256)
        x = torch.randn(64, 32, 128)
        if not train:
            layer.requires_grad_(False)
            return lambda: layer(x)

        def step() -> None:
            layer.zero_grad()
            layer(x)[0].sum().backward()

        return step

    return make


CONVOLUTION_ROWS = [
    *_rows("conv 3x3, 64 to 64, 8 x 56 x 56", "Conv2d", (8, 64, 56, 56), 64, 64, 3, padding=1),
    *_rows("conv 1x1, 256 to 64, 8 x 56 x 56", "Conv2d", (8, 256, 56, 56), 256, 64, 1),
    *_rows(
        "conv 7x7 step 2, 3 to 64, 8 x 224 x 224",
        "Conv2d",
        (8, 3, 224, 224),
        3,
        64,
        7,
        stride=2,
        padding=3,
    ),
    *_rows("conv 3x3, 512 to 512, 8 x 7 x 7", "Conv2d", (8, 512, 7, 7), 512, 512, 3, padding=1),
    *_rows(
        "conv depth-wise 3x3, 144, 8 x 56 x 56",
        "Conv2d",
        (8, 144, 56, 56),
        144,
        144,
        3,
        padding=1,
        groups=144,
    ),
    *_rows("conv 1-D 5, 64 to 128, 16 x 1024", "Conv1d", (16, 64, 1024), 64, 128, 5, padding=2),
    Row("conv 3x3, 64 to 64, channels last, forward", _channels_last, 1.0),
    *(
        Row(f"{kind} 128 to 256, 64 steps of 32, {what}", _recurrent(kind, train), 1.0)
        for kind in ("RNN", "GRU", "LSTM")
        for what, train in (("forward", False), ("training", True))
    ),
]
