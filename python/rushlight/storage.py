"""Storages: the bytes behind tensors, plain or seen as elements of one dtype."""

from __future__ import annotations

import copy as _copy
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import rushlight as torch
from rushlight import _C
from rushlight._storage_bytes import bytes_of, no_device, swap

_LEGACY_NAMES = {
    torch.float64: "DoubleStorage",
    torch.float32: "FloatStorage",
    torch.float16: "HalfStorage",
    torch.bfloat16: "BFloat16Storage",
    torch.int64: "LongStorage",
    torch.int32: "IntStorage",
    torch.int16: "ShortStorage",
    torch.int8: "CharStorage",
    torch.uint8: "ByteStorage",
    torch.bool: "BoolStorage",
    torch.complex128: "ComplexDoubleStorage",
    torch.complex64: "ComplexFloatStorage",
}


# The methods of storages that convert to a dtype, by name.
_CONVERSIONS = {
    "bool": torch.bool,
    "byte": torch.uint8,
    "char": torch.int8,
    "short": torch.int16,
    "int": torch.int32,
    "long": torch.int64,
    "half": torch.float16,
    "bfloat16": torch.bfloat16,
    "float": torch.float32,
    "double": torch.float64,
    "complex_float": torch.complex64,
    "complex_double": torch.complex128,
    "float8_e4m3fn": torch.float8_e4m3fn,
    "float8_e4m3fnuz": torch.float8_e4m3fnuz,
    "float8_e5m2": torch.float8_e5m2,
    "float8_e5m2fnuz": torch.float8_e5m2fnuz,
}


def _conversion(name: str, dtype: torch.dtype) -> Callable:
    def convert(self: Any) -> TypedStorage:
        return self._converted(dtype)

    convert.__name__ = name
    convert.__doc__ = f"The elements as {dtype}, a storage of its own."
    return convert


