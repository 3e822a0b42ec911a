"""What all Python tests share: the package that was built last, and the same random numbers."""

from __future__ import annotations

import pathlib
import sys

import pytest

try:
    import rushlight
except ImportError:  # neither installed nor on the path: the build folder's
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "build" / "python"))
    import rushlight


@pytest.fixture(autouse=True)
def seeded() -> None:
    rushlight.manual_seed(20)
