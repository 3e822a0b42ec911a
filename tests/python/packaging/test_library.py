"""The shared library itself."""

from __future__ import annotations

import struct
from pathlib import Path

import rushlight

PT_TLS = 7


def thread_local_bytes(path: Path) -> int:
    """Size of the thread-local segment of a 64-bit little-endian ELF file."""
    data = path.read_bytes()
    assert data[:6] == b"\x7fELF\x02\x01"
    (table,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    for i in range(count):
        header = struct.unpack_from("<IIQQQQQQ", data, table + i * size)
        if header[0] == PT_TLS:
            return header[6]
    return 0


def test_leaves_thread_local_room_to_other_libraries() -> None:
    """The loader keeps about 1.6 kB for all libraries that are opened late."""
    package = Path(rushlight.__file__).parent
    found = [*package.rglob("librushlight.so*"), *package.parents[1].glob("src/librushlight.so")]
    assert found
    assert thread_local_bytes(found[0]) <= 512
