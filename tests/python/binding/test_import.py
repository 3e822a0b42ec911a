"""What importing the package costs and pulls in."""

import json
import os
import subprocess
import sys

import pytest

PROGRAM = """
import json, sys
before = set(sys.modules)
import rushlight as torch
modules = sorted(name for name in set(sys.modules) - before if name.startswith("rushlight"))
resident = int(open("/proc/self/statm").read().split()[1]) * 4096
print(json.dumps({"modules": modules, "resident": resident}))
"""


def measure() -> dict:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    return json.loads(run.stdout)


@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="a sanitizer's memory")
def test_import_is_small():
    assert measure()["resident"] < 40 * 2**20


def test_heavy_submodules_wait_for_their_first_use():
    modules = measure()["modules"]
    assert "rushlight.nn" not in modules and "rushlight.optim" not in modules


def test_submodules_are_attributes_without_an_import():
    program = "import rushlight as torch; print(torch.nn.Linear.__name__, torch.linalg.__name__)"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == ["Linear", "rushlight.linalg"]


def test_missing_names_are_attribute_errors():
    program = "import rushlight as torch; assert not hasattr(torch, 'no_such_name')"
    subprocess.run([sys.executable, "-c", program], check=True)
