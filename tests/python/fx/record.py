"""Runs the programs: `python record.py NAME` prints what programs/NAME.py prints, by function.

On PyTorch, whose output is kept in expected/: `python record.py --torch NAME`.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import pathlib
import re
import sys
import types

HERE = pathlib.Path(__file__).parent


def load(name: str, library: str) -> types.ModuleType:
    """The module of a program, for Rushlight or for PyTorch."""
    path = HERE / "programs" / f"{name}.py"
    source = path.read_text()
    if library == "torch":
        source = source.replace("import rushlight as torch", "import torch", 1)
        source = re.sub(r"(from|import) rushlight", r"\1 torch", source)
    module = types.ModuleType(f"p_{name}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    exec(compile(source, path.name, "exec"), module.__dict__)
    return module


def programs(module: types.ModuleType) -> dict[str, types.FunctionType]:
    """The functions without parameters that the program defines, by name."""
    return {
        name: value
        for name, value in vars(module).items()
        if inspect.isfunction(value)
        and value.__module__ == module.__name__
        and not inspect.signature(value).parameters
    }


def output(program: types.FunctionType) -> str:
    """What a program prints; addresses are left out."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        program()
    lines = re.sub(r"0x[0-9a-f]+", "0x", text.getvalue()).split("\n")
    return "\n".join(line.rstrip() for line in lines).strip("\n") + "\n"


def main() -> None:
    """Prints the sections of a program."""
    *flags, name = sys.argv[1:]
    for program, function in programs(load(name, "torch" if flags else "rushlight")).items():
        print(f"=====  {program}\n{output(function)}", end="")


if __name__ == "__main__":
    main()
