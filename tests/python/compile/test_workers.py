"""Kernels compiled by other processes: they are the same, and a process that dies does no harm."""

import os
import pathlib
import stat
import subprocess
import sys
import textwrap

import pytest
import rushlight as torch
from rushlight import _inductor

PROGRAM = """
    import warnings
    import rushlight as torch
    from rushlight import _C
    warnings.simplefilter("always")
    x = torch.arange(12.0).reshape(3, 4)
    def f(x):
        y = x.sin() * 3 + x.cos()
        return (y.softmax(-1) - 0.5).exp(), y.sum(0) / 7
    expected = f(x)
    before = _C._kernel_cache_stats()["compiled"]
    found = torch.compile(f, options={"compile_threads": 2})(x)
    assert all(torch.equal(a, b) for a, b in zip(found, expected))
    stats = _C._kernel_cache_stats()
    print({**stats, "compiled": stats["compiled"] - before})
"""


def run(tmp_path, cache="cache", **environment):
    """What the program says of kernels, and its warnings."""
    path = os.pathsep.join(p for p in sys.path if p)
    environment = {
        **os.environ,
        "PYTHONPATH": path,
        "RUSHLIGHT_CACHE_DIR": str(tmp_path / cache),
        **environment,
    }
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return eval(done.stdout), done.stderr


def script(tmp_path, text):
    """A worker that is no worker."""
    path = tmp_path / "worker"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_workers_compile_and_share_the_cache(tmp_path):
    first, warned = run(tmp_path)
    assert first["compiled_by_workers"] == first["compiled"] > 0 and not warned
    assert 1 <= first["workers_started"] <= 2 and first["workers_lost"] == 0
    again, _ = run(tmp_path)
    assert again["compiled"] == again["workers_started"] == 0 and again["disk_hits"] > 0
    # The files are those that a process alone writes.
    run(tmp_path, cache="alone", RUSHLIGHT_WORKER="/nonexistent")
    files = {p.name: p.read_bytes() for p in pathlib.Path(tmp_path / "cache").iterdir()}
    assert files == {p.name: p.read_bytes() for p in pathlib.Path(tmp_path / "alone").iterdir()}


def test_a_worker_that_cannot_start(tmp_path):
    stats, warned = run(tmp_path, RUSHLIGHT_WORKER="/nonexistent")
    assert stats["compiled"] > 0 and stats["compiled_by_workers"] == 0
    assert warned.count("a compile worker cannot be started: /nonexistent: No such file") == 1


@pytest.mark.parametrize(
    "text", ["exit 1", "kill -9 $$", "read line <&3; kill -11 $$", "echo nonsense >&3; sleep 9"]
)
def test_a_worker_that_dies(tmp_path, text):
    stats, warned = run(tmp_path, RUSHLIGHT_WORKER=script(tmp_path, text))
    assert stats["compiled"] > 0 and stats["compiled_by_workers"] == 0
    assert "a compile worker died, or gave no answer" in warned
    assert 1 <= stats["workers_lost"] <= stats["compiled"]


def test_a_worker_that_hangs(tmp_path):
    worker = script(tmp_path, "exec sleep 100")
    stats, warned = run(tmp_path, RUSHLIGHT_WORKER=worker, RUSHLIGHT_WORKER_TIMEOUT="0.2")
    assert stats["compiled"] > 0 and "gave no answer" in warned


def test_an_answer_that_is_no_object(tmp_path):
    """Size, success, level, and a text in the place of an object: then compiling goes on here."""
    answer = r"printf '\003\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0abc' >&3; sleep 9"
    stats, warned = run(tmp_path, RUSHLIGHT_WORKER=script(tmp_path, answer))
    assert stats["compiled"] > 0


def test_the_setting():
    before = _inductor.config.compile_threads
    try:
        with _inductor.config.patch(compile_threads=3):
            assert torch._C._compile_workers() == 3
        assert torch._C._compile_workers() == (before if before > 1 else 0)
    finally:
        _inductor.config.compile_threads = before
