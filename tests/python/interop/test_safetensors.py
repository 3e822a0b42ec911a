"""Safetensors files from Python."""

import pytest
import rushlight as torch
from rushlight import nn
from rushlight.safetensors import (
    SafetensorError,
    load,
    load_file,
    load_model,
    safe_open,
    save,
    save_file,
    save_model,
)


@pytest.fixture
def tensors():
    return {
        "w": torch.arange(6.0).reshape(2, 3),
        "half": torch.ones(3, dtype=torch.bfloat16),
        "n": torch.tensor(7),
    }


def test_files_round_trip(tmp_path, tensors):
    path = tmp_path / "x.safetensors"
    save_file(tensors, path, metadata={"format": "pt"})
    loaded = load_file(path)
    assert list(loaded) == sorted(tensors)
    for name, tensor in tensors.items():
        assert loaded[name].dtype is tensor.dtype
        assert loaded[name].tolist() == tensor.tolist()
    with safe_open(path, framework="pt") as file:
        assert file.keys() == sorted(tensors)
        assert file.metadata() == {"format": "pt"}
        part = file.get_slice("w")
        assert part.get_shape() == [2, 3]
        assert part.get_dtype() == "F32"
        assert part[:, 1].tolist() == [1.0, 4.0]
        with pytest.raises(SafetensorError, match="does not contain tensor none"):
            file.get_tensor("none")


def test_bytes_are_those_of_the_reference(tensors, theirs):
    reference = pytest.importorskip("safetensors.torch", reason="safetensors is not installed")
    same = {
        "w": theirs.arange(6.0).reshape(2, 3),
        "half": theirs.ones(3, dtype=theirs.bfloat16),
        "n": theirs.tensor(7),
    }
    assert save(tensors, {"format": "pt"}) == reference.save(same, {"format": "pt"})
    assert load(reference.save(same))["w"].tolist() == same["w"].tolist()


def test_tensors_that_share_memory_are_refused(tensors):
    with pytest.raises(RuntimeError, match="Some tensors share memory"):
        save({"a": tensors["w"], "b": tensors["w"][1:]})
    with pytest.raises(ValueError, match="non contiguous tensor: `t`"):
        save({"t": tensors["w"].t()})


def test_corrupt_files_are_refused(tmp_path, tensors):
    path = tmp_path / "x.safetensors"
    save_file(tensors, path)
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    with pytest.raises(SafetensorError, match="cut short"):
        load_file(path)
    with pytest.raises(FileNotFoundError):
        load_file(tmp_path / "none")


def test_models_with_tied_parameters_round_trip(tmp_path):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(3, 3)
            self.second = nn.Linear(3, 3)
            self.second.weight = self.first.weight

    model, other = Tied(), Tied()
    save_model(model, str(tmp_path / "m.safetensors"))
    assert load_model(other, tmp_path / "m.safetensors") == ([], [])
    assert other.second.weight.tolist() == model.first.weight.tolist()
