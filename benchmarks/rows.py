"""What is timed: each row builds the same work for either framework.

A row is a function of the framework's module that returns what to call. `traffic` is the bytes
that the work must move and `operations` what it must compute: its floor on this machine.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    make: Callable[[Any], Callable[[], Any]]
    must: float  # highest allowed ratio of our time to PyTorch's
    traffic: float = 0.0
    operations: float = 0.0
    repeat: int = 1  # calls a measurement
    # What it is compared with instead of the same work in PyTorch: other work of ours.
    against: Callable[[Any], Callable[[], Any]] | None = None


LARGE = 1 << 24
SQUARE = 4096


def _one_element(torch: Any) -> Callable[[], Any]:
    a, b = torch.ones(1), torch.ones(1)
    return lambda: a + b


def _linear(torch: Any) -> Callable[[], Any]:
    layer, x = torch.nn.Linear(8, 8), torch.ones(8, 8)
    return lambda: layer(x).sum().backward()


def _unary(name: str, shape: tuple[int, ...] = (LARGE,)) -> Callable[[Any], Callable[[], Any]]:
    def make(torch: Any) -> Callable[[], Any]:
        torch.manual_seed(0)
        x = torch.rand(*shape) + 0.5
        function = getattr(torch, name, None) or getattr(torch.nn.functional, name)
        return lambda: function(x)

    return make


def _of_square(call: Callable[[Any, Any], Any]) -> Callable[[Any], Callable[[], Any]]:
    def make(torch: Any) -> Callable[[], Any]:
        torch.manual_seed(0)
        x = torch.randn(SQUARE, SQUARE)
        return lambda: call(torch, x)

    return make


def _add_large(torch: Any) -> Callable[[], Any]:
    a, b = torch.rand(LARGE), torch.rand(LARGE)
    return lambda: a + b


def _cast(torch: Any) -> Callable[[], Any]:
    x = torch.rand(LARGE)
    return lambda: x.to(torch.bfloat16)


def _product(size: int, dtype: str = "float32") -> Callable[[Any], Callable[[], Any]]:
    def make(torch: Any) -> Callable[[], Any]:
        torch.manual_seed(0)
        a, b = torch.randn(size, size), torch.randn(size, size)
        a, b = a.to(getattr(torch, dtype)), b.to(getattr(torch, dtype))
        return lambda: a @ b

    return make


def _gpt(layers: int, width: int, batch: int, context: int) -> Callable[[Any], Callable[[], Any]]:
    def make(torch: Any) -> Callable[[], Any]:
        nn, functional, heads, vocabulary = torch.nn, torch.nn.functional, 4, 65

        class Block(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
                self.qkv, self.joined = nn.Linear(width, 3 * width), nn.Linear(width, width)
                self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

            def forward(self, x: Any) -> Any:
                B, T, C = x.shape
                parts = self.qkv(self.norm1(x)).split(C, dim=2)
                q, k, v = (p.view(B, T, heads, C // heads).transpose(1, 2) for p in parts)
                y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
                x = x + self.joined(y.transpose(1, 2).reshape(B, T, C))
                return x + self.down(functional.gelu(self.up(self.norm2(x))))

        class Model(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.tokens = nn.Embedding(vocabulary, width)
                self.positions = nn.Embedding(context, width)
                self.blocks = nn.ModuleList([Block() for _ in range(layers)])
                self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)

            def forward(self, tokens: Any) -> Any:
                x = self.tokens(tokens) + self.positions(torch.arange(context))
                for block in self.blocks:
                    x = block(x)
                return self.head(self.norm(x))

        torch.manual_seed(0)
        model = Model()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        x = torch.randint(0, vocabulary, (batch, context))
        y = torch.randint(0, vocabulary, (batch, context)).view(-1)

        def step() -> None:
            loss = functional.cross_entropy(model(x).view(-1, vocabulary), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        return step

    return make


_F32 = 4 * LARGE
ROWS = [
    Row("add of two 1-element f32", _one_element, 0.4, repeat=2000),
    Row("Linear(8, 8) forward, sum, backward", _linear, 0.15, repeat=200),
    Row("GPT step, 4 x 128, batch 12 x 64", _gpt(4, 128, 12, 64), 0.75, operations=4.4e9),
    Row("GPT step, 2 x 32, batch 1 x 16", _gpt(2, 32, 1, 16), 0.3, repeat=5),
    Row("add of 16 M f32, fresh result", _add_large, 0.45, traffic=3 * _F32),
    *(
        Row(f"{name} of 16 M f32", _unary(name), 0.45, traffic=2 * _F32)
        for name in ("exp", "tanh", "sigmoid", "log")
    ),
    Row("sum of 16 M f32", _unary("sum"), 1.1, traffic=_F32),
    Row("copy of 16 M f32", _unary("clone"), 0.45, traffic=2 * _F32),
    Row("f32 to bf16, 16 M", _cast, 0.45, traffic=1.5 * _F32),
    Row("gelu, 4096 x 4096", _unary("gelu", (SQUARE, SQUARE)), 0.35, traffic=2 * _F32),
    Row("softmax, 4096 x 4096", _of_square(lambda t, x: t.softmax(x, 1)), 0.35, traffic=2 * _F32),
    Row(
        "layer_norm, 4096 x 4096",
        _of_square(lambda t, x: t.nn.functional.layer_norm(x, (SQUARE,))), 0.35, traffic=2 * _F32,
    ),
    Row(
        "rms_norm, 4096 x 4096",
        _of_square(lambda t, x: t.nn.functional.rms_norm(x, (SQUARE,))), 0.35, traffic=2 * _F32,
    ),
    Row("transposed copy, 4096 x 4096", _of_square(lambda t, x: x.t().contiguous()), 0.3,
        traffic=2 * _F32),
    Row("cumsum, 4096 x 4096", _of_square(lambda t, x: x.cumsum(1)), 0.3, traffic=2 * _F32),
    Row("argmax, 4096 x 4096", _of_square(lambda t, x: x.argmax(1)), 0.3, traffic=_F32),
    Row("sum over rows, 4096 x 4096", _of_square(lambda t, x: x.sum(0)), 1.0, traffic=_F32),
    Row("mm f32, 256", _product(256), 1.11, operations=2 * 256**3, repeat=20),
    Row("mm f32, 1024", _product(1024), 1.11, operations=2 * 1024**3),
    Row("mm f32, 2048", _product(2048), 1.11, operations=2 * 2048**3),
    Row("mm bf16, 1024", _product(1024, "bfloat16"), 1.0, operations=2 * 1024**3),
    Row("mm f16, 1024", _product(1024, "float16"), 1.0, operations=2 * 1024**3),
]  # fmt: skip
