"""Caches of kernels that are damaged, full, shared or not there; kernels that do not compile."""

import os
import subprocess
import sys
import textwrap

import pytest

PROGRAM = """
    import rushlight as torch
    from rushlight import _C
    x = torch.arange(12.0).reshape(3, 4)
    def f(x):
        y = x.sin() * 3 + x.cos()
        return (y.softmax(-1) - 0.5).exp()
    expected = f(x)
    {before}
    found = torch.compile(f)(x)
    assert torch.equal(found, expected)
    stats = _C._kernel_cache_stats()
    print(stats["compiled"], stats["disk_hits"])
"""


def start(cache, before="pass", **environment):
    code = textwrap.dedent(PROGRAM).format(before=before)
    given = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
        "RUSHLIGHT_CACHE_DIR": str(cache),
        **environment,
    }
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", code], env=given, **pipes)


def finish(process):
    """How many kernels were compiled and read."""
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return tuple(map(int, out.split()))


def error_of(process):
    _, err = process.communicate(timeout=300)
    assert process.returncode == 1
    return err


def test_damaged_files(tmp_path):
    compiled, _ = finish(start(tmp_path))
    assert compiled > 0
    good = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for number, (path, data) in enumerate(good.items()):
        kinds = (b"", data[:-1], data[: len(data) // 2], b"garbage", data[:99] + b"?" + data[100:])
        path.write_bytes(kinds[number % len(kinds)])
    again, read = finish(start(tmp_path))
    assert again == compiled and read == 0
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == good


def test_many_processes_at_once(tmp_path):
    cache = tmp_path / "not" / "there" / "yet"
    for process in [start(cache) for _ in range(4)]:
        finish(process)
    assert all(path.suffix == ".o" for path in cache.iterdir())
    compiled, read = finish(start(cache))
    assert compiled == 0 and read > 0


def test_a_place_that_cannot_be_written(tmp_path):
    file = tmp_path / "file"
    file.write_text("not a folder")
    for cache in (file, "/proc/rushlight"):  # neither takes files, whoever asks
        compiled, read = finish(start(cache))
        assert compiled > 0 and read == 0
    assert file.read_text() == "not a folder"


@pytest.mark.parametrize("limit", [0, 1000])
def test_a_full_disk(tmp_path, limit):
    """Files end at the limit, as they do where a disk is full: none is left behind."""
    full = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))"
    finish(start(tmp_path / "warm"))
    kept = {path.name for path in (tmp_path / "warm").iterdir()}
    cache = tmp_path / "cache"
    compiled, _ = finish(start(cache, before=full))
    assert compiled == len(kept)
    assert {path.name for path in cache.iterdir()} < kept
    for path in cache.iterdir():
        assert path.read_bytes() == (tmp_path / "warm" / path.name).read_bytes()


def test_a_kernel_that_cannot_be_compiled(tmp_path):
    """The error has the kernel's text; eager's own kernels are there from before."""
    finish(start(tmp_path, before="torch.equal(expected, expected); raise SystemExit(print(0, 0))"))
    missing = {"RUSHLIGHT_PLUGIN": "/nonexistent"}
    text = error_of(start(tmp_path, **missing))
    assert "RuntimeError" in text and "could not be compiled" in text and "/nonexistent" in text
    assert "A report needs this text:\nkernel" in text and "store b0" in text
    assert "RUSHLIGHT_PASSES=-fusion" in text
    # Eager goes on where the user asked for it, and says so.
    asked = "import rushlight._dynamo as d; d.config.suppress_errors = True"
    process = start(tmp_path, before=asked, **missing)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0 and "runs operator by operator" in err and out.split()[0] == "0"
