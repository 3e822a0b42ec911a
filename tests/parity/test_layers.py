"""Layers and losses in both languages: the same text, results, gradients and buffers."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest
import rushlight

PROGRAM = pathlib.Path(__file__).resolve().parent / "layers.py"
TWIN = pathlib.Path(rushlight.__file__).parents[2] / "tests" / "layers_twin"


def lines(command: list[str]) -> list[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_both_languages_print_the_same() -> None:
    if not TWIN.exists():
        pytest.skip(f"{TWIN} is not built")
    python, cpp = lines([sys.executable, str(PROGRAM)]), lines([str(TWIN)])
    assert len(python) > 200
    assert python == cpp
