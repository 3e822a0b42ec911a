"""Modules whose variables are settings: nothing else may be set, and changes may be for a scope."""

from __future__ import annotations
import __future__

import contextlib
import copy
import functools
import importlib
import pickle
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

__all__ = ["ConfigModule", "Group", "install_config_module"]

_NO_SETTINGS = (types.ModuleType, types.FunctionType, type, __future__._Feature)


class Group(types.SimpleNamespace):
    """Settings under a name of their own, as `triton` in `triton.cudagraphs`."""

    def __setattr__(self, name: str, value: object) -> None:
        if name not in self.__dict__:
            raise AttributeError(f"there is no setting {name!r}, only: {', '.join(vars(self))}")
        super().__setattr__(name, value)


class ConfigModule(types.ModuleType):
    """What `install_config_module` makes of a module."""

    _aliases: dict[str, tuple[str, str]]  # by name: the module and the name of the setting
    _settings: tuple[str, ...]

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__.get("_aliases", ()):
            module, other = self._aliases[name]
            return getattr(importlib.import_module(module), other)
        raise AttributeError(f"{self.__name__}.{name} does not exist")

    def __setattr__(self, name: str, value: object) -> None:
        if name in self._aliases:
            module, other = self._aliases[name]
            setattr(importlib.import_module(module), other, value)
        elif name in self.__dict__ or name.startswith("__"):
            super().__setattr__(name, value)
        else:
            raise AttributeError(f"{self.__name__}.{name} does not exist")

    def shallow_copy_dict(self) -> dict[str, Any]:
        """The settings by name, those of groups as `triton.cudagraphs`."""
        found: dict[str, Any] = {}
        for name in (*self._settings, *self._aliases):
            value = getattr(self, name)
            if isinstance(value, Group):
                found.update({f"{name}.{key}": item for key, item in vars(value).items()})
            else:
                found[name] = value
        return found

    def to_dict(self) -> dict[str, Any]:
        """The settings by name."""
        return self.shallow_copy_dict()

    def get_config_copy(self) -> dict[str, Any]:
        """The settings by name, copied deeply."""
        return copy.deepcopy(self.shallow_copy_dict())

    def save_config(self) -> bytes:
        """The settings as bytes, for load_config; those that cannot be pickled are left out."""
        kept: dict[str, Any] = {}
        for name, value in self.shallow_copy_dict().items():
            with contextlib.suppress(Exception):
                pickle.dumps(value)
                kept[name] = value
        return pickle.dumps(kept, protocol=2)

    def load_config(self, maybe_pickled_config: bytes | Mapping[str, Any]) -> None:
        """Sets what save_config or get_config_copy gave."""
        given = maybe_pickled_config
        for name, value in (given if isinstance(given, Mapping) else pickle.loads(given)).items():
            place, last = self._place(name)
            setattr(place, last, value)

    def _place(self, name: str) -> tuple[object, str]:
        """Where a setting is: `triton.cudagraphs` is one of `triton`."""
        *groups, last = name.split(".")
        place: object = self
        for group in groups:
            place = getattr(place, group, None)
        if not hasattr(place, last):
            raise AttributeError(f"{self.__name__}.{name} does not exist")
        return place, last

    def patch(self, arg1: object = None, arg2: object = None, **kwargs: object) -> _Patch:
        """Changes settings for a scope: patch(name=value), patch("name", value) or patch({...})."""
        if arg1 is not None and kwargs:
            raise AssertionError("cannot pass both positional and keyword arguments to patch")
        if isinstance(arg1, str):
            return _Patch(self, {arg1: arg2})
        return _Patch(self, {**(arg1 or {}), **kwargs})


@contextlib.contextmanager
def _patched(module: ConfigModule, changes: Mapping[str, object]) -> Iterator[None]:
    places = [(*module._place(name), value) for name, value in changes.items()]
    before = [(place, name, getattr(place, name)) for place, name, _ in places]
    for place, name, value in places:
        setattr(place, name, value)
    try:
        yield
    finally:
        for place, name, value in before:
            setattr(place, name, value)


class _Patch:
    """A context manager and a decorator, usable many times."""

    def __init__(self, module: ConfigModule, changes: Mapping[str, object]) -> None:
        self._module = module
        self._changes = changes
        self._entered: list = []

    def __enter__(self) -> None:
        manager = _patched(self._module, self._changes)
        manager.__enter__()
        self._entered.append(manager)

    def __exit__(self, *exception: object) -> None:
        self._entered.pop().__exit__(*exception)

    def __call__(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def wrapper(*args: object, **kwargs: object) -> object:
            with _patched(self._module, self._changes):
                return function(*args, **kwargs)

        return wrapper


def _add(variables: dict[str, Any], name: str, value: object) -> None:
    group, _, last = name.rpartition(".")
    if group:
        vars(variables.setdefault(group, Group()))[last] = value
    else:
        variables[name] = value


def install_config_module(
    name: str,
    others: types.ModuleType | None = None,
    aliases: Mapping[str, str] | None = None,
    kind: type[ConfigModule] = ConfigModule,
) -> None:
    """Makes settings of the variables of a module; called at its end, with its __name__.

    others: a module of names by default (FALSE, TRUE, NONE, VALUES) that are settings too.
    aliases: by name, the setting that it is, such as "rushlight._dynamo.config.recompile_limit".
    """
    variables = vars(sys.modules[name])
    own = [key for key, value in variables.items() if not isinstance(value, _NO_SETTINGS)]
    names = [key for key in own if not key.startswith("_")]
    before = set(variables)
    if others is not None:
        for words, value in ((others.FALSE, False), (others.TRUE, True), (others.NONE, None)):
            for word in words.split():
                _add(variables, word, value)
        for word, value in others.VALUES.items():
            _add(variables, word, value)
    variables["_settings"] = (*names, *(key for key in variables if key not in before))
    variables["_aliases"] = {
        key: (target.rpartition(".")[0], target.rpartition(".")[2])
        for key, target in (aliases or {}).items()
    }
    sys.modules[name].__class__ = kind
