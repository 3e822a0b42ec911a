"""save and load: objects with tensors in files that PyTorch reads, and the reverse."""

from __future__ import annotations

import io
import os
import pickle
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import BinaryIO

import rushlight as torch
from rushlight import _checkpoint
from rushlight._restore_locations import (
    default_restore_location,
    location_tag,
    register_package,
    validate_cuda_device,
    validate_hpu_device,
)
from rushlight._serialization_options import (
    LoadEndianness,
    byte_order,
    get_crc32_options,
    get_default_load_endianness,
    get_default_mmap_options,
    set_crc32_options,
    set_default_load_endianness,
    set_default_mmap_options,
    skip_data,
    skips_data,
)
from rushlight.storage import _LEGACY_NAMES, TypedStorage, UntypedStorage

__all__ = [
    "LoadEndianness",
    "SourceChangeWarning",
    "StorageType",
    "add_safe_globals",
    "check_module_version_greater_or_equal",
    "clear_safe_globals",
    "default_restore_location",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "location_tag",
    "mkdtemp",
    "normalize_storage_type",
    "register_package",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
    "storage_to_tensor_type",
    "validate_cuda_device",
    "validate_hpu_device",
]

DEFAULT_PROTOCOL = 2
_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
_LEGACY_VERSION = 1001
MAP_LOCATION = object

_safe_globals: list[object] = []


class SourceChangeWarning(Warning):
    """Said where the source of a pickled class is not what it was."""


class StorageType:
    """A storage's class by the name that files have for it, with its dtype."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the elements. KeyError for a name that there is not."""
        for dtype, name in _LEGACY_NAMES.items():
            if name == self._name:
                return dtype
        raise KeyError(f'pickle storage type "{self._name}" is not recognized')

    def __str__(self) -> str:
        return f"StorageType(dtype={self.dtype})"


def normalize_storage_type(storage_type: type) -> type:
    """The class of storages on the CPU that has the name of this one."""
    return getattr(torch, storage_type.__name__)


def storage_to_tensor_type(storage: TypedStorage) -> type:
    """The legacy class of the tensors over a storage: FloatTensor of a FloatStorage."""
    return getattr(torch, storage.pickle_storage_type().replace("Storage", "Tensor"))


@contextmanager
def mkdtemp() -> Iterator[str]:
    """A new folder, removed at the end of the block with what is in it."""
    path = tempfile.mkdtemp()
    try:
        yield path
    finally:
        shutil.rmtree(path)


def check_module_version_greater_or_equal(
    module: ModuleType, req_version_tuple: tuple[int, ...], error_if_malformed: bool = True
) -> bool:
    """Whether a module's __version__ is at least (1, 2, 3). RuntimeError for a version of other
    form, or a warning and True where error_if_malformed is false.
    """
    parts = module.__version__.split(".")
    try:
        version = tuple(
            type(wanted)(part) for wanted, part in zip(req_version_tuple, parts, strict=False)
        )
        return version >= req_version_tuple
    except (TypeError, ValueError) as error:
        message = (
            f"'{module.__name__}' module version string is malformed '{module.__version__}' and "
            f"cannot be compared with tuple {req_version_tuple}"
        )
        if error_if_malformed:
            raise RuntimeError(message) from error
        warnings.warn(f"{message}, but continuing assuming that requirement is met", stacklevel=2)
        return True


def add_safe_globals(safe_globals: Iterable[object]) -> None:
    """Allows classes and functions in weights-only files; a pair (object, "full.name") renames."""
    _safe_globals.extend(safe_globals)


def clear_safe_globals() -> None:
    """Forgets what add_safe_globals allowed."""
    _safe_globals.clear()


def get_safe_globals() -> list[object]:
    """What add_safe_globals allowed."""
    return list(_safe_globals)


