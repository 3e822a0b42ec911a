"""Files of torch.save, read record by record."""

from __future__ import annotations

import struct
import zipfile
from typing import IO

import rushlight as torch

_LOCAL_HEADER = struct.Struct("<26xHH")  # of a zip archive's entry; lengths of name and extra field


class PyTorchFileReader:
    """The records of a file that torch.save wrote, by name, such as "data.pkl" or "data/0".

    Raises RuntimeError for a record that there is not.
    """

    def __init__(self, file: str | IO[bytes]) -> None:
        self._archive = zipfile.ZipFile(file)
        names = self._archive.namelist()
        self._root = names[0].split("/")[0] + "/" if names else ""

    def _entry(self, name: str) -> zipfile.ZipInfo:
        try:
            return self._archive.getinfo(self._root + name)
        except KeyError:
            raise RuntimeError(
                f"PytorchStreamReader failed locating file {name}: file not found"
            ) from None

    def get_all_records(self) -> list[str]:
        """The names of all records."""
        return [name.removeprefix(self._root) for name in self._archive.namelist()]

    def has_record(self, name: str) -> bool:
        """Whether there is a record of this name."""
        return self._root + name in self._archive.namelist()

    def get_record(self, name: str) -> bytes:
        """The bytes of a record."""
        return self._archive.read(self._entry(name))

    def get_record_size(self, name: str) -> int:
        """How many bytes a record has."""
        return self._entry(name).file_size

    def get_record_offset(self, name: str) -> int:
        """Where in the file a record's bytes begin."""
        start = self._entry(name).header_offset
        stream = self._archive.fp
        before = stream.tell()
        stream.seek(start)
        name_length, extra_length = _LOCAL_HEADER.unpack(stream.read(_LOCAL_HEADER.size))
        stream.seek(before)
        return start + _LOCAL_HEADER.size + name_length + extra_length

    def get_storage_from_record(self, name: str, numel: int, dtype: torch.dtype) -> torch.Tensor:
        """A record's first `numel` elements of this dtype."""
        return torch.frombuffer(bytearray(self.get_record(name)), dtype=dtype, count=numel)

    def serialization_id(self) -> str:
        """What names the file's contents, or "" in files of before there was such a record."""
        id_record = ".data/serialization_id"
        return self.get_record(id_record).decode() if self.has_record(id_record) else ""
