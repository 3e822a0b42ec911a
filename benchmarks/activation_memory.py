"""What a memory budget for activations saves in training 12 blocks of width 256, and costs.

    PYTHONPATH=build/python python benchmarks/activation_memory.py [ROUNDS]

prints a row a budget: what forward keeps for backward (parameters' gradients aside), the highest
that memory got in the step, both from the allocator, and the time of a step. Steps of all budgets
take turns, so that the machine is the same for all.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import rows_compile
import rushlight as torch
from rushlight import _C

BUDGETS = (1.0, 0.75, 0.5, 0.25, 0.0)


def held() -> int:
    """Bytes in use."""
    return _C._memory_statistics()["live_bytes"]


def step(model: torch.nn.Module, function: Callable, x: torch.Tensor) -> tuple[float, float]:
    """One step: MB that forward kept, and the highest use of memory, without what was there."""
    model.zero_grad()
    before = held()
    _C._memory_reset_peak()
    loss = function(x).square().mean()
    kept = held() - before
    loss.backward()
    return kept / 1e6, (_C._memory_statistics()["peak_bytes"] - before) / 1e6


def main() -> None:
    """Prints the table."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    model = rows_compile.transformer(torch)
    x = torch.randn(rows_compile.BATCH, rows_compile.LENGTH, rows_compile.WIDTH)
    functions = {"eager": model}
    for budget in BUDGETS:
        options = {"activation_memory_budget": budget}
        functions[f"{budget}"] = torch.compile(model, options=options)
    memory = {}
    times = {name: [] for name in functions}
    for name, function in functions.items():
        for _ in range(3):
            memory[name] = step(model, function, x)
    for _ in range(rounds):
        for name, function in functions.items():
            start = time.perf_counter()
            step(model, function, x)
            times[name].append(time.perf_counter() - start)
    print("budget  kept MB  peak MB  step ms: least, median")
    for name, (kept, peak) in memory.items():
        least, median = min(times[name]) * 1e3, statistics.median(times[name]) * 1e3
        print(f"{name:6}  {kept:7.1f}  {peak:7.1f}  {least:7.1f} {median:7.1f}")


if __name__ == "__main__":
    main()
