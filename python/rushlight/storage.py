"""Storages: the bytes behind tensors, plain or seen as elements of one dtype."""

from __future__ import annotations

import copy as _copy
from collections.abc import Iterator, Sequence

import rushlight as torch
from rushlight import _C

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


class UntypedStorage(_C.StorageBase):
    """Bytes, shared by the tensors that view them."""

    is_cuda = False
    is_hpu = False
    is_sparse = False
    filename = None

    def untyped(self) -> UntypedStorage:
        return self

    def clone(self) -> UntypedStorage:
        return UntypedStorage(self.nbytes(), device=self.device).copy_(self)

    def cpu(self) -> UntypedStorage:
        return self

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

    def float(self) -> TypedStorage:
        return self._converted(torch.float32)

    def double(self) -> TypedStorage:
        return self._converted(torch.float64)

    def byte(self) -> TypedStorage:
        return self._converted(torch.uint8)


def _untyped_from_bytes(data: bytes) -> UntypedStorage:
    return UntypedStorage(data)


class TypedStorage:
    """A storage seen as a one-dimensional array of one dtype."""

    dtype: torch.dtype
    is_sparse = False

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
    def filename(self) -> None:
        return None

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

    def is_pinned(self) -> bool:
        return False

    def fill_(self, value: object) -> TypedStorage:
        self._tensor().fill_(value)
        return self

    def copy_(self, source: TypedStorage, non_blocking: bool = False) -> TypedStorage:
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
            return f"torch.{_LEGACY_NAMES.get(self.dtype, 'UntypedStorage')}"
        return self._wrap(self._untyped_storage).to_dtype(getattr(dtype, "_dtype", dtype))

    def to_dtype(self, dtype: torch.dtype) -> TypedStorage:
        values = self._tensor().to(dtype)
        return TypedStorage(wrap_storage=values.untyped_storage(), dtype=dtype)

    def float(self) -> TypedStorage:
        return self.to_dtype(torch.float32)

    def double(self) -> TypedStorage:
        return self.to_dtype(torch.float64)

    def half(self) -> TypedStorage:
        return self.to_dtype(torch.float16)

    def bfloat16(self) -> TypedStorage:
        return self.to_dtype(torch.bfloat16)

    def long(self) -> TypedStorage:
        return self.to_dtype(torch.int64)

    def int(self) -> TypedStorage:
        return self.to_dtype(torch.int32)

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

    def __call__(cls, *args: Sequence, **kwargs: object) -> TypedStorage:
        return TypedStorage(*args, dtype=cls._dtype, **kwargs)


def _legacy(dtype: torch.dtype, name: str) -> type:
    return _LegacyMeta(name, (), {"_dtype": dtype, "dtype": dtype, "__module__": "rushlight"})


_LEGACY = {name: _legacy(dtype, name) for dtype, name in _LEGACY_NAMES.items()}
globals().update(_LEGACY)
globals().update(_LEGACY)
_C._set_storage_type(UntypedStorage)


def _load_from_bytes(data: bytes) -> object:
    """What plain pickles written by PyTorch call for their storages."""
    import io

    from rushlight.serialization import load

    return load(io.BytesIO(data), weights_only=False)
