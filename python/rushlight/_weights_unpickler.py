"""A reader of pickles that runs no code but what is on a list.

It carries out the few instructions that saved tensors, numbers, strings and containers need. Any
other instruction, any name that is not allowed, and any state set on an object that does not expect
it, is an UnpicklingError. So loading a file from a stranger cannot run the stranger's code.
"""

from __future__ import annotations

import struct
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from pickle import UnpicklingError
from typing import BinaryIO

import rushlight as torch

_MARK = object()
_MOST_PROTOCOL = 5


def _allowed_names() -> dict[str, object]:
    """The names that a file may use, as PyTorch's files spell them."""
    from rushlight import _tensor_state, _utils, storage

    names: dict[str, object] = {
        "collections.OrderedDict": OrderedDict,
        "collections.Counter": Counter,
        "collections.defaultdict": defaultdict,
        "builtins.set": set,
        "builtins.frozenset": frozenset,
        "builtins.bytearray": bytearray,
        "builtins.complex": complex,
        "builtins.slice": slice,
        "builtins.range": range,
        "_codecs.encode": _encode,
        "torch.Size": torch.Size,
        "torch.device": torch.device,
        "torch.Tensor": torch.Tensor,
        "torch.nn.parameter.Parameter": torch.nn.Parameter,
        "torch._utils._rebuild_tensor": _utils._rebuild_tensor,
        "torch._utils._rebuild_tensor_v2": _utils._rebuild_tensor_v2,
        "torch._utils._rebuild_tensor_v3": _utils._rebuild_tensor_v3,
        "torch._utils._rebuild_meta_tensor_no_storage": _utils._rebuild_meta_tensor_no_storage,
        "torch._utils._rebuild_parameter": _utils._rebuild_parameter,
        "torch._utils._rebuild_parameter_with_state": _utils._rebuild_parameter_with_state,
        "torch._tensor._rebuild_from_type_v2": _tensor_state._rebuild_from_type_v2,
        "torch.storage.UntypedStorage": storage.UntypedStorage,
        "torch.storage.TypedStorage": storage.TypedStorage,
        "torch.UntypedStorage": storage.UntypedStorage,
    }
    for name, cls in storage._LEGACY.items():
        names[f"torch.{name}"] = cls
    for name, value in vars(torch).items():
        if isinstance(value, torch.dtype):
            names[f"torch.{name}"] = value
    for name, value in list(names.items()):
        module, _, rest = name.partition(".")
        if module == "builtins":
            names[f"__builtin__.{rest}"] = value  # how protocol 2 spells it
    return names


def _encode(text: str, encoding: str) -> bytes:
    """How protocol 2 writes bytes: as text in latin-1."""
    if encoding not in ("latin1", "latin-1"):
        raise UnpicklingError(f"bytes in encoding {encoding!r} are refused")
    return text.encode("latin-1")


def _not_allowed(name: str) -> UnpicklingError:
    short = name.rpartition(".")[2]
    return UnpicklingError(
        f"Unsupported global: GLOBAL {name} was not an allowed global by default. Please use "
        f"`torch.serialization.add_safe_globals([{short}])` or the "
        f"`torch.serialization.safe_globals([{short}])` context manager to allow this global if "
        "you trust it."
    )