class UntypedStorage(_C.StorageBase):
    """Bytes, shared by the tensors that view them."""

    is_cuda = False
    is_hpu = False
    is_sparse = False
    is_sparse_csr = False
    _file: tuple[str, bool] = ("", False)  # from_file's: its name, whether it is written

    @property
    def filename(self) -> str | None:
        """The file that from_file mapped, where writing reaches it."""
        name, is_written = self._file
        return name if is_written else None

    @staticmethod
    def from_buffer(*args: object, **kwargs: object) -> UntypedStorage:
        """from_buffer(buffer, byte_order=None, count=-1, offset=0, dtype=None)

        A copy of the elements in a buffer: `count` of them (-1: all) from byte `offset` on.
        `byte_order` of elements of several bytes: "little", "big" or "native".
        """
        return UntypedStorage(bytes_of(*args, **kwargs))

    @staticmethod
    def from_file(
        filename: str | os.PathLike, shared: bool = False, nbytes: int = 0
    ) -> UntypedStorage:
        """The first bytes of a file, mapped; `shared`: writing reaches it, and it is made longer
        where it is too short. RuntimeError for files that cannot be opened or are too short.
        """
        flat = torch.from_file(os.fspath(filename), shared, nbytes, dtype=torch.uint8)
        storage = flat.untyped_storage()
        storage._file = (os.fspath(filename), shared)
        return storage

    def untyped(self) -> UntypedStorage:
        return self

    def clone(self) -> UntypedStorage:
        return UntypedStorage(self.nbytes(), device=self.device).copy_(self)

    def cpu(self) -> UntypedStorage:
        return self

    def cuda(self, device: object = None, non_blocking: bool = False) -> NoReturn:
        """An error: there is no such device."""
        no_device("cuda")

    def hpu(self, device: object = None, non_blocking: bool = False) -> NoReturn:
        """An error: there is no such device."""
        no_device("hpu")

    def mps(self) -> NoReturn:
        """An error: there is no such device."""
        raise RuntimeError("torch.UntypedStorage(): Storage device not recognized: mps")

    def to(self, *, device: torch.device, non_blocking: bool = False) -> UntypedStorage:
        """The storage itself, on the device where it is; AssertionError for another one."""
        where = torch.device(device)
        if where.type != self.device.type:
            no_device(where.type)
        return self

    def get_device(self) -> int | None:
        """The index of the device; None on the CPU."""
        return self.device.index

    def is_pinned(self, device: object = None) -> bool:
        """False: nothing here is pinned for an accelerator."""
        return False

    def pin_memory(self, device: object = None) -> NoReturn:
        """An error: there is no accelerator to pin memory for."""
        raise RuntimeError("Cannot access accelerator device when none is available.")

    def is_shared(self) -> bool:
        """Whether other processes can see the bytes: shared memory, or a file that is written."""
        return self._file[1] or super().is_shared()

    def byteswap(self, dtype: torch.dtype) -> None:
        """Reverses the bytes of each element of this dtype, in place; of complex ones, of parts."""
        with memoryview(self) as view:
            swap(view, dtype)

    def type(self, dtype: object = None, non_blocking: bool = False) -> object:
        """The name of the class; with the class as `dtype`, the storage itself."""
        if dtype is None:
            return "torch.storage.UntypedStorage"
        if dtype in (UntypedStorage, "torch.storage.UntypedStorage", "torch.UntypedStorage"):
            return self
        raise TypeError(
            f"UntypedStorage.type: bytes have no elements to convert to {dtype}: make a "
            "TypedStorage of them"
        )

    def new(self) -> UntypedStorage:
        return UntypedStorage(0, device=self.device)

    def share_memory_(self) -> UntypedStorage:
        """Moves the bytes to memory that other processes can see; the storage itself."""
        self._share()
        return self

    def __iter__(self) -> Iterator[int]:
        return iter(memoryview(self))

    def __copy__(self) -> UntypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict) -> UntypedStorage:
        shared = memo.setdefault("torch", {})
        if self._cdata not in shared:
            shared[self._cdata] = self.clone()
        return shared[self._cdata]

    def __reduce__(self) -> tuple:
        return _untyped_from_bytes, (bytes(self),)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def __repr__(self) -> str:
        numbers = "".join(f" {number}\n" for number in self.tolist())
        size = f"of size {len(self)}"
        return f"{numbers}[torch.storage.UntypedStorage(device={self.device}) {size}]"

    def _converted(self, dtype: torch.dtype) -> TypedStorage:
        return TypedStorage(wrap_storage=self, dtype=torch.uint8).to_dtype(dtype)


def _untyped_from_bytes(data: bytes) -> UntypedStorage:
    return UntypedStorage(data)


