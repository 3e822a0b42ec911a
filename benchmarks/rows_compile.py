"""Rows of compiled functions, and programs whose first calls are timed in fresh processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rows import LARGE, Row

BLOCKS, WIDTH, HEADS, BATCH, LENGTH = 12, 256, 4, 4, 128


def transformer(torch: Any) -> Any:
    """Blocks as most people write them: (B, T, C) to (B, T, C)."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
            self.out = nn.Linear(WIDTH, WIDTH)
            self.mlp = nn.Sequential(
                nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
            )

        def forward(self, x: Any) -> Any:
            b, t, c = x.shape
            q, k, v = (
                part.view(b, t, HEADS, c // HEADS).transpose(1, 2)
                for part in self.qkv(self.first(x)).split(WIDTH, 2)
            )
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
            return x + self.mlp(self.second(x))

    torch.manual_seed(0)
    return nn.Sequential(*(Block() for _ in range(BLOCKS)))


def _forward(compiled: bool) -> Callable[[Any], Callable[[], Any]]:
    def make(torch: Any) -> Callable[[], Any]:
        model = transformer(torch)
        function = torch.compile(model) if compiled else model
        x = torch.randn(BATCH, LENGTH, WIDTH)

        def run() -> Any:
            with torch.no_grad():
                return function(x)

        return run

    return make


def _training(compiled: bool) -> Callable[[Any], Callable[[], Any]]:
    def make(torch: Any) -> Callable[[], Any]:
        model = transformer(torch)
        function = torch.compile(model) if compiled else model
        x = torch.randn(BATCH, LENGTH, WIDTH)

        def run() -> Any:
            model.zero_grad()
            function(x).square().mean().backward()

        return run

    return make


def _chain(torch: Any) -> Callable[[], Any]:
    def function(x: Any) -> Any:
        for _ in range(10):
            x = x * 1.01 + 0.5
        return x

    fast = torch.compile(function)
    x = torch.rand(LARGE)
    return lambda: fast(x)


def _copy(torch: Any) -> Callable[[], Any]:
    x = torch.rand(LARGE)
    return lambda: x.clone()


def _gpt(compiled: bool) -> Callable[[Any], Callable[[], Any]]:
    """Character GPT, 6 layers of 384, batch 16 x 256, one step with AdamW."""

    def make(torch: Any) -> Callable[[], Any]:
        nn, width, length, vocabulary = torch.nn, 384, 256, 65

        class Block(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
                self.qkv = nn.Linear(width, 3 * width, bias=False)
                self.out = nn.Linear(width, width, bias=False)
                self.up = nn.Linear(width, 4 * width, bias=False)
                self.down = nn.Linear(4 * width, width, bias=False)

            def forward(self, x: Any) -> Any:
                b, t, c = x.shape
                q, k, v = (
                    part.view(b, t, 6, c // 6).transpose(1, 2)
                    for part in self.qkv(self.first(x)).split(width, 2)
                )
                y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
                x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
                return x + self.down(nn.functional.gelu(self.up(self.second(x))))

        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Embedding(vocabulary, width),
            *(Block() for _ in range(6)),
            nn.LayerNorm(width),
            nn.Linear(width, vocabulary),
        )
        function = torch.compile(model) if compiled else model
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        x = torch.randint(0, vocabulary, (16, length))

        def run() -> None:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(function(x).flatten(0, 1), x.flatten())
            loss.backward()
            optimizer.step()

        return run

    return make


COMPILE_ROWS = [
    Row("compiled 12-block d256 transformer, forward", _forward(True), 0.75),
    Row("compiled 12-block d256 transformer, training", _training(True), 0.75),
    Row("the same against our eager", _training(True), 0.85, against=_training(False)),
    Row("20 pointwise operators on 16 M f32 against one copy", _chain, 1.15, against=_copy),
    Row("compiled GPT step, 6L 384d, batch 16 x 256", _gpt(True), 0.75),
]

# Run in a fresh process each: prints the seconds of the first call. {name} is the framework.
_PRELUDE = """
import sys, time
sys.path.insert(0, {folder!r})
import {name} as torch
import rows_compile
"""
_FORWARD = """
model = rows_compile.transformer(torch)
function = torch.compile(model)
x = torch.randn(rows_compile.BATCH, rows_compile.LENGTH, rows_compile.WIDTH)
begin = time.perf_counter()
with torch.no_grad():
    function(x)
print(time.perf_counter() - begin)
"""
_TRAINING = """
model = rows_compile.transformer(torch)
function = torch.compile(model)
x = torch.randn(rows_compile.BATCH, rows_compile.LENGTH, rows_compile.WIDTH)
begin = time.perf_counter()
function(x).square().mean().backward()
print(time.perf_counter() - begin)
"""
_REDUCTION = """
function = torch.compile(lambda x: (x.sin() + x.cos()).sum(-1))
x = torch.randn(1024, 1024)
begin = time.perf_counter()
function(x)
print(time.perf_counter() - begin)
"""
# Name, program, seconds wanted when nothing is cached, and with a full disk cache.
FIRST_CALLS = [
    ("12-block d256 transformer, forward", _PRELUDE + _FORWARD, 0.2, 0.03),
    ("12-block d256 transformer, forward and backward", _PRELUDE + _TRAINING, 0.3, None),
    ("(x.sin() + x.cos()).sum(-1), 1024 x 1024", _PRELUDE + _REDUCTION, 0.03, None),
]

NEW_SHAPES = (
    _PRELUDE
    + """
model = rows_compile.transformer(torch)
function = torch.compile(model)
def step(batch, length):
    model.zero_grad()
    function(torch.randn(batch, length, rows_compile.WIDTH)).square().mean().backward()
step(4, 128)
before = torch._C._kernel_cache_stats()["compiled"], torch._C._compile_statistics()["plans"]
step(7, 128); step(4, 96); step(3, 77)
after = torch._C._kernel_cache_stats()["compiled"], torch._C._compile_statistics()["plans"]
print(after[0] - before[0], after[1] - before[1])
"""
)
