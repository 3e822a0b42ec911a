"""The GPT example in Python, in C++ and on PyTorch: the same seed gives the same losses."""

from __future__ import annotations

import importlib.util
import pathlib
import re
import subprocess
import sys

import pytest
import rushlight

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = HERE.parents[1] / "examples" / "gpt" / "train.py"
TWIN = pathlib.Path(rushlight.__file__).parents[2] / "examples" / "gpt" / "gpt"
STEPS = 50
SETTINGS = f"""
    --layers 2 --width 64 --batch 4 --context 32 --steps {STEPS} --warmup 10
    --evaluate-every 0 --sample 0 --print-losses
""".split()


def losses(command: list[str], folder: pathlib.Path, *more: str) -> list[float]:
    sample = folder / "text.txt"
    if not sample.exists():
        sample.write_text("\n".join(f"{n} times {n} is {n * n}." for n in range(2000)))
    settings = [*SETTINGS, "--text", str(sample), "--out", str(folder), *more]
    done = subprocess.run([*command, *settings], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [float(loss) for loss in re.findall(r"^step \d+: loss (\S+)$", done.stdout, re.M)]


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> list[float]:
    return losses([sys.executable, str(PROGRAM)], tmp_path_factory.mktemp("unbroken"))


def test_the_loss_falls(ours: list[float]) -> None:
    assert len(ours) == STEPS
    assert ours[-1] < 0.8 * ours[0]


def test_resuming_gives_the_same_bits(ours: list[float], tmp_path: pathlib.Path) -> None:
    begun = losses([sys.executable, str(PROGRAM)], tmp_path, "--stop", "20")
    resumed = losses([sys.executable, str(PROGRAM)], tmp_path, "--resume")
    assert begun + resumed == ours


def test_the_program_in_cpp_gives_the_same_losses(
    ours: list[float], tmp_path: pathlib.Path
) -> None:
    if not TWIN.exists():
        pytest.skip(f"{TWIN} is not built")
    begun = losses([str(TWIN)], tmp_path, "--stop", "20")
    resumed = losses([str(TWIN)], tmp_path, "--resume")
    assert begun + resumed == ours


def test_losses_are_those_of_pytorch(ours: list[float], tmp_path: pathlib.Path) -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed: nothing to compare with")
    theirs = losses([sys.executable, str(HERE / "as_torch.py"), str(PROGRAM)], tmp_path)
    assert abs(ours[0] - theirs[0]) <= 1e-6
    worst = max(abs(a - b) for a, b in zip(ours, theirs, strict=True))
    assert worst <= 1e-3, f"losses differ by up to {worst}"