class TypedStorage:
    """A storage seen as a one-dimensional array of one dtype."""

    dtype: torch.dtype
    is_sparse = False
    is_hpu = False

    def __init__(
        self,
        *args: object,
        wrap_storage: UntypedStorage | None = None,
        dtype: torch.dtype | None = None,
        device: object = None,
        _internal: bool = False,
    ) -> None:
        self.dtype = dtype or getattr(type(self), "_dtype", None) or torch.get_default_dtype()
        if wrap_storage is not None:
            if args:
                raise RuntimeError(
                    f"{type(self).__name__}: wrap_storage and positional arguments exclude each "
                    f"other, got {len(args)}"
                )
            if not isinstance(wrap_storage, UntypedStorage):
                raise TypeError(
                    f"{type(self).__name__}: wrap_storage must be an UntypedStorage, got "
                    f"{type(wrap_storage).__name__}"
                )
            self._untyped_storage = wrap_storage
        elif len(args) > 1:
            raise RuntimeError(
                f"{type(self).__name__}: expected a size or a sequence of elements, got "
                f"{len(args)} positional arguments"
            )
        elif not args:
            self._untyped_storage = UntypedStorage(0, device=device)
        elif isinstance(args[0], int):
            size = args[0] * self.dtype.itemsize
            self._untyped_storage = UntypedStorage(size, device=device)
        else:
            values = torch.tensor(list(args[0]), dtype=self.dtype, device=device)
            self._untyped_storage = values.untyped_storage()

    @property
    def device(self) -> torch.device:
        return self._untyped_storage.device

    @property
    def is_cuda(self) -> bool:
        return False

    @property
    def filename(self) -> str | None:
        return self._untyped_storage.filename

    @classmethod
    def from_buffer(
        cls, *args: object, dtype: torch.dtype | None = None, **kwargs: object
    ) -> TypedStorage:
        """from_buffer(buffer, byte_order=None, count=-1, offset=0, *, dtype=None)

        As UntypedStorage.from_buffer, of elements of the default dtype.
        """
        dtype = dtype or torch.get_default_dtype()
        storage = UntypedStorage.from_buffer(*args, dtype=dtype, **kwargs)
        return TypedStorage(wrap_storage=storage, dtype=dtype)

    @classmethod
    def from_file(cls, filename: str | os.PathLike, shared: bool, size: int) -> TypedStorage:
        """An error: classes of one dtype, such as FloatStorage, have it."""
        raise RuntimeError("from_file can only be called on derived classes")

    @property
    def _cdata(self) -> int:
        return self._untyped_storage._cdata

    def untyped(self) -> UntypedStorage:
        return self._untyped_storage

    def _tensor(self) -> torch.Tensor:
        size = (self.size(),)
        return _C._tensor_of_storage(self._untyped_storage, self.dtype, 0, size, (1,))

    def element_size(self) -> int:
        return self.dtype.itemsize

    def nbytes(self) -> int:
        return self._untyped_storage.nbytes()

    def size(self) -> int:
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    __len__ = size
    _size = size

    def data_ptr(self) -> int:
        return self._untyped_storage.data_ptr()

    def resizable(self) -> bool:
        return self._untyped_storage.resizable()

    def resize_(self, size: int) -> None:
        self._untyped_storage.resize_(size * self.dtype.itemsize)

    def is_shared(self) -> bool:
        return self._untyped_storage.is_shared()

    def share_memory_(self) -> TypedStorage:
        self._untyped_storage.share_memory_()
        return self

    def is_pinned(self, device: object = None) -> bool:
        return False

    def pin_memory(self, device: object = None) -> NoReturn:
        """An error: there is no accelerator to pin memory for."""
        self._untyped_storage.pin_memory(device)

    def get_device(self) -> int | None:
        """The index of the device; None on the CPU."""
        return self._untyped_storage.get_device()

    def to(self, *, device: torch.device, non_blocking: bool = False) -> TypedStorage:
        """The storage itself, on the device where it is; AssertionError for another one."""
        self._untyped_storage.to(device=device, non_blocking=non_blocking)
        return self

    def cuda(self, device: object = None, non_blocking: bool = False) -> NoReturn:
        """An error: there is no such device."""
        no_device("cuda")

    def hpu(self, device: object = None, non_blocking: bool = False) -> NoReturn:
        """An error: there is no such device."""
        no_device("hpu")

    def fill_(self, value: object) -> TypedStorage:
        self._tensor().fill_(value)
        return self

    def copy_(self, source: TypedStorage, non_blocking: bool | None = None) -> TypedStorage:
        self._tensor().copy_(source._tensor())
        return self

    def clone(self) -> TypedStorage:
        return self._wrap(self._untyped_storage.clone())

    def cpu(self) -> TypedStorage:
        return self

    def tolist(self) -> list:
        return self._tensor().tolist()

    def type(self, dtype: object = None, non_blocking: bool = False) -> object:
        if dtype is None:
            return f"torch.{_LEGACY_NAMES.get(self.dtype, 'storage.TypedStorage')}"
        if isinstance(dtype, str):
            name = dtype.rpartition(".")[2]
            if name not in _LEGACY:
                raise ValueError(f"TypedStorage.type: invalid type: '{dtype}'")
            dtype = _LEGACY[name]
        return self.to_dtype(getattr(dtype, "_dtype", dtype))

    def to_dtype(self, dtype: torch.dtype) -> TypedStorage:
        values = self._tensor().to(dtype)
        return TypedStorage(wrap_storage=values.untyped_storage(), dtype=dtype)

    _converted = to_dtype

    def _wrap(self, storage: UntypedStorage) -> TypedStorage:
        return TypedStorage(wrap_storage=storage, dtype=self.dtype)

    def pickle_storage_type(self) -> str:
        return _LEGACY_NAMES[self.dtype]

    def __getitem__(self, index: object) -> object:
        if isinstance(index, slice):
            raise RuntimeError(
                "slices are only supported in UntypedStorage.__getitem__: use tensors instead"
            )
        return self._tensor()[index].item()

    def __setitem__(self, index: object, value: object) -> None:
        self._tensor()[index] = value

    def __iter__(self) -> Iterator[object]:
        return iter(self.tolist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and (
            (self.dtype, self._cdata) == (other.dtype, other._cdata)
        )

    def __hash__(self) -> int:
        return hash(self._cdata)

    def __copy__(self) -> TypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict) -> TypedStorage:
        return self._wrap(_copy.deepcopy(self._untyped_storage, memo))

    def __reduce__(self) -> tuple:
        return _typed_from_bytes, (self.dtype, bytes(self._untyped_storage))

    def __repr__(self) -> str:
        numbers = "".join(f" {number}\n" for number in self.tolist())
        kind = f"torch.storage.TypedStorage(dtype={self.dtype}, device={self.device})"
        return f"{numbers}[{kind} of size {len(self)}]"