class Unpickler:
    """Reads one pickle from a file; persistent ids are resolved by `persistent_load`."""

    def __init__(
        self,
        file: BinaryIO,
        persistent_load: Callable[[object], object],
        extra: dict[str, object],
    ) -> None:
        self._file = file
        self._persistent_load = persistent_load
        self._allowed = {**_allowed_names(), **extra}
        self._callables = {id(value) for value in self._allowed.values()}
        self._extra = {id(value) for value in extra.values()}

    def load(self) -> object:
        self._stack: list = []
        self._memo: dict[int, object] = {}
        while True:
            code = self._read(1)[0]
            if code == 0x2E:  # STOP
                if len(self._stack) != 1:
                    raise UnpicklingError("the pickle ends with more or less than one object")
                return self._stack.pop()
            handler = _HANDLERS.get(code)
            if handler is None:
                raise UnpicklingError(f"Unsupported operand {code} in a weights-only pickle")
            try:
                handler(self)
            except (IndexError, KeyError, struct.error, UnicodeDecodeError) as error:
                raise UnpicklingError(f"corrupt pickle: {error!r}") from error

    # ---- Bytes
    def _read(self, size: int) -> bytes:
        if size < 0:
            raise UnpicklingError("corrupt pickle: a negative length")
        data = self._file.read(size)
        if len(data) != size:
            raise UnpicklingError("the pickle is cut short")
        return data

    def _number(self, form: str) -> int:
        return struct.unpack(form, self._read(struct.calcsize(form)))[0]

    def _line(self) -> str:
        line = self._file.readline()
        if not line.endswith(b"\n"):
            raise UnpicklingError("the pickle is cut short")
        return line[:-1].decode("utf-8")

    # ---- The stack
    def _push(self, value: object) -> None:
        self._stack.append(value)

    def _pop_mark(self) -> list:
        for at in range(len(self._stack) - 1, -1, -1):
            if self._stack[at] is _MARK:
                items = self._stack[at + 1 :]
                del self._stack[at:]
                return items
        raise UnpicklingError("corrupt pickle: no mark")

    # ---- Names and calls
    def _global(self, module: str, name: str) -> None:
        full = f"{module}.{name}"
        if full.startswith("rushlight."):
            full = "torch." + full.removeprefix("rushlight.")
        if full not in self._allowed:
            raise _not_allowed(full)
        self._push(self._allowed[full])

    def _stack_global(self) -> None:
        name = self._stack.pop()
        module = self._stack.pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise UnpicklingError("corrupt pickle: a name that is no string")
        self._global(module, name)

    def _check_callable(self, function: object) -> None:
        if id(function) not in self._callables:
            raise UnpicklingError(f"Trying to call non-allowed {function!r}")

    def _reduce(self) -> None:
        args = self._stack.pop()
        function = self._stack[-1]
        self._check_callable(function)
        if not isinstance(args, tuple):
            raise UnpicklingError("corrupt pickle: arguments that are no tuple")
        self._stack[-1] = function(*args)

    def _new_object(self) -> None:
        args = self._stack.pop()
        cls = self._stack[-1]
        self._check_callable(cls)
        if not isinstance(cls, type) or not isinstance(args, tuple):
            raise UnpicklingError("corrupt pickle: an object of no class")
        if cls is torch.nn.Parameter or issubclass(cls, torch.Tensor):
            self._stack[-1] = torch.nn.Parameter(*args)
        else:
            self._stack[-1] = cls.__new__(cls, *args)

    def _build(self) -> None:
        state = self._stack.pop()
        target = self._stack[-1]
        if isinstance(target, torch.Tensor):
            from rushlight._utils import _set_obj_state

            _set_obj_state(target, state)
        elif type(target) is OrderedDict and isinstance(state, dict):
            target.__dict__.update(state)
        elif id(type(target)) in self._extra:
            if hasattr(target, "__setstate__"):
                target.__setstate__(state)
            else:
                from rushlight._utils import _set_obj_state

                _set_obj_state(target, state)
        else:
            raise UnpicklingError(
                f"Can only set the state of tensors, OrderedDict and allowed classes, not of "
                f"{type(target).__name__}"
            )

    def _persistent(self) -> None:
        self._push(self._persistent_load(self._stack.pop()))

    # ---- Containers
    def _set_items(self, items: list) -> None:
        target = self._stack[-1]
        if type(target) not in (dict, OrderedDict, defaultdict, Counter):
            raise UnpicklingError(f"corrupt pickle: items set in a {type(target).__name__}")
        for at in range(0, len(items), 2):
            target[items[at]] = items[at + 1]

    def _set_item(self) -> None:
        value = self._stack.pop()
        key = self._stack.pop()
        self._set_items([key, value])

    def _append_items(self, items: list) -> None:
        target = self._stack[-1]
        if type(target) is not list:
            raise UnpicklingError(f"corrupt pickle: items appended to a {type(target).__name__}")
        target.extend(items)

    def _add_items(self) -> None:
        items = self._pop_mark()
        target = self._stack[-1]
        if type(target) is not set:
            raise UnpicklingError(f"corrupt pickle: items added to a {type(target).__name__}")
        target.update(items)

    def _make_tuple(self, count: int) -> None:
        items = tuple(self._stack[len(self._stack) - count :])
        if len(items) != count or _MARK in items:
            raise UnpicklingError("corrupt pickle: too few items")
        del self._stack[len(self._stack) - count :]
        self._push(items)

    def _make_dict(self) -> None:
        items = self._pop_mark()
        self._push(dict(zip(items[::2], items[1::2], strict=True)))

    def _remember(self, at: int) -> None:
        self._memo[at] = self._stack[-1]

    def _protocol(self) -> None:
        version = self._read(1)[0]
        if version > _MOST_PROTOCOL:
            raise UnpicklingError(f"pickle protocol {version} is not supported")

    def _text(self, size: int) -> None:
        self._push(self._read(size).decode("utf-8", "surrogatepass"))

    def _long(self, size: int) -> None:
        self._push(int.from_bytes(self._read(size), "little", signed=True))

    def _text_int(self) -> None:
        line = self._line()
        self._push({"00": False, "01": True}[line] if line in ("00", "01") else int(line))


