"""Figures that no rival has a counterpart of, or takes minutes and gigabytes for.

Each is measured in a fresh process and printed with what is wanted. `run.py` adds them to the page.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Programs as people compile them; none of their kernels is in the pack.
_COMPILED = """
import rushlight as torch
F = torch.nn.functional
programs = [
    lambda x, y: x * 1.01 + 0.5 + y,
    lambda x, y: F.gelu(x) * y,
    lambda x, y: F.silu(x) * y + x,
    lambda x, y: torch.where(x > 0, x, y * 0.1) + 1,
    lambda x, y: torch.sigmoid(x) * torch.tanh(y) + x.erf(),
    lambda x, y: (x.exp() + y.log1p().abs()).tanh(),
    lambda x, y: (x.sin() + x.cos()).sum(-1),
    lambda x, y: (x - y).square().mean(),
    lambda x, y: torch.softmax(x * 0.5 + y, -1),
    lambda x, y: torch.log_softmax(x * 0.5 + y, -1) * y,
    lambda x, y: F.layer_norm(x * 2 + y, (128,)),
    lambda x, y: F.rms_norm(x + y, (128,)) * y,
    lambda x, y: (x + y).argmax(-1),
    lambda x, y: (x * y).sum(0) + 1,
    lambda x, y: (x.bfloat16() * y.bfloat16()).float() + 1,
    lambda x, y: F.mish(x) + F.softplus(y),
]
x, y = torch.randn(64, 128), torch.randn(64, 128)
for program in programs:
    torch.compile(program)(x, y).sum().item()
"""

# Time of the second mask of its kind (the first opens modules), and by how much the peak of the
# process's resident memory rises.
_MASK = """
import resource, sys, time
sys.path.insert(0, {folder!r})
import rushlight as torch
import rows_attention
make = rows_attention._block_mask({length}, {kind!r})(torch)
rows_attention._block_mask(256, {kind!r})(torch)()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
begin = time.perf_counter()
make()
took = time.perf_counter() - begin
print(took, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""

_FLEX = """
import sys, time
sys.path.insert(0, {folder!r})
import rushlight as torch
import rows_attention
length = 32768
q, k, v = rows_attention._operands(torch, length)
def timed(call, rounds):
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times)
window = rows_attention._attention(length, rows_attention._window)(torch)
full = rows_attention._full_attention(length)(torch)
print(timed(full, 1) / timed(window, 3))
"""

# Resident bytes at the highest, beyond what lay there before and the two gradients; scratch memory
# of kernels, which the allocator does not see, counts too.
_LOSS = """
import resource
import rushlight as torch
def highest():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
x = torch.randn(2048, 512, requires_grad=True)
w = torch.randn(65536, 512).mul_(0.05).requires_grad_()
target = torch.randint(0, 65536, (2048,))
torch.nn.functional.linear_cross_entropy(x[:8], w[:64], target[:8] % 64).backward()
x.grad = w.grad = None
torch.ones(x.numel() + w.numel()).sum().item()  # the gradients' memory
before = highest()
torch.nn.functional.linear_cross_entropy(x, w, target).backward()
print((highest() - before) / 1e6)
"""


def _python(program: str, cache: str = "", log: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "RUSHLIGHT_LOG": log}
    if cache:
        environment["RUSHLIGHT_CACHE_DIR"] = cache
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment
    )
    if ended.returncode != 0:
        raise RuntimeError(ended.stderr)
    return ended


def _numbers(program: str, **words: object) -> list[float]:
    text = program.format(folder=str(ROOT / "benchmarks"), **words)
    return [float(word) for word in _python(text).stdout.split()]


def _kernels() -> list[tuple[str, str, str]]:
    """Kernels of small programs: made, then read by another process."""
    rows = []
    with tempfile.TemporaryDirectory() as cache:
        for name, word, wanted in (
            ("compiling a kernel", "compiled", "<= 10 ms"),
            ("a kernel from the disk cache", "read", "<= 1 ms"),
        ):
            log = _python(_COMPILED, cache, "kernels").stderr
            times = [float(t) for t in re.findall(rf"\] {word} .* in ([\d.]+) ms", log)]
            median = f"{statistics.median(times):.2f} ms" if times else "none"
            rows.append((f"{name}, median of {len(times)}", median, wanted))
            opened = re.search(r"opened .* in ([\d.]+) ms", log)
            if opened:
                rows.append(("opening the code generator", f"{opened[1]} ms", "<= 20 ms"))
    return rows


def _add() -> list[tuple[str, str, str]]:
    program = Path(os.environ.get("BUILD", ROOT / "build")) / "benchmarks" / "add"
    out = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    return [("add of two 1-element f32 in C++", f"{float(out):.0f} ns", "<= 120 ns")]


def alone() -> list[str]:
    """The section of the page."""
    rows = [*_add(), *_kernels()]
    for kind in ("window", "causal", "document"):
        took, memory = _numbers(_MASK, length=32768, kind=kind)
        rows.append(
            (
                f"create_block_mask, 32768, {kind}",
                f"{took * 1e3:.1f} ms, peak + {memory:.0f} MiB",
                "<= 100 ms, 100 MB",
            )
        )
    rows.append(
        (
            "full attention over flex attention with window 256, 1 x 8 x 32768 x 64",
            f"{_numbers(_FLEX)[0]:.1f} x",
            ">= 12.3 x",
        )
    )
    rows.append(
        (
            "linear cross entropy, 2048 x 512 x 65536, memory beyond the gradients",
            f"{_numbers(_LOSS)[0]:.0f} MB",
            "<= 64 MB",
        )
    )
    lines = ["## Alone", "", "| figure | Rushlight | wanted |", "|---|---|---|"]
    for row in rows:
        lines.append(f"| {row[0]} | {row[1]} | {row[2]} |")
        print(lines[-1], flush=True)
    return [*lines, ""]


if __name__ == "__main__":
    alone()
