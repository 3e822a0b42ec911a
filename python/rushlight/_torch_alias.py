"""Lets programs that say `import torch` run on this package.

`install()` puts a finder in front of the others: it resolves `torch` and everything below it to
this package's modules, the same objects under both names. Names that the package does not have are
ModuleNotFoundErrors, also where a PyTorch is installed beside it.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType

_ALIAS = "torch"
_PACKAGE = "rushlight"


def _own_name(name: str) -> str | None:
    """The name here of a module asked for, or None where it is not ours to answer."""
    if name == _ALIAS or name.startswith(_ALIAS + "."):
        return _PACKAGE + name.removeprefix(_ALIAS)
    if name == "functorch" or name.startswith("functorch."):  # PyTorch brings it along
        return f"{_PACKAGE}.{name}"
    return None


class _Loader(importlib.abc.Loader):
    """Gives an import the module that exists already."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._spec = module.__spec__

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        # The import system wrote the alias's spec into it.
        module.__spec__ = self._spec


class TorchFinder(importlib.abc.MetaPathFinder):
    """Finds `torch` and its submodules in this package."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        own = _own_name(fullname)
        if own is None:
            return None
        try:
            module = importlib.import_module(own)
        except ModuleNotFoundError as error:
            if error.name is None or not own.startswith(error.name):
                raise
            raise ModuleNotFoundError(
                f"No module named '{fullname}' (rushlight has no module '{own}')", name=fullname
            ) from None
        return importlib.util.spec_from_loader(
            fullname, _Loader(module), is_package=hasattr(module, "__path__")
        )


def _show(name: str, version: str) -> None:
    package = importlib.import_module(_PACKAGE)
    package.__name__ = name
    versions = importlib.import_module(f"{_PACKAGE}.torch_version")
    package.__version__ = versions.__version__ = versions.TorchVersion(version)


def install() -> None:
    """From now on `import torch` imports this package.

    Its `__version__` is then that of the PyTorch whose interface it has, since programs choose
    what they do by it, and its `__name__` is "torch", with which paths of names begin.
    """
    if any(isinstance(finder, TorchFinder) for finder in sys.meta_path):
        return
    loaded = sys.modules.get(_ALIAS)
    if loaded is not None and loaded.__name__ != _PACKAGE:
        raise ImportError("torch was imported before rushlight could take its name")
    sys.meta_path.insert(0, TorchFinder())
    _show(_ALIAS, importlib.import_module("rushlight.version").torch_interface)


def uninstall() -> None:
    """Takes the finder away, and the modules that were imported through it."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, TorchFinder)]
    _show(_PACKAGE, importlib.import_module("rushlight.version").__version__)
    for name in [name for name in sys.modules if _own_name(name) is not None]:
        if sys.modules[name].__name__.partition(".")[0] == _PACKAGE:
            del sys.modules[name]
