"""The device that factory functions use where none is given."""

from __future__ import annotations

import threading

from rushlight import _C
from rushlight.overrides import TorchFunctionMode

_FACTORIES = (
    "arange", "as_tensor", "asarray", "empty", "empty_permuted", "empty_strided", "eye",
    "from_file", "full", "linspace", "logspace", "normal", "ones", "rand", "randint", "randn",
    "randperm", "range", "scalar_tensor", "sparse_coo_tensor", "tensor", "tril_indices",
    "triu_indices", "zeros", "bartlett_window", "blackman_window", "hamming_window",
    "hann_window", "kaiser_window",
)  # fmt: skip


class DeviceContext(TorchFunctionMode):
    """Gives factory functions called in it a device."""

    _operators_only = True

    def __init__(self, device: object) -> None:
        super().__init__()
        self.device = _C.device(device)
        import rushlight as torch

        self._factories = {getattr(torch, name) for name in _FACTORIES if hasattr(torch, name)}

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if func in self._factories and kwargs.get("device") is None:
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
