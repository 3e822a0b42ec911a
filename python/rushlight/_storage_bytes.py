"""What storages do with plain bytes: taking them from buffers, and turning their order round."""

from __future__ import annotations

import sys
from typing import NoReturn

import rushlight as torch


def no_device(kind: str) -> NoReturn:
    if kind == "cuda":
        raise AssertionError(
            "Torch not compiled with CUDA enabled: there are the devices cpu and meta"
        )
    raise AssertionError(f"{kind.upper()} device module is not loaded")


def bytes_of(
    buffer: object,
    byte_order: str | None = None,
    count: int = -1,
    offset: int = 0,
    dtype: torch.dtype | None = None,
) -> bytearray:
    """The elements in a buffer, as from_buffer takes them, in this machine's byte order."""
    if dtype is None:
        raise RuntimeError("from_buffer: argument 'dtype' cannot be None")
    if byte_order is None and dtype.itemsize > 1:
        raise RuntimeError("from_buffer: function missing required argument 'byte_order' (pos 2)")
    if byte_order not in ("big", "little", "native", None):
        raise ValueError(
            f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')"
        )
    with memoryview(buffer) as view, view.cast("B") as data:
        if not 0 <= offset <= len(data):
            raise ValueError(
                "offset must be non-negative and no greater than buffer length "
                f"({len(data)}), but got {offset}"
            )
        size = len(data) - offset
        if count < 0 and size % dtype.itemsize:
            raise ValueError(
                f"buffer size ({size}) must be a multiple of element size ({dtype.itemsize})"
            )
        wanted = size if count < 0 else count * dtype.itemsize
        if wanted > size:
            raise ValueError(
                f"buffer has only {size // dtype.itemsize} elements after offset {offset}, but "
                f"specified a size of {count}"
            )
        taken = bytearray(data[offset : offset + wanted])
    if byte_order not in (sys.byteorder, "native", None):
        swap(taken, dtype)
    return taken


def swap(data: bytearray | memoryview, dtype: torch.dtype) -> None:
    """Reverses the bytes of each number, of complex ones of each part."""
    width = dtype.to_real().itemsize if dtype.is_complex else dtype.itemsize
    columns = [bytes(data[at::width]) for at in range(width)]
    for at in range(width):
        data[at::width] = columns[width - 1 - at]
