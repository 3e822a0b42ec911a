"""Byte order, checksums, mapping, places and left-out bytes of saved files."""

from __future__ import annotations

import io
import mmap
import types
import zipfile

import pytest
import rushlight as torch
from rushlight import serialization


def saved(value) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return file


def rewritten(file: io.BytesIO, change) -> io.BytesIO:
    """The file with each record's bytes as `change(name, bytes)` gives them; None leaves it out."""
    made = io.BytesIO()
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            data = change(name.partition("/")[2], old.read(name))
            if data is not None:
                new.writestr(name, data)
    made.seek(0)
    return made


def test_files_of_the_other_byte_order():
    x = torch.tensor([1, 2, -3], dtype=torch.int16)

    def turn(name, data):
        if name == "byteorder":
            return b"big"
        return b"".join(data[i : i + 2][::-1] for i in range(0, 6, 2)) if name[:4] == "data" \
            and name != "data.pkl" else data  # fmt: skip

    assert torch.load(rewritten(saved(x), turn)).tolist() == [1, 2, -3]
    silent = rewritten(saved(x), lambda n, d: None if n == "byteorder" else turn(n, d))
    serialization.set_default_load_endianness(serialization.LoadEndianness.BIG)
    try:
        assert torch.load(silent).tolist() == [1, 2, -3]
    finally:
        serialization.set_default_load_endianness(None)
    silent.seek(0)
    assert torch.load(silent).tolist() == [256, 512, -513]
    with pytest.raises(ValueError, match="Unknown endianness type: middle"):
        torch.load(rewritten(saved(x), lambda n, d: b"middle" if n == "byteorder" else d))
    with pytest.raises(TypeError, match="LoadEndianness or None, got int"):
        serialization.set_default_load_endianness(3)


def test_files_without_checksums():
    assert serialization.get_crc32_options()
    serialization.set_crc32_options(False)
    try:
        file = saved(torch.arange(100.0))
    finally:
        serialization.set_crc32_options(True)
    with zipfile.ZipFile(file) as archive:
        assert {info.CRC for info in archive.infolist()} == {0}
    file.seek(0)
    assert torch.load(file).sum() == 4950
    # With checksums, a changed byte is found.
    broken = bytearray(saved(torch.arange(100.0)).getvalue())
    broken[broken.index(torch.tensor([98.0, 99.0]).numpy().tobytes())] ^= 1
    with pytest.raises(RuntimeError, match="cannot read record"):
        torch.load(io.BytesIO(broken))


def test_mapping_that_reaches_the_file(tmp_path):
    path = tmp_path / "x.pt"
    torch.save(torch.zeros(4), path)
    torch.load(path, mmap=True)[0] = 1
    assert torch.load(path)[0] == 0 and serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    with serialization.set_default_mmap_options(mmap.MAP_SHARED):
        torch.load(path, mmap=True)[1] = 2
    assert torch.load(path, mmap=True).tolist() == [0.0, 2.0, 0.0, 0.0]
    assert serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    with pytest.raises(ValueError, match="but got 7"):
        serialization.set_default_mmap_options(7)


def test_bytes_left_out():
    x = torch.ones(3)
    with serialization.skip_data():
        empty = saved({"x": x})
        assert torch.load(saved({"x": x}))["x"].shape == (3,)
    assert torch.load(empty)["x"].tolist() == [0.0, 0.0, 0.0]
    assert torch.load(saved(x)).tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(NotImplementedError, match="materialize_fake_tensors"):
        serialization.skip_data(materialize_fake_tensors=True)


def test_places_of_packages(monkeypatch):
    from rushlight import _restore_locations

    monkeypatch.setattr(_restore_locations, "_packages", list(_restore_locations._packages))
    seen = []

    def restore(storage, location):
        seen.append(location)
        return storage if location == "mine" else None

    serialization.register_package(5, lambda storage: "mine", restore)
    assert serialization.location_tag(torch.UntypedStorage(1)) == "mine"
    assert torch.load(saved(torch.ones(2))).tolist() == [1.0, 1.0] and seen == ["mine"]
    monkeypatch.undo()
    assert torch.load(saved(torch.ones(2)), map_location={"cpu": "meta"}).is_meta
    with pytest.raises(RuntimeError, match="tagged with mine"):
        serialization.default_restore_location(torch.UntypedStorage(1), "mine")


def test_places_that_are_not_there():
    storage = torch.UntypedStorage(1)
    assert serialization.location_tag(storage) == "cpu"
    assert serialization.default_restore_location(storage, "cpu") is storage
    assert serialization.default_restore_location(storage, "meta").device.type == "meta"
    with pytest.raises(RuntimeError, match=r"on device cuda:0.*map_location"):
        serialization.default_restore_location(storage, "cuda:0")
    with pytest.raises(RuntimeError, match="HPU device module is not registered"):
        serialization.validate_hpu_device("hpu")


def test_names_of_storages():
    assert serialization.StorageType("HalfStorage").dtype is torch.float16
    with pytest.raises(KeyError, match='"X" is not recognized'):
        serialization.StorageType("X").dtype
    assert serialization.normalize_storage_type(torch.FloatStorage) is torch.FloatStorage
    kind = serialization.storage_to_tensor_type(torch.FloatStorage([1.0]))
    assert kind is torch.FloatTensor


def test_versions_of_modules():
    check = serialization.check_module_version_greater_or_equal
    module = types.ModuleType("some")
    module.__version__ = "1.10.2"
    assert check(module, (1, 9)) and not check(module, (2, 0))
    module.__version__ = "new"
    with pytest.raises(RuntimeError, match="'some' module version string is malformed 'new'"):
        check(module, (1, 9))
    with pytest.warns(UserWarning, match="malformed"):
        assert check(module, (1, 9), error_if_malformed=False)


def test_folders_that_go_away():
    import os

    with serialization.mkdtemp() as path:
        assert os.path.isdir(path)
    assert not os.path.exists(path)


def test_storage_of_annotations():
    with pytest.raises(NotImplementedError, match="holds no bytes"):
        torch.types.Storage().nbytes()
