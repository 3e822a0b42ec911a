"""The device that factory functions use where none is given."""

from __future__ import annotations

import functools
import threading

from rushlight import _C
from rushlight.overrides import TorchFunctionMode

# Those that are no operators of the table, or that also have a form that takes tensors.
_OTHER_FACTORIES = (
    "as_tensor", "asarray", "empty_permuted", "from_file", "normal", "sparse_coo_tensor", "tensor",
)  # fmt: skip


@functools.cache
def _factories() -> frozenset:
    """The functions that make tensors of nothing and take a device."""
    import rushlight as torch

    names = set(_OTHER_FACTORIES)
    for row in _C._operator_table():
        arguments = row["schema"].rpartition(" -> ")[0]
        if "Device? device" in arguments and "Tensor" not in arguments:
            names.add(row["name"])
    found = {getattr(torch, name) for name in names if hasattr(torch, name)}
    of_fft = (name.removeprefix("fft_") for name in names if name.startswith("fft_"))
    return frozenset(found | {getattr(torch.fft, name) for name in of_fft})


class DeviceContext(TorchFunctionMode):
    """Gives factory functions called in it a device."""

    _operators_only = True

    def __init__(self, device: object) -> None:
        super().__init__()
        self.device = _C.device(device)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if func in _factories() and kwargs.get("device") is None:
            kwargs["device"] = self.device
        return func(*args, **kwargs)


_local = threading.local()


def enter_device(device: object) -> object:
    """Enters `with device:`."""
    context = DeviceContext(device)
    context.__enter__()
    _stack().append(context)
    return device


def exit_device(device: object) -> None:
    """Leaves the innermost `with device:`."""
    _stack().pop().__exit__(None, None, None)


def _stack() -> list[DeviceContext]:
    if not hasattr(_local, "stack"):
        _local.stack = []
    return _local.stack


def get_default_device() -> object:
    """The device that factory functions use now."""
    import rushlight as torch

    return torch.empty(0).device


def set_default_device(device: object) -> None:
    """Makes `device` the default of factory functions in this thread; None: the CPU again."""
    old = getattr(_local, "default", None)
    if old is not None:
        old.__exit__(None, None, None)
        _local.default = None
    if device is not None:
        context = DeviceContext(device)
        context.__enter__()
        _local.default = context
