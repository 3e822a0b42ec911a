"""Names for types in annotations."""

from __future__ import annotations

import builtins
import os
from collections.abc import Sequence
from typing import IO, Any

from rushlight._C import Generator, Size, Tensor, device, dtype, layout, memory_format  # noqa: F401

Number = int | float | bool
_TensorOrTensors = Tensor | Sequence[Tensor]
Device = device | str | int | None
FileLike = str | os.PathLike[str] | IO[bytes]
_dtype = dtype
_device = device
_size = Size | list[int] | tuple[int, ...]
_layout = layout
_int = builtins.int
_float = builtins.float
_bool = builtins.bool


class Storage:
    """What annotations say of storages, typed or not: their methods, none of which is here."""

    _cdata: int
    device: _device
    dtype: _dtype

    def _absent(self) -> Any:
        raise NotImplementedError("types.Storage is a name for annotations: it holds no bytes")

    def __deepcopy__(self, memo: dict) -> Storage:
        return self._absent()

    def _new_shared(self, size: int) -> Storage:
        return self._absent()

    def element_size(self) -> int:
        """Bytes an element."""
        return self._absent()

    def is_shared(self) -> bool:
        """Whether other processes can see the bytes."""
        return self._absent()

    def share_memory_(self) -> Storage:
        """Moves the bytes to memory that other processes can see."""
        return self._absent()

    def nbytes(self) -> int:
        """How many bytes there are."""
        return self._absent()

    def cpu(self) -> Storage:
        """The storage in CPU memory."""
        return self._absent()

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return self._absent()

    def from_file(self, filename: str, shared: bool = False, nbytes: int = 0) -> Storage:
        """A storage over a file's bytes."""
        return self._absent()