def _handlers() -> dict[int, Callable[[Unpickler], object]]:
    table: dict[bytes, Callable[[Unpickler], object]] = {
        b"\x80": Unpickler._protocol,
        b"\x95": lambda u: u._read(8),  # FRAME
        b"(": lambda u: u._push(_MARK),
        b"0": lambda u: u._stack.pop(),
        b"1": lambda u: u._pop_mark(),
        b"2": lambda u: u._push(u._stack[-1]),
        b"N": lambda u: u._push(None),
        b"\x88": lambda u: u._push(True),
        b"\x89": lambda u: u._push(False),
        b"K": lambda u: u._push(u._number("<B")),
        b"M": lambda u: u._push(u._number("<H")),
        b"J": lambda u: u._push(u._number("<i")),
        b"\x8a": lambda u: u._long(u._number("<B")),
        b"\x8b": lambda u: u._long(u._number("<i")),
        b"I": Unpickler._text_int,
        b"G": lambda u: u._push(u._number(">d")),
        b"X": lambda u: u._text(u._number("<I")),
        b"\x8c": lambda u: u._text(u._number("<B")),
        b"\x8d": lambda u: u._text(u._number("<Q")),
        b"C": lambda u: u._push(u._read(u._number("<B"))),
        b"B": lambda u: u._push(u._read(u._number("<I"))),
        b"\x8e": lambda u: u._push(u._read(u._number("<Q"))),
        b"U": lambda u: u._push(u._read(u._number("<B")).decode("latin-1")),
        b"T": lambda u: u._push(u._read(u._number("<i")).decode("latin-1")),
        b"\x96": lambda u: u._push(bytearray(u._read(u._number("<Q")))),
        b")": lambda u: u._push(()),
        b"]": lambda u: u._push([]),
        b"}": lambda u: u._push({}),
        b"\x8f": lambda u: u._push(set()),
        b"\x85": lambda u: u._make_tuple(1),
        b"\x86": lambda u: u._make_tuple(2),
        b"\x87": lambda u: u._make_tuple(3),
        b"t": lambda u: u._push(tuple(u._pop_mark())),
        b"l": lambda u: u._push(u._pop_mark()),
        b"d": Unpickler._make_dict,
        b"\x91": lambda u: u._push(frozenset(u._pop_mark())),
        b"a": lambda u: u._append_items([u._stack.pop()]),
        b"e": lambda u: u._append_items(u._pop_mark()),
        b"s": Unpickler._set_item,
        b"u": lambda u: u._set_items(u._pop_mark()),
        b"\x90": Unpickler._add_items,
        b"q": lambda u: u._remember(u._number("<B")),
        b"r": lambda u: u._remember(u._number("<I")),
        b"\x94": lambda u: u._remember(len(u._memo)),
        b"h": lambda u: u._push(u._memo[u._number("<B")]),
        b"j": lambda u: u._push(u._memo[u._number("<I")]),
        b"c": lambda u: u._global(u._line(), u._line()),
        b"\x93": Unpickler._stack_global,
        b"R": Unpickler._reduce,
        b"\x81": Unpickler._new_object,
        b"b": Unpickler._build,
        b"Q": Unpickler._persistent,
    }
    return {code[0]: handler for code, handler in table.items()}


_HANDLERS = _handlers()
