"""Finding the pass and the kernel that make a program go wrong."""

import os
import subprocess
import sys

PROGRAM = """
import os
import sys
import rushlight as torch

f = torch.compile(lambda x, y: ((x * 2 + 1).tanh(), (y.sin() + y).sum(-1)))
f(torch.randn(4, 4), torch.randn(5, 5))
kernels = int(os.environ.get("RUSHLIGHT_BISECT", "99"))
fuses = "-fusion" not in os.environ.get("RUSHLIGHT_PASSES", "")
sys.exit(1 if fuses and kernels >= 2 else 0)
"""


def test_names_the_pass_and_the_kernel(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    ended = subprocess.run(
        [sys.executable, "-m", "rushlight.compiler.bisect", "--", sys.executable, str(program)],
        capture_output=True, text=True, env=dict(os.environ), timeout=300,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert "pass: fusion" in ended.stdout
    assert "[bisect] 2" in ended.stdout and "sin(" in ended.stdout


def test_says_where_nothing_is_wrong():
    ended = subprocess.run(
        [sys.executable, "-m", "rushlight.compiler.bisect", "--", sys.executable, "-c", "pass"],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert ended.returncode == 1
    assert "nothing to find" in ended.stdout


def test_a_misspelt_pass_is_an_error():
    program = "import rushlight as torch; torch.compile(lambda x: x * 2 + 1)(torch.ones(2))"
    ended = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True, text=True, timeout=120,
        env={**os.environ, "RUSHLIGHT_PASSES": "-fuison"},
    )  # fmt: skip
    assert ended.returncode != 0
    assert "ValueError" in ended.stderr and "-fuison" in ended.stderr
