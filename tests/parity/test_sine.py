"""The example of the README in both languages: the same figures."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest
import rushlight

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "examples" / "sine" / "sine.py"
TWIN = pathlib.Path(rushlight.__file__).parents[2] / "examples" / "sine"


def rows(command: list[str], folder: pathlib.Path) -> list[list[str]]:
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
    return [line.split() for line in done.stdout.splitlines()]


def test_both_languages_give_the_same_figures(tmp_path: pathlib.Path) -> None:
    ours = rows([sys.executable, str(PROGRAM)], tmp_path)
    assert [step for step, _ in ours[:-1]] == ["0", "100", "200", "300", "400", "500"]
    assert float(ours[-2][1]) < 0.01
    if not TWIN.exists():
        pytest.skip(f"{TWIN} is not built")
    theirs = rows([str(TWIN)], tmp_path)
    # C++ prints six digits of a number.
    assert [[step, f"{float(loss):.6g}"] for step, loss in ours[:-1]] == theirs[:-1]
    assert theirs[-1][0] == ours[-1][0]
