"""Runs a program written for PyTorch: `python -m rushlight script.py [arguments]`.

`-m module` runs a module, `-c command` a line, as Python's own options do. In all of them
`import torch` gives rushlight.
"""

from __future__ import annotations

import os
import runpy
import sys

from rushlight._torch_alias import install

_USAGE = "usage: python -m rushlight [-m module | -c command | script.py] [arguments]"


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_USAGE if arguments else f"{_USAGE}\nrushlight: nothing to run", file=sys.stderr)
        return 0 if arguments else 2
    install()
    if arguments[0] in ("-m", "-c"):
        if len(arguments) < 2:
            print(f"{_USAGE}\nrushlight: {arguments[0]} needs an argument", file=sys.stderr)
            return 2
        kind, what, *rest = arguments
        sys.argv = [kind, *rest]
        sys.path[0] = ""
        if kind == "-m":
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            code = compile(what, "<string>", "exec")
            exec(code, {"__name__": "__main__", "__builtins__": __builtins__})
        return 0
    sys.argv = arguments
    sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
    runpy.run_path(arguments[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
