"""A program written for libtorch compiles against include/torch/torch.h, and learns."""

from __future__ import annotations

import pathlib

import pytest

from . import cpp_program

if not cpp_program.AVAILABLE:
    pytest.skip("needs a C++ compiler and the build", allow_module_level=True)

PROGRAM = pathlib.Path(__file__).with_name("libtorch_program.cpp")


def test_a_libtorch_program_learns(tmp_path) -> None:
    lines = cpp_program.output(PROGRAM.read_text(), tmp_path, str(tmp_path))
    losses = [float(line.split()[2]) for line in lines[:6]]
    assert losses[-1] < 0.2 < 1 < losses[0]
    kind, _, accuracy = lines[6].split()
    assert kind == "test"
    assert float(accuracy) > 0.9
    assert lines[7] == lines[6]  # what was saved and read back computes the same
    assert lines[8] == "1"
    assert lines[9:] == ["tensor([[1., 0.],", "        [0., 1.]])"]
