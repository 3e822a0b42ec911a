"""Rows of pooling, sliding windows, sampling at grids and bags of embeddings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rows import Row


def _planes(call: Callable[[Any, Any], Any], *shape: int, grad: bool = False) -> Callable:
    """`call` of random planes, with the gradient of its sum where `grad`."""

    def make(torch: Any) -> Callable[[], Any]:
        torch.manual_seed(0)
        x = torch.randn(*shape).requires_grad_(grad)
        if not grad:
            return lambda: call(torch, x)
        back = torch.ones_like(call(torch, x).detach())
        return lambda: torch.autograd.grad(call(torch, x), x, back)

    return make


def _grid(torch: Any) -> Callable[[], Any]:
    torch.manual_seed(0)
    x, grid = torch.randn(8, 32, 64, 64), torch.rand(8, 64, 64, 2) * 2 - 1
    return lambda: torch.nn.functional.grid_sample(x, grid, align_corners=False)


def _bag(torch: Any) -> Callable[[], Any]:
    torch.manual_seed(0)
    table, rows = torch.randn(100000, 64), torch.randint(100000, (4096, 20))
    return lambda: torch.nn.functional.embedding_bag(rows, table, mode="sum")


def _max_pool(torch: Any, x: Any) -> Any:
    return torch.nn.functional.max_pool2d(x, 3, 2, 1)


_IN = 4 * 32 * 64 * 112 * 112  # bytes
POOLING_ROWS = [
    Row("max_pool2d 3x3, stride 2, 32 x 64 x 112 x 112", _planes(_max_pool, 32, 64, 112, 112), 1.0,
        traffic=1.25 * _IN),
    Row("the same with its gradient, 8 images", _planes(_max_pool, 8, 64, 112, 112, grad=True), 1.0,
        traffic=0.625 * _IN),
    Row("avg_pool2d 2x2, 32 x 64 x 112 x 112",
        _planes(lambda t, x: t.nn.functional.avg_pool2d(x, 2), 32, 64, 112, 112), 1.0,
        traffic=1.25 * _IN),
    Row("adaptive_avg_pool2d to 1x1, 32 x 64 x 112 x 112",
        _planes(lambda t, x: t.nn.functional.adaptive_avg_pool2d(x, 1), 32, 64, 112, 112), 1.0,
        traffic=_IN),
    Row("adaptive_avg_pool2d to 7x7, 32 x 64 x 112 x 112",
        _planes(lambda t, x: t.nn.functional.adaptive_avg_pool2d(x, 7), 32, 64, 112, 112), 1.0,
        traffic=_IN),
    Row("unfold 3x3, 8 x 32 x 56 x 56",
        _planes(lambda t, x: t.nn.functional.unfold(x, 3, padding=1), 8, 32, 56, 56), 1.0,
        traffic=4 * 10 * 8 * 32 * 56 * 56),
    Row("grid_sample, 8 x 32 x 64 x 64", _grid, 1.0, traffic=4 * 2 * 8 * 32 * 64 * 64),
    Row("embedding_bag, 4096 bags of 20 rows of 64", _bag, 1.0, traffic=4 * 4096 * 21 * 64),
]  # fmt: skip
