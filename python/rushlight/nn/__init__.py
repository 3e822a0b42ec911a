"""Neural networks: modules, parameters, functions and initial values."""

from . import functional as functional
from . import init as init
from . import modules as modules
from . import utils as utils
from .modules import *  # noqa: F403
from .modules import __all__ as _module_names
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

utils._bind_norms()

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "factory_kwargs",
    *_module_names,
]


def __getattr__(name: str) -> object:
    if name in ("attention", "grad", "parallel"):  # rarely needed, so not imported with the rest
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    if name == "DataParallel":
        from rushlight.nn.parallel import DataParallel

        return DataParallel
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def factory_kwargs(kwargs: dict | None) -> dict:
    """The device, dtype and memory format among a module's arguments, alone or in
    `factory_kwargs`.
    """
    if kwargs is None:
        return {}
    simple = {"device", "dtype", "memory_format"}
    unexpected = kwargs.keys() - (simple | {"factory_kwargs"})
    if unexpected:
        raise TypeError(f"unexpected kwargs {unexpected}")
    result = dict(kwargs.get("factory_kwargs", {}))
    for key in simple & kwargs.keys():
        if key in result:
            raise TypeError(f"{key} specified twice, in **kwargs and in factory_kwargs")
        result[key] = kwargs[key]
    return result
