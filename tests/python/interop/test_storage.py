"""Storages: from buffers and files, conversions, byte order, and devices that are not there."""

from __future__ import annotations

import pytest
import rushlight as torch
from rushlight import TypedStorage, UntypedStorage

DATA = bytes(range(8))


def test_bytes_of_a_buffer():
    assert UntypedStorage.from_buffer(DATA, dtype=torch.uint8).tolist() == list(DATA)
    swapped = UntypedStorage.from_buffer(DATA, "big", dtype=torch.int16)
    assert swapped.tolist() == [1, 0, 3, 2, 5, 4, 7, 6]
    part = torch.StorageBase.from_buffer(DATA, "big", count=1, offset=2, dtype=torch.int16)
    assert part.tolist() == [3, 2]
    # Of complex numbers, each part is turned.
    parts = UntypedStorage.from_buffer(DATA, "big", dtype=torch.complex64)
    assert parts.tolist() == [3, 2, 1, 0, 7, 6, 5, 4]


def test_elements_of_a_buffer():
    typed = TypedStorage.from_buffer(DATA, dtype=torch.int16, byte_order="little")
    assert typed.tolist() == [256, 770, 1284, 1798] and typed.dtype is torch.int16
    assert torch.ShortStorage.from_buffer(DATA, byte_order="native").tolist()[0] == 256
    with pytest.raises(RuntimeError, match="'dtype' can only be specified"):
        torch.ShortStorage.from_buffer(DATA, byte_order="native", dtype=torch.int16)


@pytest.mark.parametrize(
    ("error", "text", "options"),
    [
        (RuntimeError, "'dtype' cannot be None", {"byte_order": "big"}),
        (RuntimeError, "missing required argument 'byte_order'", {"dtype": torch.int16}),
        (ValueError, "invalid byte_order 'x'", {"byte_order": "x", "dtype": torch.int16}),
        (ValueError, "multiple of element size", {"offset": 1}),
        (ValueError, r"no greater than buffer length \(8\), but got 9", {"offset": 9}),
        (ValueError, "only 3 elements after offset 2", {"offset": 2, "count": 4}),
    ],
)
def test_misuse_of_buffers(error, text, options):
    given = {"byte_order": "big", "dtype": torch.int16} if "offset" in options else {}
    with pytest.raises(error, match=text):
        UntypedStorage.from_buffer(DATA, **{**given, **options})


def test_a_file_that_is_written(tmp_path):
    path = str(tmp_path / "new")
    storage = torch.FloatStorage.from_file(path, True, 2)
    assert storage.filename == path and storage.untyped().is_shared()
    storage[1] = 2.0
    assert torch.FloatStorage.from_file(path, False, 2).tolist() == [0.0, 2.0]


def test_a_file_that_is_read(tmp_path):
    path = tmp_path / "bytes"
    path.write_bytes(DATA)
    storage = UntypedStorage.from_file(path, nbytes=4)
    storage[0] = 9
    assert storage.tolist() == [9, 1, 2, 3] and path.read_bytes() == DATA
    assert storage.filename is None and not storage.is_shared()
    with pytest.raises(RuntimeError, match="size <8> is smaller than the required mapping"):
        UntypedStorage.from_file(path, False, 9)
    with pytest.raises(RuntimeError, match="read-only mode"):
        UntypedStorage.from_file(tmp_path / "none", False, 1)
    with pytest.raises(RuntimeError, match="derived classes"):
        TypedStorage.from_file(path, False, 1)


@pytest.mark.parametrize("made", [UntypedStorage(DATA), TypedStorage(list(DATA), dtype=torch.int8)])
def test_conversions(made):
    assert made.short().dtype is torch.int16 and made.short().tolist() == list(DATA)
    assert made.bool().tolist() == [False] + [True] * 7
    assert made.complex_double().tolist()[3] == 3 + 0j
    assert made.float8_e5m2().dtype is torch.float8_e5m2
    assert made.half().type() == "torch.HalfStorage"
    assert made.float8_e4m3fn().type() == "torch.storage.TypedStorage"


def test_types_by_name():
    assert UntypedStorage(2).type() == "torch.storage.UntypedStorage"
    assert TypedStorage([1.5]).type("torch.IntStorage").tolist() == [1]
    with pytest.raises(ValueError, match=r"invalid type: 'torch\.Nothing'"):
        TypedStorage([1.5]).type("torch.Nothing")
    with pytest.raises(TypeError, match="bytes have no elements"):
        UntypedStorage(2).type(torch.float32)


def test_byteswap_in_place():
    storage = UntypedStorage(DATA)
    assert storage.byteswap(torch.int32) is None
    assert storage.tolist() == [3, 2, 1, 0, 7, 6, 5, 4]


def test_places():
    for storage in (UntypedStorage(2), TypedStorage([1.0])):
        assert storage.to(device="cpu") is storage and storage.get_device() is None
        assert not storage.is_pinned("cuda") and not storage.is_hpu
        with pytest.raises(AssertionError, match="META device module"):
            storage.to(device="meta")
        with pytest.raises(AssertionError, match="CUDA"):
            storage.cuda()
        with pytest.raises(RuntimeError, match="accelerator"):
            storage.pin_memory()


def test_legacy_classes_take_a_size_or_data_alone():
    assert torch.FloatStorage([1, 2]).tolist() == [1.0, 2.0]
    for options in ({"dtype": torch.int32}, {"device": "cpu"}):
        with pytest.raises(RuntimeError, match="cannot be specified"):
            torch.FloatStorage([1], **options)
    with pytest.raises(RuntimeError, match="got 2 positional arguments"):
        torch.FloatStorage(1, 2)


def test_tensors_over_storages():
    assert torch.ones(1).new(torch.FloatStorage([1.0, 2.0])).tolist() == [1.0, 2.0]
    x = torch.ones(2)
    assert x.new(other=x).tolist() == [1.0, 1.0] and x.new(size=(2, 3)).shape == (2, 3)
