"""A GPT: a transformer that predicts the next token, with normalisation before each part."""

from __future__ import annotations

import dataclasses
import math

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F


@dataclasses.dataclass(frozen=True)
class Shape:
    """What a model's parameters depend on. Each head has width / heads channels."""

    vocabulary: int
    context: int
    layers: int
    width: int
    heads: int


class Attention(nn.Module):
    """Every position looks at itself and at those before it: (B, T, C) to (B, T, C)."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.project_in = nn.Linear(shape.width, 3 * shape.width, bias=False)
        self.project_out = nn.Linear(shape.width, shape.width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        B, T, C = x.shape
        query, key, value = (
            part.view(B, T, self.heads, C // self.heads).transpose(1, 2)
            for part in self.project_in(x).split(C, dim=2)
        )
        y = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.project_out(y.transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    """Attention, then two layers at every position, each added to what it reads."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.norm_attention = nn.LayerNorm(shape.width)
        self.attention = Attention(shape)
        self.norm_expand = nn.LayerNorm(shape.width)
        self.expand = nn.Linear(shape.width, 4 * shape.width, bias=False)
        self.project_out = nn.Linear(4 * shape.width, shape.width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm_attention(x))
        return x + self.project_out(F.gelu(self.expand(self.norm_expand(x))))


class GPT(nn.Module):
    """Tokens (B, T) of int64 to scores of the next token (B, T, vocabulary)."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.tokens = nn.Embedding(shape.vocabulary, shape.width)
        self.positions = nn.Embedding(shape.context, shape.width)
        self.blocks = nn.ModuleList([Block(shape) for _ in range(shape.layers)])
        self.norm = nn.LayerNorm(shape.width)
        self.head = nn.Linear(shape.width, shape.vocabulary, bias=False)
        for name, parameter in self.named_parameters():
            if "norm" not in name:
                # What blocks add up grows with their number: they begin smaller.
                deep = math.sqrt(2 * shape.layers) if "project_out" in name else 1.0
                nn.init.normal_(parameter, std=0.02 / deep)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

    def loss(self, tokens: torch.Tensor, following: torch.Tensor) -> torch.Tensor:
        """Mean cross-entropy of the `following` tokens (B, T), in nats a token."""
        return F.cross_entropy(self(tokens).flatten(0, 1), following.flatten())

    @torch.no_grad()
    def sample(
        self, start: list[int], count: int, temperature: float, generator: torch.Generator
    ) -> list[int]:
        """`start` and `count` tokens after it, each drawn by its probability."""
        tokens = list(start)
        for _ in range(count):
            scores = self(torch.tensor([tokens[-self.shape.context :]]))[0, -1]
            chances = F.softmax(scores / temperature, dim=0)
            tokens.append(int(torch.multinomial(chances, 1, generator=generator)))
        return tokens
