"""Functions that were scripted."""

from __future__ import annotations

import functools
import importlib
import inspect
import pickle
from collections.abc import Callable, Mapping
from typing import Any

import rushlight as torch


class ScriptFunction:
    """A function that `script` compiled."""

    def __init__(self, function: Callable) -> None:
        self._function = function
        self._compiled = torch.compile(function)
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._compiled(*args, **kwargs)

    @property
    def name(self) -> str:
        """The function's name."""
        return self._function.__name__

    @property
    def qualified_name(self) -> str:
        """Its name with that of its module."""
        return f"{self._function.__module__}.{self._function.__qualname__}"

    @property
    def code(self) -> str:
        """Its source in Python."""
        return inspect.getsource(self._function)

    def save(self, filename: Any, _extra_files: Mapping[str, Any] | None = None) -> None:
        """Writes it to a file, which `torch.jit.load` reads."""
        torch.jit.save(self, filename, _extra_files)

    def save_to_buffer(self, _extra_files: Mapping[str, Any] | None = None) -> bytes:
        """The bytes of that file."""
        return torch.jit._archive.to_bytes(self, _extra_files)

    def __reduce__(self) -> tuple:
        # By name: the decorated function, or what it was made of, is found under it.
        name = self._function.__module__, self._function.__qualname__
        try:
            found = _named_function(*name)
        except (AttributeError, ImportError):
            found = None
        if found is None or found._function is not self._function:
            raise pickle.PicklingError(
                f"{'.'.join(name)} is not found under this name: scripted functions are pickled by "
                "the names that modules have for them"
            )
        return _named_function, name


def _named_function(module: str, name: str) -> Callable:
    """The scripted function of this name."""
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found if isinstance(found, ScriptFunction) else ScriptFunction(found)
