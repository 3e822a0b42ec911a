"""State dicts, memory and files that are wrong: one mistake a test, with the text it gets."""

import os

import pytest
import rushlight as torch
from rushlight import nn


def test_missing_key():
    with pytest.raises(RuntimeError, match='Missing key.*"bias"'):
        nn.Linear(2, 2).load_state_dict({"weight": torch.ones(2, 2)})


def test_unexpected_key():
    state = dict(nn.Linear(2, 2).state_dict(), extra=torch.ones(1))
    with pytest.raises(RuntimeError, match='Unexpected key.*"extra"'):
        nn.Linear(2, 2).load_state_dict(state)


def test_shape_of_state():
    with pytest.raises(RuntimeError, match="size mismatch for weight"):
        nn.Linear(2, 2).load_state_dict(nn.Linear(3, 2).state_dict())


def test_optimizer_without_parameters():
    with pytest.raises(ValueError, match="empty parameter list"):
        torch.optim.SGD([], lr=0.1)


def test_negative_learning_rate():
    with pytest.raises(ValueError, match="Invalid learning rate: -1"):
        torch.optim.AdamW([torch.ones(1, requires_grad=True)], lr=-1)


def test_checkpoint_that_is_cut(tmp_path):
    path = tmp_path / "x.pt"
    torch.save({"a": torch.arange(1000)}, path)
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises((RuntimeError, ValueError, EOFError, OSError)):
        torch.load(path)


def test_old_checkpoint_survives_a_failed_save(tmp_path):
    path = tmp_path / "x.pt"
    torch.save({"a": torch.arange(3)}, path)

    class Broken:
        def __reduce__(self):
            raise ValueError("cannot be saved")

    with pytest.raises(ValueError, match="cannot be saved"):
        torch.save({"a": Broken()}, path)
    assert torch.load(path)["a"].tolist() == [0, 1, 2]
    assert os.listdir(tmp_path) == ["x.pt"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_full_disk():
    with pytest.raises(OSError):
        with open("/dev/full", "wb") as file:
            torch.save({"a": torch.zeros(1 << 16)}, file)


def test_more_memory_than_any_machine_has():
    with pytest.raises(RuntimeError, match="not enough memory"):
        torch.empty(1 << 50, dtype=torch.uint8)
