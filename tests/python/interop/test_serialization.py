"""save, load, pickle and copies."""

import copy
import io
import os
import pickle
import zipfile
from collections import OrderedDict

import pytest
import rushlight as torch
from rushlight import nn


def _round_trip(value, **options):
    buffer = io.BytesIO()
    torch.save(value, buffer)
    buffer.seek(0)
    return torch.load(buffer, **options)


def test_every_dtype_survives(tmp_path):
    names = "bool uint8 int8 uint16 int16 uint32 int32 uint64 int64 float8_e4m3fn float8_e5m2"
    names += " float16 bfloat16 float32 float64 complex64 complex128"
    tensors = {n: torch.arange(5).to(getattr(torch, n)) for n in names.split()}
    torch.save(tensors, tmp_path / "all.pt")
    for mapped in (False, True):
        loaded = torch.load(tmp_path / "all.pt", mmap=mapped)
        for name, tensor in tensors.items():
            assert loaded[name].dtype is tensor.dtype
            assert loaded[name].tolist() == tensor.tolist()


def test_views_share_memory_after_loading():
    base = torch.arange(6.0)
    a, b = _round_trip([base[:4], base[2:].t()])
    a[3] = 99
    assert b[1] == 99


def test_containers_and_numbers_survive():
    value = OrderedDict(
        a=[1, -(2**70), 1.5, True, None, "text", b"bytes", (1, 2), {3}, 1j],
        size=torch.Size([2, 3]),
        dtype=torch.float16,
        device=torch.device("cpu"),
    )
    assert _round_trip(value) == value


def test_modules_state_survives(tmp_path):
    model = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4))
    torch.save(model.state_dict(), tmp_path / "m.pt")
    other = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4))
    other.load_state_dict(torch.load(tmp_path / "m.pt"))
    for mine, theirs in zip(model.parameters(), other.parameters(), strict=True):
        assert mine.tolist() == theirs.tolist()


def test_files_go_to_pytorch_and_back(tmp_path, theirs):
    state = OrderedDict(
        w=torch.arange(6.0).reshape(2, 3).t(), n=torch.tensor(3), p=nn.Parameter(torch.ones(2))
    )
    torch.save({"state": state, "step": 7}, tmp_path / "mine.pt")
    loaded = theirs.load(tmp_path / "mine.pt", weights_only=True)
    assert loaded["step"] == 7
    assert loaded["state"]["w"].tolist() == state["w"].tolist()
    assert loaded["state"]["p"].requires_grad
    model = theirs.nn.Linear(3, 2)
    for legacy in (False, True):
        theirs.save(
            {"model": model.state_dict(), "half": theirs.ones(3).half()},
            tmp_path / "theirs.pt",
            _use_new_zipfile_serialization=not legacy,
        )
        loaded = torch.load(tmp_path / "theirs.pt")
        assert loaded["model"]["weight"].tolist() == model.weight.tolist()
        assert loaded["half"].dtype is torch.float16


class _Stranger:
    def __reduce__(self):
        return os.system, ("echo this must not run",)


def test_code_is_not_run():
    buffer = io.BytesIO()
    torch.save({"x": torch.ones(1), "bad": _Stranger()}, buffer)
    buffer.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        torch.load(buffer)


class Config:
    def __init__(self):
        self.width = 3


def test_classes_can_be_allowed():
    buffer = io.BytesIO()
    torch.save(Config(), buffer)
    buffer.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="add_safe_globals"):
        torch.load(buffer)
    buffer.seek(0)
    with torch.serialization.safe_globals([Config]):
        assert torch.load(buffer).width == 3
    buffer.seek(0)
    assert torch.load(buffer, weights_only=False).width == 3


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.99])
def test_short_files_are_refused(tmp_path, keep):
    path = tmp_path / "x.pt"
    torch.save({"x": torch.arange(1000)}, path)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * keep)])
    with pytest.raises(RuntimeError, match="corrupt or cut short"):
        torch.load(path)


def test_records_of_the_wrong_size_are_refused(tmp_path):
    path = tmp_path / "x.pt"
    torch.save({"x": torch.arange(4)}, path)
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(tmp_path / "y.pt", "w") as new:
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, data[:8] if name.endswith("data/0") else data)
    with pytest.raises(RuntimeError, match="has 8 bytes, its tensors need 32"):
        torch.load(tmp_path / "y.pt")


class _Unpicklable:
    def __reduce__(self):
        raise OSError("No space left on device")


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.pt"
    torch.save({"x": torch.arange(4)}, path)
    with pytest.raises(OSError, match="No space left"):
        torch.save({"y": torch.ones(3), "bad": _Unpicklable()}, path)
    assert torch.load(path)["x"].tolist() == [0, 1, 2, 3]
    assert os.listdir(tmp_path) == ["x.pt"]


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(RuntimeError, match="Parent directory .* does not exist"):
        torch.save(1, tmp_path / "none" / "x.pt")


def test_storages_go_where_they_are_sent():
    loaded = _round_trip({"x": torch.ones(3)}, map_location="meta")
    assert loaded["x"].is_meta


def test_pickle_and_copies():
    x = torch.arange(4.0, requires_grad=True)
    again = pickle.loads(pickle.dumps(x))
    assert again.tolist() == x.tolist()
    assert again.requires_grad
    base = torch.arange(4.0)
    one, other = copy.deepcopy([base, base[1:]])
    one[1] = 50
    assert other[0] == 50
    assert base[1] == 1
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(x * 2)
