"""Modules of devices that this build has not: what can be said of them, and what is refused.

Such a module is a list of signatures. The word before each says what a call of it gives:

    fails f(...)      an error that names the function and the reason
    nothing f(...)    None: there is nothing to do
    zero, false, list, mapping, text      of nothing: 0, False, [], {}, ''
    class C(...): f(...); g(...)          a class without objects, for annotations
"""

from __future__ import annotations

from types import TracebackType
from typing import NoReturn

_ANSWERS = {
    "nothing": ("None", "Nothing to do: there is no {device} device."),
    "zero": ("0", "Zero: there is no {device} device."),
    "false": ("False", "False: there is no {device} device."),
    "list": ("[]", "Empty: there is no {device} device."),
    "mapping": ("{{}}", "Empty: there is no {device} device."),
    "text": ("''", "Empty: there is no {device} device."),
}


class Device:
    """A kind of device that is absent: its name, and the errors of asking for it."""

    def __init__(self, device: str, error: type[Exception], reason: str) -> None:
        self.device = device
        self.error = error
        self.reason = reason

    def fail(self, what: str) -> NoReturn:
        """The error of a function that needs the device."""
        raise self.error(f"{self.reason}: {what} has no {self.device} device to work on")

    def fail_to_make(self, what: str) -> NoReturn:
        """The error of making an object that lives on the device."""
        raise RuntimeError(
            f"Tried to instantiate dummy base class {what}: {self.reason}, so there is no "
            f"{self.device} device that it could belong to"
        )


def define(module: dict, device: Device, text: str) -> None:
    """Puts the functions and classes that `text` lists into a module's dictionary."""
    source: list[str] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        word, _, rest = line.partition(" ")
        if word == "class":
            source += _class(rest, device)
        else:
            source += _function(word, rest, device)
    namespace = module
    namespace["_absent_device"] = device
    exec(compile("\n".join(source), f"<{module['__name__']}>", "exec"), namespace)


def _function(word: str, signature: str, device: Device) -> list[str]:
    name = signature.partition("(")[0]
    if word == "fails":
        answer = f"_absent_device.fail({name!r})"
        doc = f"An error: there is no {device.device} device."
    else:
        answer, doc = (part.format(device=device.device) for part in _ANSWERS[word])
    return [f"def {signature}:", f"    {doc!r}", f"    return {answer}"]


def _class(text: str, device: Device) -> list[str]:
    head, _, methods = text.partition(":")
    name, _, arguments = head.strip().partition("(")
    first = f"self, {arguments}" if arguments != ")" else "self)"
    doc = f"Has no objects: there is no {device.device} device that one could belong to."
    lines = [f"class {name}:", f"    {doc!r}", f"    def __init__({first}:"]
    lines += ["        " + f"_absent_device.fail_to_make({name!r})"]
    for method in filter(None, map(str.strip, methods.split(";"))):
        called, _, rest = method.partition("(")
        if not rest:
            lines += ["    @property"]
            rest = ")"
        with_self = f"self, {rest}" if rest != ")" else "self)"
        doc = "Of the objects that this build cannot make."
        lines += [f"    def {called}({with_self}:", f"        {doc!r}"]
        lines += [f"        _absent_device.fail({name + '.' + called!r})"]
    return lines


def no_class(name: str, module: str, device: Device) -> type:
    """A class of legacy tensors or storages on the device: nothing is one, none can be made."""
    return _NoObjects(name, (), {"__module__": module, "_device": device, "__doc__": _NO_OBJECTS})


_NO_OBJECTS = "No object is one of these: its device is not in this build."


class _NoObjects(type):
    _device: Device

    def __call__(cls, *args: object, **kwargs: object) -> NoReturn:
        cls._device.fail_to_make(cls.__name__)


class NoContext:
    """A context for a device: empty where none is meant, an error to enter where one is."""

    _device: Device
    _what = "device"

    def __init__(self, meant: object) -> None:
        self._meant = meant

    def __enter__(self) -> object:
        if self._meant is not None and self._meant != -1:
            self._device.fail(self._what)
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        return None


def contexts(module: dict, device: Device) -> None:
    """The contexts that each module of a device has: device, device_of, StreamContext, stream."""
    where = {"__module__": module["__name__"], "_device": device}

    class Selected(NoContext):
        """Makes a device current; None and negative indices mean none."""

        def __init__(self, device: object) -> None:
            super().__init__(None if isinstance(device, int) and device < 0 else device)

    class SelectedOf(NoContext):
        """Makes the device of a tensor current, where that is of this kind: here never."""

        def __init__(self, obj: object) -> None:
            super().__init__(None)

    class StreamContext(NoContext):
        """Makes a stream current; None means none."""

        _what = "stream"

        def __init__(self, stream: object) -> None:
            super().__init__(stream)

    def stream(stream: object) -> StreamContext:
        """The context in which a stream is current; None means none."""
        return StreamContext(stream)

    for name, made in (
        ("device", Selected),
        ("device_of", SelectedOf),
        ("StreamContext", StreamContext),
    ):
        for attribute, value in where.items():
            setattr(made, attribute, value)
        made.__name__ = made.__qualname__ = name
        module[name] = made
    stream.__module__ = module["__name__"]
    module["stream"] = stream
