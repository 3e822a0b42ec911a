"""Links the Python sources into a package folder beside the built extension.

    link_package.py python/rushlight build/python/rushlight

Edits to a source show at once; run it again after adding or deleting files at the top level.
"""

from __future__ import annotations

import sys
from pathlib import Path


def link(sources: Path, package: Path) -> None:
    package.mkdir(parents=True, exist_ok=True)
    for old in package.iterdir():
        if old.is_symlink() and not old.exists():
            old.unlink()
    for source in sorted(sources.iterdir()):
        if source.name == "__pycache__":
            continue
        target = package / source.name
        if target.is_symlink():
            if target.readlink() == source:
                continue
            target.unlink()
        if not target.exists():
            target.symlink_to(source)


if __name__ == "__main__":
    link(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
