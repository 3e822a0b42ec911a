"""Reading and writing safetensors files; the format itself is read in C++."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import rushlight as torch
from rushlight import _C

_NAMES = {
    torch.bool: "BOOL",
    torch.uint8: "U8",
    torch.int8: "I8",
    torch.uint16: "U16",
    torch.int16: "I16",
    torch.uint32: "U32",
    torch.int32: "I32",
    torch.uint64: "U64",
    torch.int64: "I64",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e5m2: "F8_E5M2",
    torch.float8_e8m0fnu: "F8_E8M0",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.float32: "F32",
    torch.float64: "F64",
    torch.complex64: "C64",
}

Result = TypeVar("Result")


class SafetensorError(Exception):
    """A file that is not valid, or a tensor that the file does not have."""


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (ValueError, KeyError) as error:
        text = error.args[0] if error.args else str(error)
        raise SafetensorError(str(text)) from None


def _open(filename: str | os.PathLike) -> object:
    path = os.fspath(filename)
    if not os.path.exists(path):
        raise FileNotFoundError(f"No such file or directory: {path}")
    with _translated():
        return _C._safetensors_open(path)


def _on(tensor: torch.Tensor, device: object) -> torch.Tensor:
    return tensor if str(device) == "cpu" else tensor.to(device)


def load_file(filename: str | os.PathLike, device: str | int = "cpu") -> dict[str, torch.Tensor]:
    """The file's tensors by name, over the mapped file; writing to them does not change it."""
    file = _open(filename)
    return {name: _on(file.tensor(name), device) for name in sorted(file.keys())}


def load(data: bytes) -> dict[str, torch.Tensor]:
    """The tensors of a file's bytes, by name."""
    with _translated():
        file = _C._safetensors_open_bytes(bytes(data))
    return {name: file.tensor(name) for name in sorted(file.keys())}


def save_file(
    tensors: dict[str, torch.Tensor],
    filename: str | os.PathLike,
    metadata: dict[str, str] | None = None,
) -> None:
    """Writes tensors to a file; an old file stays until the new one is on disk.

    ValueError for tensors that are not contiguous, RuntimeError for tensors that share memory.
    """
    _check(tensors)
    with _translated():
        _C._safetensors_save_file(tensors, os.fspath(filename), metadata)


def save(tensors: dict[str, torch.Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """The bytes of a file with these tensors."""
    _check(tensors)
    with _translated():
        return _C._safetensors_save(tensors, metadata)


def _check(tensors: dict[str, torch.Tensor]) -> None:
    if not isinstance(tensors, dict):
        raise ValueError(
            f"Expected a dict of [str, torch.Tensor] but received {type(tensors).__name__}"
        )
    shared: dict[int, set[str]] = defaultdict(set)
    for name, tensor in tensors.items():
        if not isinstance(tensor, torch.Tensor):
            raise ValueError(
                f"Key `{name}` is invalid, expected torch.Tensor but received "
                f"{type(tensor).__name__}"
            )
        if not tensor.is_contiguous():
            raise ValueError(
                f"You are trying to save a non contiguous tensor: `{name}` which is not allowed. "
                "It either means you are trying to save tensors which are reference of each other "
                "in which case it's recommended to save only the full tensors, and reslice at load "
                "time, or simply call `.contiguous()` on your tensor to pack it before saving."
            )
        if tensor.nbytes:
            shared[tensor.untyped_storage()._cdata].add(name)
    for names in _overlapping(tensors, shared.values()):
        raise RuntimeError(
            f"Some tensors share memory, this will lead to duplicate memory on disk and potential "
            f"differences when loading them again: {[names]}. A potential way to correctly save "
            "your model is to use `save_model`."
        )


def _overlapping(
    tensors: dict[str, torch.Tensor], groups: Iterator[set[str]]
) -> Iterator[set[str]]:
    """Those names of each group whose tensors have bytes in common."""
    for names in groups:
        spans = sorted(
            (tensors[name].data_ptr(), tensors[name].data_ptr() + tensors[name].nbytes, name)
            for name in names
        )
        found = set()
        for (_, end, name), (begin, _, next_name) in zip(spans, spans[1:], strict=False):
            if begin < end:
                found |= {name, next_name}
        if found:
            yield found


def save_model(
    model: torch.nn.Module,
    filename: str,
    metadata: dict[str, str] | None = None,
    force_contiguous: bool = True,
) -> None:
    """Writes a module's state; tensors under several names are written once."""
    state = model.state_dict()
    notes = dict(metadata or {})
    kept: dict[tuple, str] = {}
    tensors = {}
    for name in sorted(state):
        tensor = state[name]
        place = (tensor.untyped_storage()._cdata, tensor.storage_offset(), tuple(tensor.shape))
        if tensor.nbytes and place in kept:
            notes[name] = kept[place]
            continue
        kept[place] = name
        tensors[name] = tensor.contiguous() if force_contiguous else tensor
    save_file(tensors, filename, {"format": "pt", **notes})


def load_model(
    model: torch.nn.Module,
    filename: str | os.PathLike,
    strict: bool = True,
    device: str | int = "cpu",
) -> tuple[list[str], list[str]]:
    """Reads what save_model wrote into a module; gives the missing and the unexpected names."""
    file = _open(filename)
    state = load_file(filename, device)
    own = model.state_dict()
    for name, other in file.metadata().items():
        if name in own and other in state:
            state[name] = state[other]
    missing, unexpected = model.load_state_dict(state, strict=False)
    if strict and (missing or unexpected):
        raise RuntimeError(
            f"Error(s) in loading state_dict for {type(model).__name__}: missing keys {missing}, "
            f"unexpected keys {unexpected}"
        )
    return missing, unexpected


class _Slice:
    """A tensor of a file that is read in part."""

    def __init__(self, open_file: safe_open, name: str) -> None:
        self._open_file = open_file
        self._name = name
        with _translated():
            self._dtype, self._shape = open_file._file().entry(name)

    def get_shape(self) -> list[int]:
        return list(self._shape)

    def get_dtype(self) -> str:
        return _NAMES[self._dtype]

    def __getitem__(self, index: object) -> torch.Tensor:
        return self._open_file.get_tensor(self._name)[index].contiguous()


class safe_open:
    """A file opened for reading tensor by tensor: `with safe_open(path, "pt") as f: ...`."""

    def __init__(
        self, filename: str | os.PathLike, framework: str, device: str | int = "cpu"
    ) -> None:
        if framework not in ("pt", "torch", "pytorch", "rushlight"):
            raise SafetensorError(f"framework {framework} is not supported: pt is")
        self._device = device
        self._opened = _open(filename)

    def _file(self) -> object:
        if self._opened is None:
            raise SafetensorError("File is closed")
        return self._opened

    def __enter__(self) -> safe_open:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened = None

    def keys(self) -> list[str]:
        """The tensors' names in alphabetical order."""
        return sorted(self._file().keys())

    def offset_keys(self) -> list[str]:
        """The tensors' names in the order of their data."""
        return self._file().keys()

    def metadata(self) -> dict[str, str] | None:
        """The header's notes; None where there are none."""
        return self._file().metadata() or None

    def get_tensor(self, name: str) -> torch.Tensor:
        return _on(_get(self._file().tensor, name), self._device)

    def get_slice(self, name: str) -> _Slice:
        """The tensor, of which an index reads a part."""
        return _Slice(self, name)


def _get(function: Callable[[str], Result], name: str) -> Result:
    with _translated():
        return function(name)
