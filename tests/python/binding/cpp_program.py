"""C++ programs against the build that is imported, written from the cases of a test.

So a case stands once: Python calls it with its values, C++ with the same values as literals.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess

from .cpp_headers import BUILD, SOURCE

COMPILER = os.environ.get("CXX") or shutil.which("c++")
LIBRARY = BUILD / "src" / "librushlight.so"
AVAILABLE = COMPILER is not None and LIBRARY.exists() and SOURCE.exists()


class Both:
    """A value that is spelled in both languages."""

    def __init__(self, value: object, cpp: str) -> None:
        self.value = value
        self.cpp = cpp


def python(value: object) -> object:
    return value.value if isinstance(value, Both) else value


def literal(value: object) -> str:
    """A Python value in C++."""
    if isinstance(value, Both):
        return value.cpp
    if value is None:
        return "std::nullopt"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list | tuple):
        return "{" + ", ".join(map(literal, value)) + "}"
    return repr(value)


def output(text: str, folder: pathlib.Path, *arguments: str) -> list[str]:
    """The lines that the program prints."""
    source, program = folder / "program.cpp", folder / "program"
    source.write_text(text)
    command = [COMPILER, "-std=c++20", "-O0", source, f"-I{SOURCE.parent}"]
    command += [f"-I{BUILD / 'generated'}", f"-L{LIBRARY.parent}", "-lrushlight", "-pthread"]
    command += [f"-Wl,-rpath,{LIBRARY.parent}", "-o", program]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    done = subprocess.run(
        [str(program), *arguments], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout.splitlines()
