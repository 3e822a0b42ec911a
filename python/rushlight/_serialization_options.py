"""Settings of save and load: byte order, checksums, mapping, and leaving the bytes out."""

from __future__ import annotations

import enum
import mmap
import sys

__all__ = [
    "LoadEndianness",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
]


class LoadEndianness(enum.Enum):
    """The byte order of files that do not say it."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


_endianness: LoadEndianness | None = None
_computes_crc32 = True
_mmap_flags = mmap.MAP_PRIVATE
_skips_data = False


def get_default_load_endianness() -> LoadEndianness | None:
    """What set_default_load_endianness was given last; None: this machine's byte order."""
    return _endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Sets the byte order of files that do not say it, as those of old versions do not."""
    global _endianness
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError(
            "Invalid argument type in function set_default_load_endianness: expected a "
            f"LoadEndianness or None, got {type(endianness).__name__}"
        )
    _endianness = endianness


def byte_order(written: bytes | None) -> str:
    """The byte order of a file, "little" or "big", from the record that says it, if there is one.

    ValueError for a record that says something else.
    """
    if written is None:
        chosen = {LoadEndianness.LITTLE: "little", LoadEndianness.BIG: "big"}
        return chosen.get(_endianness, sys.byteorder)
    if written not in (b"little", b"big"):
        raise ValueError(f"Unknown endianness type: {written.decode(errors='replace')}")
    return written.decode()


def get_crc32_options() -> bool:
    """Whether save writes a checksum for each record."""
    return _computes_crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Sets whether save writes a checksum for each record. Without, programs that unzip may say
    that the file is corrupt; load does not.
    """
    global _computes_crc32
    _computes_crc32 = bool(compute_crc32)


def get_default_mmap_options() -> int:
    """How load maps files: mmap.MAP_PRIVATE or mmap.MAP_SHARED."""
    return _mmap_flags


class set_default_mmap_options:
    """Sets how load maps files, at once; as a context manager, until its end.

    flags: mmap.MAP_PRIVATE (the default: what is written to tensors stays in memory) or
        mmap.MAP_SHARED (it reaches the file).
    """

    def __init__(self, flags: int) -> None:
        global _mmap_flags
        if flags not in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected "
                f"mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got {flags}"
            )
        self._before = _mmap_flags
        _mmap_flags = flags

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        global _mmap_flags
        _mmap_flags = self._before


def skips_data() -> bool:
    """Whether the bytes of storages are left out now."""
    return _skips_data


class skip_data:
    """A block in which save leaves zeros in place of the bytes of storages, and load does not read
    them: the elements of what it makes are not set.
    """

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        if materialize_fake_tensors:
            raise NotImplementedError(
                "skip_data: fake tensors are not saved, so materialize_fake_tensors must be False, "
                f"got {materialize_fake_tensors}"
            )

    def __enter__(self) -> None:
        global _skips_data
        self._before = _skips_data
        _skips_data = True

    def __exit__(self, *_: object) -> None:
        global _skips_data
        _skips_data = self._before
