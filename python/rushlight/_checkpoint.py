"""The files of save and load: a zip with a pickle and one record a storage, as PyTorch writes them.

Names of this package are written as PyTorch's, and read as this package's, so that files go both
ways.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from typing import BinaryIO

import rushlight as torch
from rushlight._serialization_options import get_crc32_options, get_default_mmap_options
from rushlight.storage import TypedStorage, UntypedStorage

_ALIGNMENT = 64  # of records in the file, so that they can be mapped
_ZIP64_LIMIT = (1 << 31) - 1
_LOCAL_HEADER = 30

# Where PyTorch keeps what is elsewhere here.
_MOVED = {
    ("rushlight.nn.parameter", "_rebuild_parameter"): "torch._utils",
    ("rushlight.nn.parameter", "_rebuild_parameter_with_state"): "torch._utils",
    ("rushlight._tensor_state", "_rebuild_from_type_v2"): "torch._tensor",
}
_MOVED_BACK = {(module, name): own_module for (own_module, name), module in _MOVED.items()}


def written_name(module: str, name: str) -> str:
    """The module that a name of this package has in a file."""
    if (module, name) in _MOVED:
        return _MOVED[module, name]
    if module == "rushlight" or module.startswith("rushlight."):
        return "torch" + module.removeprefix("rushlight").replace("._C", "")
    return module


def own_name(module: str, name: str) -> str:
    """The module of this package that a file's name means."""
    if (module, name) in _MOVED_BACK:
        return _MOVED_BACK[module, name]
    if module == "torch" or module.startswith("torch."):
        return "rushlight" + module.removeprefix("torch")
    return module


class Pickler(pickle._Pickler):
    """Pickles to a file under PyTorch's names; storages are handed to `store`."""

    dispatch = pickle._Pickler.dispatch.copy()

    def __init__(self, file: BinaryIO, protocol: int, store: Callable[[object], tuple]) -> None:
        super().__init__(file, protocol)
        self._store = store

    def persistent_id(self, obj: object) -> object:
        if isinstance(obj, (TypedStorage, UntypedStorage)):
            return self._store(obj)
        return None

    def save_global(self, obj: object, name: str | None = None) -> None:
        if isinstance(obj, torch.dtype):
            module, name = "rushlight", str(obj).removeprefix("torch.")
        else:
            name = name or getattr(obj, "__qualname__", None) or obj.__name__
            module = pickle.whichmodule(obj, name)
        written = written_name(module, name)
        if written == module or "." in name:
            super().save_global(obj, name)
            return
        self.write(pickle.GLOBAL + f"{written}\n{name}\n".encode())
        self.memoize(obj)

    def _save_type(self, obj: type) -> None:
        if written_name(obj.__module__, obj.__qualname__) == obj.__module__:
            self.save_type(obj)
        else:
            self.save_global(obj)

    dispatch[type] = _save_type
    dispatch[type(written_name)] = save_global


class CodeUnpickler(pickle.Unpickler):
    """Python's own unpickler under PyTorch's names: runs whatever code the file asks for."""

    def __init__(
        self, file: BinaryIO, persistent_load: Callable[[object], object], **options: object
    ) -> None:
        super().__init__(file, **options)
        self._resolve = persistent_load

    def persistent_load(self, saved_id: object) -> object:
        return self._resolve(saved_id)

    def find_class(self, module: str, name: str) -> object:
        if module == "torch" and isinstance(getattr(torch, name, None), torch.dtype):
            return getattr(torch, name)
        if module in ("torch", "torch.storage") and name.endswith("Storage"):
            from rushlight import storage

            return getattr(storage, name)
        return super().find_class(own_name(module, name), name)