def get_unsafe_globals_in_checkpoint(f: str | os.PathLike | BinaryIO) -> list[str]:
    """The names that a file asks for and weights-only loading does not allow; nothing is run."""
    import pickletools

    from rushlight._weights_unpickler import _allowed_names

    with _opened(f) as file:
        start = file.tell()
        magic = file.read(4)
        file.seek(start)
        if magic != b"PK\x03\x04":
            raise ValueError("Expected input to be a checkpoint returned by torch.save")
        reader = _checkpoint.ZipReader(file, None)
        text = bytes(reader.read("data.pkl"))
    allowed = {*_allowed_names(), *_allowed_by_user()}
    found: dict[str, None] = {}
    for name in _globals_of(pickletools.genops(text)):
        if name.startswith("rushlight."):
            name = "torch." + name.removeprefix("rushlight.")
        if name not in allowed:
            found[name] = None
    return list(found)


def _globals_of(operations: Iterable[tuple]) -> Iterator[str]:
    """The names that a pickle asks for, of its operations."""
    strings: list[str] = []
    memo: dict[int, str] = {}
    last = None  # the string that the operation before left, if it was one
    for code, argument, _ in operations:
        if code.name == "GLOBAL":
            yield argument.replace(" ", ".", 1)
        elif code.name == "STACK_GLOBAL":
            yield ".".join(strings[-2:])
        elif code.name in ("BINGET", "LONG_BINGET", "GET"):
            strings += [memo[argument]] if memo.get(argument) else []
        elif code.name == "MEMOIZE":
            memo[len(memo)] = last or ""
        elif code.name in ("BINPUT", "LONG_BINPUT", "PUT"):
            memo[argument] = last or ""
        is_text = isinstance(argument, str) and "UNICODE" in code.name
        last = argument if is_text else None
        strings += [argument] if is_text else []


class safe_globals:
    """Allows classes and functions in weights-only files within a block."""

    def __init__(self, safe_globals: Iterable[object]) -> None:
        self._allowed = list(safe_globals)

    def __enter__(self) -> None:
        self._saved = get_safe_globals()
        add_safe_globals(self._allowed)

    def __exit__(self, *_: object) -> None:
        _safe_globals[:] = self._saved


def _allowed_by_user() -> dict[str, object]:
    names = {}
    for item in _safe_globals:
        if isinstance(item, tuple):
            value, full = item
        else:
            value = item
            full = f"{item.__module__}.{item.__qualname__}"
        if full.startswith("rushlight."):
            full = "torch." + full.removeprefix("rushlight.")
        names[full] = value
    return names


