"""What programs import from torch.distributed before they ask whether it is there.

Functions and classes by name, each of which says that there is no group of processes.
"""

from __future__ import annotations

from typing import Any, NoReturn


def no_group(name: str) -> NoReturn:
    """The error of what needs a group of processes."""
    raise ValueError(
        "Default process group has not been initialized, please make sure to call "
        f"init_process_group. ({name}: Rushlight was built without distributed training)"
    )


def define(module: dict, functions: str = "", classes: str = "") -> list[str]:
    """Puts the names into a module's dictionary; gives them."""
    home = module["__name__"]
    for name in functions.split():
        module[name] = _function(name, home)
    for name in classes.split():
        members = {"__module__": home, "__init__": _init(name), "__doc__": _DOC}
        module[name] = type(name, (), members)
    return [*functions.split(), *classes.split()]


_DOC = "Raises ValueError: there is no group of processes."


def _function(name: str, home: str) -> Any:
    def absent(*args: Any, **kwargs: Any) -> NoReturn:
        no_group(name)

    absent.__name__ = absent.__qualname__ = name
    absent.__module__ = home
    absent.__doc__ = _DOC
    return absent


def _init(name: str) -> Any:
    def __init__(self: object, *args: Any, **kwargs: Any) -> None:
        no_group(name)

    return __init__