# ---- Writing -----------------------------------------------------------------------------------
@contextlib.contextmanager
def replaced_file(path: str) -> Iterator[BinaryIO]:
    """A file to write that takes the place of `path` only when all of it is on disk."""
    folder, name = os.path.split(os.path.abspath(path))
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as device:  # a pipe or device: there is nothing to replace
            yield device
        return
    descriptor, temporary = tempfile.mkstemp(prefix=f".{name}.", suffix=".tmp", dir=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.chmod(temporary, _permissions(path))
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    with contextlib.suppress(OSError):
        directory = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def _permissions(path: str) -> int:
    """Those of the file that is there, or what a new file gets."""
    try:
        return os.stat(path).st_mode & 0o7777
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


class ZipWriter:
    """Writes records, uncompressed, each on a boundary."""

    def __init__(self, file: BinaryIO, folder: str) -> None:
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True)
        self._folder = folder

    def __enter__(self) -> ZipWriter:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._zip.close()
            return
        # The directory could not be written any more: drop it, the first error counts.
        self._zip._didModify = False
        with contextlib.suppress(OSError, ValueError):
            self._zip.close()

    def write(self, name: str, data: bytes | memoryview) -> None:
        info = zipfile.ZipInfo(f"{self._folder}/{name}", date_time=(1980, 1, 1, 0, 0, 0))
        zip64 = 20 if len(data) > _ZIP64_LIMIT else 0
        start = self._zip.start_dir + _LOCAL_HEADER + len(info.filename.encode()) + zip64
        padding = -(start + 4) % _ALIGNMENT
        info.extra = b"FB" + padding.to_bytes(2, "little") + b"Z" * padding
        if get_crc32_options():
            self._zip.writestr(info, data)
            return
        # As zipfile does it, with 0 for the checksum, which says that there is none.
        info.file_size = info.compress_size = len(data)
        info.CRC, info.header_offset = 0, self._zip.start_dir
        file = self._zip.fp
        file.seek(self._zip.start_dir)
        file.write(info.FileHeader(zip64 != 0))
        file.write(data)
        self._zip.start_dir = file.tell()
        self._zip.filelist.append(info)
        self._zip.NameToInfo[info.filename] = info
        self._zip._didModify = True


# ---- Reading -----------------------------------------------------------------------------------
class ZipReader:
    """Reads records by the names they have below the file's one folder."""

    def __init__(self, file: BinaryIO, path: str | None) -> None:
        try:
            self._zip = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, NotImplementedError) as error:
            raise RuntimeError(
                f"load: failed reading the zip file {path or ''}: {error} (it is corrupt or cut "
                "short)"
            ) from error
        self._path = path
        self._mapping: memoryview | None = None
        names = self._zip.namelist()
        pickles = [name for name in names if name.endswith("/data.pkl") or name == "data.pkl"]
        if len(pickles) != 1:
            raise RuntimeError("load: the zip file holds no data.pkl: it is no checkpoint")
        self._folder = pickles[0].removesuffix("data.pkl")

    def has(self, name: str) -> bool:
        return self._folder + name in self._zip.NameToInfo

    def read(self, name: str) -> bytes:
        try:
            with self._open(self._folder + name) as record:
                return record.read()
        except (KeyError, zipfile.BadZipFile, EOFError, OSError) as error:
            raise RuntimeError(f"load: cannot read record {name}: {error}") from error

    def storage(self, name: str, size: int) -> UntypedStorage:
        """The record as a fresh storage; RuntimeError where it does not have `size` bytes."""
        info = self._info(name, size)
        made = UntypedStorage(size)
        try:
            with self._open(info) as record, memoryview(made) as view:
                filled = 0
                while filled < size:
                    taken = record.readinto(view[filled:])
                    if not taken:
                        raise EOFError("it is cut short")
                    filled += taken
                record.read(1)  # reaching the end checks the checksum
        except (zipfile.BadZipFile, EOFError, OSError) as error:
            raise RuntimeError(f"load: cannot read record {name}: {error}") from error
        return made

    def mapped_storage(self, name: str, size: int) -> UntypedStorage:
        """The record as a storage over the mapped file; writes to it stay in memory."""
        info = self._info(name, size)
        if size == 0 or info.compress_type != zipfile.ZIP_STORED:
            return self.storage(name, size)
        with self._zip.open(info):  # checks that the local header is there
            pass
        data = self._bytes()
        at = info.header_offset
        lengths = data[at + 26 : at + 30]
        start = at + _LOCAL_HEADER
        start += int.from_bytes(lengths[:2], "little") + int.from_bytes(lengths[2:], "little")
        if start + size > len(data):
            raise RuntimeError(f"load: record {name} is cut short")
        return torch.frombuffer(data[start : start + size], dtype=torch.uint8).untyped_storage()

    def _open(self, record: str | zipfile.ZipInfo) -> zipfile.ZipExtFile:
        opened = self._zip.open(record)
        if opened._expected_crc == 0:
            opened._expected_crc = None  # written without a checksum: see set_crc32_options
        return opened

    def _info(self, name: str, size: int) -> zipfile.ZipInfo:
        info = self._zip.NameToInfo.get(self._folder + name)
        if info is None:
            raise RuntimeError(f"load: the file has no record {name}")
        if info.file_size != size:
            raise RuntimeError(
                f"load: record {name} has {info.file_size} bytes, its tensors need {size}"
            )
        return info

    def _bytes(self) -> memoryview:
        if self._mapping is None:
            import mmap

            flags = get_default_mmap_options()
            with open(self._path, "r+b" if flags == mmap.MAP_SHARED else "rb") as file:
                both = mmap.PROT_READ | mmap.PROT_WRITE
                mapping = mmap.mmap(file.fileno(), 0, flags=flags, prot=both)
            self._mapping = memoryview(mapping)
        return self._mapping
