"""Times Rushlight and PyTorch side by side and writes docs/benchmarks.md.

    python benchmarks/run.py [--threads 1,2] [--rounds 9] [--only TEXT] [--output FILE]

Each row has a process of its own, so that no row finds memory or threads as another left them.
There, each round times one framework and then the other, and medians are compared, so that a busy
machine slows both alike. Before it is timed, the other's threads have gone to sleep and its own are
awake. Start-up is timed in processes of their own.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from alone import alone
from rows import LARGE, ROWS, Row
from rows_attention import ATTENTION_ROWS
from rows_compile import COMPILE_ROWS, FIRST_CALLS, NEW_SHAPES
from rows_convolution import CONVOLUTION_ROWS
from rows_fft import FFT_ROWS
from rows_pooling import POOLING_ROWS

ROOT = Path(__file__).resolve().parent.parent
EVERY = ROWS + POOLING_ROWS + ATTENTION_ROWS + COMPILE_ROWS + CONVOLUTION_ROWS + FFT_ROWS


def measure(call: Callable[[], object], repeat: int) -> float:
    begin = time.perf_counter()
    for _ in range(repeat):
        call()
    return (time.perf_counter() - begin) / repeat


def settle(call: Callable[[], object], last: float) -> None:
    """Lets the other side's threads, which spin for a while, go to sleep, and wakes our own."""
    time.sleep(0.02)
    begin = time.perf_counter()
    while last < 0.05 and time.perf_counter() - begin < 0.01:
        call()


def compare(row: Row, ours: object, theirs: object, rounds: int) -> tuple[float, float]:
    """Median seconds a call of both, interleaved."""
    rival = row.against(ours) if row.against is not None else row.make(theirs)
    calls = [row.make(ours), rival]
    last = [min(measure(call, row.repeat) for _ in range(2)) for call in calls]
    times: list[list[float]] = [[], []]
    for _ in range(rounds):
        for side, call in enumerate(calls):
            settle(call, last[side])
            times[side].append(measure(call, row.repeat))
    return statistics.median(times[0]), statistics.median(times[1])


def bandwidth(torch: object) -> float:
    """Bytes a second that a copy of 16 M f32 moves: the floor of rows that only move memory."""
    x = torch.ones(LARGE)
    out = torch.empty(LARGE)
    out.copy_(x)
    return 8 * LARGE / min(measure(lambda: out.copy_(x), 1) for _ in range(9))


def flops(torch: object, threads: int) -> float:
    """The better rate of both frameworks at a large product stands for the machine's."""
    a = torch.ones(2048, 2048)
    return 2 * 2048**3 / min(measure(lambda: a @ a, 1) for _ in range(5))