# ---- Saving ------------------------------------------------------------------------------------
def save(
    obj: object,
    f: str | os.PathLike | BinaryIO,
    pickle_module: object = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Writes an object, with the tensors in it, to a file.

    A file of this name that is there already stays whole until the new one is on disk.

    Args:
        obj: anything that can be pickled.
        f: a path, or a file open for writing bytes.
        pickle_protocol: of the part that is pickled.
    """
    if isinstance(f, (str, os.PathLike)):
        path = os.fspath(f)
        folder = os.path.dirname(os.path.abspath(path))
        if not os.path.isdir(folder):
            raise RuntimeError(f"Parent directory {folder} does not exist.")
        name = os.path.basename(path).rpartition(".")[0] or os.path.basename(path)
        with _checkpoint.replaced_file(path) as file:
            _write(obj, file, name, pickle_protocol)
        return
    if not hasattr(f, "write"):
        raise AttributeError(
            f"save: expected a path or a file to write to, got {type(f).__name__}: it has no "
            "attribute 'write'"
        )
    # A zip needs to know where it is; other files get the whole of it at once.
    buffer = io.BytesIO()
    _write(obj, buffer, "archive", pickle_protocol)
    f.write(buffer.getbuffer())


def _write(obj: object, file: BinaryIO, folder: str, protocol: int) -> None:
    storages: dict[int, tuple[str, UntypedStorage]] = {}
    dtypes: dict[int, torch.dtype] = {}

    def store(storage: TypedStorage | UntypedStorage) -> tuple:
        untyped = storage.untyped()
        identity = untyped._cdata
        if isinstance(storage, TypedStorage):
            if dtypes.setdefault(identity, storage.dtype) != storage.dtype:
                raise RuntimeError(
                    "Cannot save multiple tensors or storages that view the same data as "
                    "different types"
                )
            kind = getattr(torch, _LEGACY_NAMES[storage.dtype])
            count = storage.size()
        else:
            kind = UntypedStorage
            count = untyped.nbytes()
        key, _ = storages.setdefault(identity, (str(len(storages)), untyped))
        return "storage", kind, key, location_tag(untyped), count

    pickled = io.BytesIO()
    _checkpoint.Pickler(pickled, protocol, store).dump(obj)
    with _checkpoint.ZipWriter(file, folder) as writer:
        writer.write("data.pkl", pickled.getvalue())
        writer.write("byteorder", sys.byteorder.encode())
        for key, storage in storages.values():
            if skips_data():
                writer.write(f"data/{key}", bytes(storage.nbytes()))
                continue
            with memoryview(storage) as view:
                writer.write(f"data/{key}", view)
        writer.write("version", b"3\n")


# ---- Loading -----------------------------------------------------------------------------------
def load(
    f: str | os.PathLike | BinaryIO,
    map_location: object = None,
    pickle_module: object = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: object,
) -> object:
    """Reads what save wrote, here or in PyTorch.

    Args:
        f: a path, or a file open for reading bytes that can seek.
        map_location: the device for storages, or a function or dict that says where each goes.
        weights_only: True (the default) refuses files that need code beyond tensors and
            containers; False runs whatever the file asks for: only for files you trust.
        mmap: maps the file, whose pages are then read when they are needed.
    """
    weights_only = True if weights_only is None and pickle_module is None else bool(weights_only)
    pickle_load_args.setdefault("encoding", "utf-8")
    with _opened(f) as file:
        start = file.tell()
        magic = file.read(4)
        file.seek(start)
        loader = _Loader(map_location, weights_only, pickle_load_args)
        if magic == b"PK\x03\x04":
            path = os.fspath(f) if isinstance(f, (str, os.PathLike)) else None
            if mmap and path is None:
                raise ValueError(
                    "f must be a file path in order to use the mmap argument, got "
                    f"{type(f).__name__}"
                )
            return loader.zip(_checkpoint.ZipReader(file, path), bool(mmap))
        if mmap:
            raise RuntimeError("mmap can only be used with files saved as zip files")
        if not magic:
            raise EOFError("Ran out of input: the file is empty")
        return loader.legacy(file)


@contextmanager
def _opened(f: str | os.PathLike | BinaryIO) -> Iterator[BinaryIO]:
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            yield file
        return
    for method in ("read", "readline", "seek", "tell"):
        if not hasattr(f, method):
            raise AttributeError(
                f"'{type(f).__name__}' object has no attribute '{method}'. You can only torch.load "
                "from a file that is seekable. Please pre-load the data into a buffer like "
                "io.BytesIO and try to load from it instead."
            )
    yield f


class _Loader:
    """One load: where storages go, and who reads the pickle."""

    def __init__(self, map_location: object, weights_only: bool, pickle_args: dict) -> None:
        self._map_location = map_location
        self._weights_only = weights_only
        self._pickle_args = pickle_args

    def _unpickle(self, file: BinaryIO, persistent_load: Callable[[object], object]) -> object:
        if not self._weights_only:
            return _checkpoint.CodeUnpickler(file, persistent_load, **self._pickle_args).load()
        from rushlight._weights_unpickler import Unpickler

        try:
            return Unpickler(file, persistent_load, _allowed_by_user()).load()
        except pickle.UnpicklingError as error:
            raise pickle.UnpicklingError(
                "Weights only load failed. In the file is more than tensors and containers. If you "
                "trust its source, load it with `weights_only=False`, which runs the code it asks "
                f"for, or allow the names it needs.\n\tWeightsUnpickler error: {error}"
            ) from error

    def zip(self, reader: _checkpoint.ZipReader, mapped: bool) -> object:
        order = byte_order(reader.read("byteorder") if reader.has("byteorder") else None)
        turned = order != sys.byteorder
        if reader.has("constants.pkl"):
            raise RuntimeError("load: TorchScript archives are not supported")
        made: dict[str, UntypedStorage] = {}

        def persistent_load(saved_id: object) -> object:
            kind, key, location, count = _storage_id(saved_id, 5)
            size = count * kind.itemsize if kind is not None else count
            if key not in made:
                if self._goes_to_meta(location):
                    storage = UntypedStorage(size, device="meta")
                elif skips_data():
                    storage = UntypedStorage(size)
                elif mapped:
                    storage = reader.mapped_storage(f"data/{key}", size)
                else:
                    storage = reader.storage(f"data/{key}", size)
                if turned and kind is not None and storage.device.type != "meta":
                    storage.byteswap(kind)
                made[key] = self._moved(storage, location)
            if kind is None:
                return made[key]
            return TypedStorage(wrap_storage=made[key], dtype=kind)

        return self._unpickle(io.BytesIO(reader.read("data.pkl")), persistent_load)

    def legacy(self, file: BinaryIO) -> object:
        """Files from before the zip format: pickles in a row, then the storages' bytes."""

        def no_storage(saved_id: object) -> object:
            raise pickle.UnpicklingError("a storage before the file's header")

        if self._unpickle(file, no_storage) != _LEGACY_MAGIC:
            raise RuntimeError("Invalid magic number; corrupt file?")
        if self._unpickle(file, no_storage) != _LEGACY_VERSION:
            raise RuntimeError("Invalid protocol version")
        if not self._unpickle(file, no_storage).get("little_endian", True):
            raise RuntimeError("load: the file was written on a machine of other byte order")
        made: dict[str, TypedStorage] = {}

        def persistent_load(saved_id: object) -> object:
            if isinstance(saved_id, tuple) and saved_id[:1] == ("module",):
                return saved_id[1]
            kind, key, location, count = _storage_id(saved_id, 6)
            kind = kind or torch.uint8
            if key not in made:
                where = "meta" if self._goes_to_meta(location) else "cpu"
                storage = UntypedStorage(count * kind.itemsize, device=where)
                storage = self._moved(storage, location)
                made[key] = TypedStorage(wrap_storage=storage, dtype=kind)
            return made[key]

        result = self._unpickle(file, persistent_load)
        for key in self._unpickle(file, no_storage):
            self._fill_legacy(file, made[key])
        return result

    def _fill_legacy(self, file: BinaryIO, storage: TypedStorage) -> None:
        count = int.from_bytes(file.read(8), "little", signed=True)
        if count != storage.size():
            raise RuntimeError(
                f"load: a storage of {storage.size()} elements has {count} in the file"
            )
        data = file.read(storage.nbytes())
        if len(data) != storage.nbytes():
            raise RuntimeError("load: the file is cut short")
        if storage.device.type == "cpu":
            memoryview(storage.untyped())[:] = data

    def _goes_to_meta(self, location: str) -> bool:
        """Whether the bytes of a storage that was saved from `location` need not be read."""
        wanted = self._map_location
        if wanted is None or callable(wanted):
            return location == "meta"
        if isinstance(wanted, dict):
            return str(wanted.get(location, location)) == "meta"
        return str(wanted) == "meta"

    def _moved(self, storage: UntypedStorage, location: str) -> UntypedStorage:
        wanted = self._map_location
        if isinstance(wanted, dict):
            location = str(wanted.get(location, location))
        elif callable(wanted):
            moved = wanted(storage, location)
            if moved is not None:
                return moved.untyped()
        elif wanted is not None:
            location = str(wanted)
        return default_restore_location(storage, location).untyped()


def _storage_id(saved_id: object, size: int) -> tuple[torch.dtype | None, str, str, int]:
    """(dtype or None for bytes, key, location, count) of a persistent id, checked."""
    valid = isinstance(saved_id, tuple) and len(saved_id) == size and saved_id[0] == "storage"
    if not valid:
        raise pickle.UnpicklingError(f"a persistent id that is no storage: {saved_id!r:.100}")
    _, kind, key, location, count = saved_id[:5]
    if not isinstance(count, int) or count < 0 or not isinstance(location, str):
        raise pickle.UnpicklingError(f"a storage that is not valid: {saved_id!r:.100}")
    if kind is UntypedStorage:
        return None, str(key), location, count
    dtype = getattr(kind, "_dtype", None)
    if dtype is None:
        raise pickle.UnpicklingError(f"a storage of unknown type: {saved_id!r:.100}")
    return dtype, str(key), location, count
