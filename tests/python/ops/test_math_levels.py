"""Math functions of f64 have the same bits at every instruction set level."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import hashlib
import sys

import rushlight as torch

torch.manual_seed(3)
wide = torch.randn(999, dtype=torch.float64) * torch.exp(torch.randn(999, dtype=torch.float64) * 4)
inf = float("inf")
edges = [0.0, -0.0, 1.0, -1.0, 0.5, 5e-324, 1e-310, 709.5, -745.0, 1e300, inf, -inf]
x = torch.cat([wide, wide.abs() % 1.0, torch.tensor(edges, dtype=torch.float64)])
y = x.flip(0)
unary = (
    "exp exp2 expm1 log log2 log10 log1p sin cos tan tanh sinh cosh erf erfc asin acos atan asinh "
    "acosh atanh"
)
results = [(name, getattr(torch, name)(x)) for name in unary.split()]
results += [(name, getattr(torch, name)(x, y)) for name in ("pow", "atan2", "hypot")]
for name, result in results:
    # A NaN's sign and payload are no result.
    bits = torch.where(result.isnan(), 0.0, result).view(torch.int64).tolist()
    print(name, hashlib.sha256(repr(bits).encode()).hexdigest())
"""


def digests(level):
    """What the program prints where kernels are chosen for `level`; None for the machine's own."""
    environment = {k: v for k, v in os.environ.items() if k != "RUSHLIGHT_CPU"}
    if level is not None:
        environment["RUSHLIGHT_CPU"] = level
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )


def test_f64_functions_agree():
    own = digests(None)
    assert own.returncode == 0, own.stderr
    assert len(own.stdout.splitlines()) == 24
    higher = digests("v4")
    if "above what this machine has" in higher.stderr:
        pytest.skip("one level only: the processor has no AVX-512")
    lower = digests("v3")
    assert lower.returncode == 0, lower.stderr
    assert lower.stdout.splitlines() == higher.stdout.splitlines() == own.stdout.splitlines()
