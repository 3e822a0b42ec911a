"""Where classes of private files say that they are: in the module that programs know them from.

Their text (`<rushlight.optim.lr_scheduler.StepLR object>`) and their pickles name that module.
"""

from __future__ import annotations

import types

__all__ = ["name_methods", "publish"]


def publish(module: str, *objects: object) -> None:
    """Makes objects say that they are of a module, which has them under their own names."""
    for each in objects:
        each.__module__ = module


def name_methods(cls: type) -> None:
    """Has functions that became methods under another name say that name: `split`, not `_split`."""
    for name, member in list(vars(cls).items()):
        function = getattr(member, "__func__", member)
        if isinstance(function, types.FunctionType) and function.__name__ == _private(name):
            function.__name__ = name
            function.__qualname__ = f"{cls.__qualname__}.{name}"


def _private(name: str) -> str:
    return "_" + (name[2:-2] if name.startswith("__") else name)
