"""Rows of attention with functions of scores, and of the loss over a large vocabulary."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from rows import Row


def _flex(torch: Any) -> Any:
    return importlib.import_module(f"{torch.__name__}.nn.attention.flex_attention")


def _is_ours(torch: Any) -> bool:
    return torch.__name__ == "rushlight"


def _operands(torch: Any, length: int) -> list[Any]:
    torch.manual_seed(0)
    return [torch.randn(1, 8, length, 64) for _ in range(3)]


def _blocks(torch: Any, mask: Callable, length: int) -> Any:
    """PyTorch makes the dense mask of one head: kept apart from what is timed."""
    return _flex(torch).create_block_mask(mask, None, None, length, length, device="cpu")


def _window(b: Any, h: Any, q: Any, k: Any) -> Any:
    return (q >= k) & (q - k <= 256)


def _causal(b: Any, h: Any, q: Any, k: Any) -> Any:
    return q >= k


def _attention(length: int, mask: Callable) -> Callable[[Any], Callable]:
    """PyTorch's is compiled: without that it holds all scores."""

    def make(torch: Any) -> Callable[[], Any]:
        q, k, v = _operands(torch, length)
        blocks = _blocks(torch, mask, length)
        function = _flex(torch).flex_attention
        if not _is_ours(torch):
            function = torch.compile(function)
        return lambda: function(q, k, v, block_mask=blocks)

    return make


def _causal_attention(length: int) -> Callable[[Any], Callable]:
    """Ours through flex attention, PyTorch's by its scaled_dot_product_attention."""

    def make(torch: Any) -> Callable[[], Any]:
        q, k, v = _operands(torch, length)
        if _is_ours(torch):
            blocks = _blocks(torch, _causal, length)
            function = _flex(torch).flex_attention
            return lambda: function(q, k, v, block_mask=blocks)
        function = torch.nn.functional.scaled_dot_product_attention
        return lambda: function(q, k, v, is_causal=True)

    return make


def _full_attention(length: int) -> Callable[[Any], Callable]:
    def make(torch: Any) -> Callable[[], Any]:
        q, k, v = _operands(torch, length)
        return lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v)

    return make


def _block_mask(length: int, kind: str) -> Callable[[Any], Callable]:
    def make(torch: Any) -> Callable[[], Any]:
        documents = torch.arange(length) // 1000

        def document(b: Any, h: Any, q: Any, k: Any) -> Any:
            return (documents[q] == documents[k]) & (q >= k)

        mask = {"window": _window, "causal": _causal, "document": document}[kind]
        return lambda: _blocks(torch, mask, length)

    return make


def _linear_cross_entropy(rows: int, features: int, classes: int) -> Callable[[Any], Callable]:
    """PyTorch's is the plain composition, which holds the scores: its faster one."""

    def make(torch: Any) -> Callable[[], Any]:
        torch.manual_seed(0)
        x = torch.randn(rows, features, requires_grad=True)
        w = torch.randn(classes, features).mul_(0.05).requires_grad_()
        target = torch.randint(0, classes, (rows,))

        def step() -> None:
            x.grad = w.grad = None
            torch.nn.functional.linear_cross_entropy(x, w, target).backward()

        return step

    return make


ATTENTION_ROWS = [
    Row("flex attention, window 256, 1 x 8 x 32768 x 64", _attention(32768, _window), 0.7,
        operations=4 * 8 * 32768 * 320 * 64),
    Row("flex attention, window 256, 1 x 8 x 8192 x 64", _attention(8192, _window), 0.7,
        operations=4 * 8 * 8192 * 320 * 64),
    Row("flex attention, causal 4096, against SDPA", _causal_attention(4096), 1.0,
        operations=2 * 8 * 4096**2 * 64),
    Row("attention, 1 x 8 x 4096 x 64", _full_attention(4096), 0.83,
        operations=4 * 8 * 4096**2 * 64),
    *(
        Row(f"create_block_mask, 2048, {kind}", _block_mask(2048, kind), 0.2)
        for kind in ("window", "causal", "document")
    ),
    Row("linear cross entropy, 2048 x 512 x 65536, gradients",
        _linear_cross_entropy(2048, 512, 65536), 0.7, operations=6 * 2048 * 512 * 65536),
]  # fmt: skip