def _typed_from_bytes(dtype: torch.dtype, data: bytes) -> TypedStorage:
    return TypedStorage(wrap_storage=UntypedStorage(data), dtype=dtype)


class _LegacyMeta(type):
    """The classes FloatStorage and others: making one gives a TypedStorage of its dtype."""

    _dtype: torch.dtype

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, TypedStorage) and instance.dtype is cls._dtype

    def __call__(
        cls,
        *args: Sequence,
        wrap_storage: UntypedStorage | None = None,
        dtype: torch.dtype | None = None,
        device: object = None,
        _internal: bool = False,
    ) -> TypedStorage:
        for name, value in (("dtype", dtype), ("device", device)):
            if value is not None:
                raise RuntimeError(
                    f"{cls.__name__} received an invalid combination of arguments: keyword "
                    f"argument '{name}' cannot be specified"
                )
        return TypedStorage(*args, wrap_storage=wrap_storage, dtype=cls._dtype)

    def from_buffer(cls, *args: object, **kwargs: object) -> TypedStorage:
        """from_buffer(buffer, byte_order=None, count=-1, offset=0)

        As UntypedStorage.from_buffer, of elements of the class's dtype.
        """
        if "dtype" in kwargs:
            raise RuntimeError(
                "from_buffer: 'dtype' can only be specified in UntypedStorage.from_buffer and "
                "TypedStorage.from_buffer"
            )
        return TypedStorage.from_buffer(*args, dtype=cls._dtype, **kwargs)

    def from_file(
        cls, filename: str | os.PathLike, shared: bool = False, size: int = 0
    ) -> TypedStorage:
        """As UntypedStorage.from_file, of `size` elements of the class's dtype."""
        storage = UntypedStorage.from_file(filename, shared, size * cls._dtype.itemsize)
        return TypedStorage(wrap_storage=storage, dtype=cls._dtype)


def _legacy(dtype: torch.dtype, name: str) -> type:
    return _LegacyMeta(name, (), {"_dtype": dtype, "dtype": dtype, "__module__": "rushlight"})


_LEGACY = {name: _legacy(dtype, name) for dtype, name in _LEGACY_NAMES.items()}
globals().update(_LEGACY)
for _name, _dtype in _CONVERSIONS.items():
    for _class in (UntypedStorage, TypedStorage):
        setattr(_class, _name, _conversion(_name, _dtype))
_C.StorageBase.from_buffer = UntypedStorage.from_buffer
_C.StorageBase.from_file = UntypedStorage.from_file
_C.StorageBase.new = UntypedStorage.new
_C._set_storage_type(UntypedStorage)


def _load_from_bytes(data: bytes) -> object:
    """What plain pickles written by PyTorch call for their storages."""
    import io

    from rushlight.serialization import load

    return load(io.BytesIO(data), weights_only=False)
