"""Kernels that common models need come with the library."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import rushlight as torch
from rushlight import _C

PROGRAM = """
import rushlight as torch
from rushlight import _C

class Block(torch.nn.Module):
    def __init__(self, bias):
        super().__init__()
        nn = torch.nn
        self.first, self.second = nn.LayerNorm(16), nn.LayerNorm(16)
        self.qkv, self.out = nn.Linear(16, 48, bias=bias), nn.Linear(16, 16, bias=bias)
        self.up, self.down = nn.Linear(16, 64, bias=bias), nn.Linear(64, 16, bias=bias)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (p.view(b, t, 4, 4).transpose(1, 2) for p in self.qkv(self.first(x)).split(16, 2))
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.down(torch.nn.functional.gelu(self.up(self.second(x))))

for bias in (True, False):
    model = torch.nn.Sequential(Block(bias), Block(bias), Block(bias)).to(torch.{dtype})
    optimizer = torch.optim.AdamW(model.parameters())
    forward = torch.compile(model)
    for _ in range(2):
        forward(torch.ones(3, 5, 16, dtype=torch.{dtype})).square().mean().backward()
    optimizer.step()
    with torch.no_grad():
        forward(torch.ones(3, 5, 16, dtype=torch.{dtype}))
stats = _C._kernel_cache_stats()
print(stats["compiled"], stats["pack_hits"])
"""


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_training_a_transformer_compiles_nothing(dtype, tmp_path):
    (torch.ones(3) + 1).sum()
    if _C._kernel_cache_stats()["pack_hits"] == 0:
        pytest.skip("the library was built without its pack")
    environment = os.environ | {"RUSHLIGHT_CACHE_DIR": str(tmp_path), "RUSHLIGHT_LOG": "kernels"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(dtype=dtype)],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    compiled, packed = map(int, done.stdout.split())
    assert compiled == 0, done.stderr
    assert packed > 10
