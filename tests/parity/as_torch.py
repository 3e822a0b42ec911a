"""Runs a program written for Rushlight on PyTorch: as_torch.py PROGRAM [ARGUMENTS].

It shows that the program is an ordinary PyTorch program, and gives the figures to compare with.
"""

from __future__ import annotations

import pathlib
import runpy
import sys

import torch


def main() -> None:
    for name, module in list(sys.modules.items()):
        if name == "torch" or name.startswith("torch."):
            sys.modules["rushlight" + name.removeprefix("torch")] = module
    sys.argv = sys.argv[1:]
    sys.path[0] = str(pathlib.Path(sys.argv[0]).resolve().parent)
    torch.set_num_threads(2)
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