_START = """
import resource, sys, time
begin = time.perf_counter()
import {name}
took = time.perf_counter() - begin
print(took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def start_up(name: str) -> tuple[float, float]:
    """Median seconds of an import, and MiB resident after it."""
    runs = []
    for _ in range(5):
        out = subprocess.run(
            [sys.executable, "-c", _START.format(name=name)], capture_output=True, text=True
        )
        runs.append([float(word) for word in out.stdout.split()])
    return statistics.median(r[0] for r in runs), statistics.median(r[1] for r in runs) / 1024


def _run(program: str, name: str, cache: str) -> str:
    environment = {**os.environ, "RUSHLIGHT_CACHE_DIR": cache, "TORCHINDUCTOR_CACHE_DIR": cache}
    text = program.format(name=name, folder=str(ROOT / "benchmarks"))
    ended = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, env=environment
    )
    if ended.returncode != 0:
        raise RuntimeError(ended.stderr)
    return ended.stdout


def first_calls() -> list[str]:
    """Compiling, with nothing cached and with all that the first process left on disk."""
    lines = [
        "## First calls of compiled functions",
        "",
        "| work | Rushlight | with disk cache | PyTorch | with disk cache | wanted |",
        "|---|---|---|---|---|---|",
    ]
    for name, program, cold, cached in FIRST_CALLS:
        times = []
        for framework in ("rushlight", "torch"):
            with tempfile.TemporaryDirectory() as cache:
                times += [float(_run(program, framework, cache)) for _ in range(2)]
        wanted = f"<= {scale(cold)}" + (f" / {scale(cached)}" if cached else "")
        cells = " | ".join(scale(seconds) for seconds in times)
        lines.append(f"| {name} | {cells} | {wanted} |")
        print(lines[-1], flush=True)
    with tempfile.TemporaryDirectory() as cache:
        kernels, plans = _run(NEW_SHAPES, "rushlight", cache).split()
    lines += ["", f"Three new batch sizes and lengths: {kernels} kernels compiled, {plans} plans."]
    return [*lines, ""]


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.processor()


def scale(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def floor_of(row: Row, rate: float, peak: float) -> float:
    return max(row.traffic / rate, row.operations / peak)


def frameworks(threads: int) -> tuple[object, object]:
    import rushlight
    import torch

    for framework in (rushlight, torch):
        framework.set_num_threads(threads)
    return rushlight, torch


def in_own_process(task: str, threads: int, rounds: int) -> list[float]:
    """What a child prints as numbers: of a row, or of the machine."""
    command = [sys.executable, __file__, "--child", task, "--threads", str(threads)]
    ended = subprocess.run(
        [*command, "--rounds", str(rounds)], capture_output=True, text=True, check=False
    )
    if ended.returncode != 0:
        raise RuntimeError(f"{task}, {threads} threads:\n{ended.stderr}")
    return [float(word) for word in ended.stdout.split()[-2:]]


def child(task: str, threads: int, rounds: int) -> None:
    ours, theirs = frameworks(threads)
    if task == "machine":
        print(bandwidth(ours), max(flops(ours, threads), flops(theirs, threads)))
    else:
        row = next(row for row in EVERY if row.name == task)
        print(*compare(row, ours, theirs, rounds))


def table(threads: int, rows: list[Row], rounds: int) -> list[str]:
    rate, peak = in_own_process("machine", threads, rounds)
    lines = [
        f"## {threads} thread{'s' if threads > 1 else ''}",
        "",
        f"Measured here: {rate / 1e9:.1f} GB/s copying, {peak / 1e9:.0f} GFLOP/s in f32 products.",
        "",
        "| work | Rushlight | PyTorch | ratio | wanted | floor |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        mine, other = in_own_process(row.name, threads, rounds)
        floor = floor_of(row, rate, peak)
        lines.append(
            f"| {row.name} | {scale(mine)} | {scale(other)} | {mine / other:.2f} | "
            f"<= {row.must:g} | {scale(floor) if floor else '-'} |"
        )
        print(lines[-1], flush=True)
    return [*lines, ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "benchmarks.md")
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(options.child, int(options.threads), options.rounds)
    if importlib.util.find_spec("torch") is None:
        sys.exit("benchmarks need PyTorch: pip install torch==2.13.0 (make bench does)")
    lines = ["# Benchmarks", ""]
    mine, other = start_up("rushlight"), start_up("torch")

    import rushlight
    import torch

    lines += [
        f"{processor()}; CPU level {rushlight._C._cpu_level()}; PyTorch {torch.__version__}; "
        "both sides interleaved, each row in a process of its own, medians. "
        "`make bench` writes this page.",
        "",
        "| start-up | Rushlight | PyTorch | wanted |",
        "|---|---|---|---|",
        f"| import | {scale(mine[0])} | {scale(other[0])} | < 100 ms |",
        f"| resident after import | {mine[1]:.0f} MiB | {other[1]:.0f} MiB | < 40 MB |",
        "",
    ]
    rows = [row for row in EVERY if options.only in row.name]
    if not options.only or options.only in "first calls":
        lines += first_calls()
    if not options.only or options.only in "alone":
        lines += alone()
    for threads in options.threads.split(","):
        lines += table(int(threads), rows, options.rounds)
    options.output.parent.mkdir(exist_ok=True)
    options.output.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
