"""10,000 random calls: no crash, no hang, and compiled kernels agree with the interpreter."""

import math
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

CALLS = Path(__file__).with_name("calls.py")
COUNT = 10_000
# Compiled math functions are within a few ULP of the interpreter's, which calls libm; what is made
# of them may lose more.
RELATIVE = {"torch.float32": 2e-4, "torch.float64": 1e-9}
HALF = 2e-2


def results(path: Path, interpret: bool) -> list:
    environment = dict(os.environ)
    if interpret:
        environment["RUSHLIGHT_INTERPRET"] = "1"
    ended = subprocess.run(
        [sys.executable, str(CALLS), "0", str(COUNT), str(path)],
        env=environment, timeout=900, capture_output=True, text=True,
    )  # fmt: skip
    found = []
    with open(path, "rb") as file:
        while True:
            try:
                found.append(pickle.load(file))
            except EOFError:
                break
    assert ended.returncode == 0, f"call {len(found)} ended the process: {ended.stderr[-2000:]}"
    return found


def flat(value):
    if isinstance(value, list):
        for item in value:
            yield from flat(item)
    else:
        yield value


def close(a, b, dtype: str) -> bool:
    if a == b or (a != a and b != b):
        return True
    if isinstance(a, float) and isinstance(b, float) and not (math.isinf(a) or math.isinf(b)):
        allowed = RELATIVE.get(dtype, HALF)
        return math.isclose(a, b, rel_tol=allowed, abs_tol=allowed)
    return False


def agree(a, b) -> bool:
    if isinstance(a, tuple) and a and a[0] == "tensor":
        if not isinstance(b, tuple) or a[1:3] != b[1:3]:
            return False
        return all(close(x, y, a[1]) for x, y in zip(flat(a[3]), flat(b[3]), strict=True))
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(agree(x, y) for x, y in zip(a, b, strict=True))
    return close(a, b, "")


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz")
    return results(folder / "compiled", False), results(folder / "interpreted", True)


def test_compiled_agrees_with_interpreter(both):
    compiled, interpreted = both
    assert len(compiled) == len(interpreted) == COUNT
    faults = [
        f"call {number}, {name}: compiled {mine!r:.200}, interpreted {other!r:.200}"
        for number, ((name, mine), (_, other)) in enumerate(zip(compiled, interpreted, strict=True))
        if not agree(mine, other)
    ]
    assert not faults, f"{len(faults)} of {COUNT} differ:\n" + "\n".join(faults[:20])


def test_most_calls_give_results(both):
    compiled, _ = both
    raised = sum(isinstance(value, tuple) and value[:1] == ("raised",) for _, value in compiled)
    assert raised < COUNT * 0.8  # else the arguments test nothing


def test_no_internal_errors(both):
    compiled, _ = both
    results = [value for _, value in compiled if isinstance(value, tuple)]
    names = {value[1] for value in results if value[0] == "raised"}
    allowed = {"RuntimeError", "IndexError", "ValueError", "TypeError", "NotImplementedError"}
    assert names <= allowed | {
        "ZeroDivisionError",
        "OutOfMemoryError",
        "OverflowError",
        "_LinAlgError",
    }
