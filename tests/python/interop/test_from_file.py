"""Tensors over the bytes of files, and what a checkpoint asks for."""

import argparse
import datetime

import pytest
import rushlight as torch


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "numbers"
    made.write_bytes(bytes(range(16)))
    return made


def test_bytes_of_a_file(path):
    found = torch.from_file(str(path), size=4, dtype=torch.int32)
    assert found.tolist()[0] == 50462976 and found.dtype == torch.int32
    copied = torch.from_file(str(path), size=4, dtype=torch.uint8)
    copied[0] = 77
    assert path.read_bytes()[0] == 0
    shared = torch.from_file(str(path), shared=True, size=4, dtype=torch.uint8)
    shared[0] = 9
    assert path.read_bytes()[0] == 9
    assert torch.from_file(str(path)).shape == (0,)


def test_files_are_made_where_they_are_shared(tmp_path):
    path = tmp_path / "new"
    assert torch.from_file(str(path), shared=True, size=3).tolist() == [0, 0, 0]
    assert path.stat().st_size == 12


def test_mistakes_of_files(path):
    with pytest.raises(RuntimeError, match="is smaller than the required mapping size <1600>"):
        torch.from_file(str(path), size=400)
    with pytest.raises(RuntimeError, match="unable to open file <.*none> in read-only mode"):
        torch.from_file(str(path.parent / "none"), size=1)


@pytest.mark.parametrize("protocol", [2, 4])
def test_what_a_checkpoint_asks_for(tmp_path, protocol):
    path = tmp_path / "saved.pt"
    one, other = argparse.Namespace(a=1), argparse.Namespace(b=2)
    content = {"t": torch.ones(2), "o": [one, other], "d": datetime.date(2026, 1, 1)}
    torch.save(content, path, pickle_protocol=protocol)
    found = torch.serialization.get_unsafe_globals_in_checkpoint(path)
    assert found == ["argparse.Namespace", "datetime.date"]
    with torch.serialization.safe_globals([argparse.Namespace, datetime.date]):
        assert torch.serialization.get_unsafe_globals_in_checkpoint(path) == []
    (tmp_path / "other").write_bytes(b"nothing")
    with pytest.raises(ValueError, match="Expected input to be a checkpoint returned by"):
        torch.serialization.get_unsafe_globals_in_checkpoint(tmp_path / "other")


def test_states_of_accelerators_that_are_not_there():
    checkpoint = torch.utils.checkpoint
    assert checkpoint.get_device_states(torch.ones(1), [torch.ones(2)]) == ([], [])
    assert checkpoint.set_device_states([], []) is None
    assert torch.profiler.kineto_available()
