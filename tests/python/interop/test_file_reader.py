"""Records of files that torch.save wrote."""

import io

import pytest
import rushlight as torch


@pytest.fixture
def path(tmp_path):
    torch.save({"a": torch.arange(3.0), "b": torch.ones(2)}, tmp_path / "weights.pt")
    return str(tmp_path / "weights.pt")


def test_records_by_name(path):
    reader = torch.PyTorchFileReader(path)
    assert {"data.pkl", "data/0", "data/1", "version"} <= set(reader.get_all_records())
    assert reader.has_record("data/0") and not reader.has_record("data/9")
    assert reader.get_record_size("data/0") == 12
    assert reader.get_record("version").strip().isdigit()
    found = reader.get_storage_from_record("data/0", 3, torch.float32)
    assert found.tolist() == [0, 1, 2]
    with pytest.raises(RuntimeError, match="failed locating file data/9: file not found"):
        reader.get_record("data/9")


def test_offsets_are_those_of_the_bytes(path):
    with open(path, "rb") as file:
        whole = file.read()
    for source in (path, io.BytesIO(whole)):
        reader = torch.PyTorchFileReader(source)
        for name in ("data/0", "data/1", "data.pkl"):
            start, size = reader.get_record_offset(name), reader.get_record_size(name)
            assert whole[start : start + size] == reader.get_record(name)
