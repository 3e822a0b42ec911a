"""Finds what makes a compiled program go wrong: a pass, or one kernel.

    python -m rushlight.compiler.bisect -- python program.py

The command must end with status 0 where all is well and with another where it is not. First each
pass is switched off in turn; then, if it is fusion, the number of groups that may become kernels is
halved until one is left. That kernel's operators are printed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

from rushlight import _C

MOST_GROUPS = 1 << 20


def _succeeds(command: Sequence[str], **variables: str) -> bool:
    environment = {**os.environ, **variables}
    return subprocess.run(command, env=environment, capture_output=True).returncode == 0


def guilty_pass(command: Sequence[str]) -> str | None:
    """The pass without which the command succeeds; None where no single one is to blame."""
    for name in _C._compile_passes():
        if _succeeds(command, RUSHLIGHT_PASSES=f"-{name}"):
            return name
    return None


def guilty_group(command: Sequence[str]) -> int:
    """The number of the first group that makes the command fail when it becomes a kernel."""
    good, bad = 0, 1
    while bad < MOST_GROUPS and _succeeds(command, RUSHLIGHT_BISECT=str(bad)):
        good, bad = bad, 2 * bad
    while bad - good > 1:
        middle = (good + bad) // 2
        if _succeeds(command, RUSHLIGHT_BISECT=str(middle)):
            good = middle
        else:
            bad = middle
    return bad


def _describe(command: Sequence[str], group: int) -> str:
    environment = {**os.environ, "RUSHLIGHT_BISECT": str(group), "RUSHLIGHT_LOG": "bisect"}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True)
    lines = ended.stderr.splitlines()
    wanted = f"[bisect] {group} "
    for at, line in enumerate(lines):
        if line.startswith(wanted):
            body = [line]
            for following in lines[at + 1 :]:
                if not following.startswith("  "):
                    break
                body.append(following)
            return "\n".join(body)
    return f"group {group}"


def main(arguments: Sequence[str]) -> int:
    """Prints what is to blame. Status 0 where something was found, 2 for wrong usage."""
    command = list(arguments)
    if command[:1] == ["--"]:
        command = command[1:]
    if not command:
        print(__doc__, file=sys.stderr)
        return 2
    if _succeeds(command):
        print("the command succeeds: nothing to find")
        return 1
    name = guilty_pass(command)
    if name is None:
        print("the command fails whichever pass is off: the compiler may not be to blame")
        return 1
    print(f"pass: {name}")
    if name == "fusion":
        print(_describe(command, guilty_group(command)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
