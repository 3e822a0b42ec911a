"""Modules that hold others, in order or by name."""

from __future__ import annotations

import itertools
import operator

from rushlight._public import publish

from .module import Module, _addindent

__all__ = [
    "Container",
    "ModuleDict",
    "ModuleList",
    "ParameterDict",
    "ParameterList",
    "Sequential",
]


class Container(Module):
    """Superseded by Module itself."""

    def __init__(self, **kwargs) -> None:
        super().__init__()
        import warnings

        warnings.warn(
            "nn.Container is deprecated. All of it's functionality is now implemented in "
            "nn.Module. "
            "Subclass that instead.",
            FutureWarning,
            stacklevel=2,
        )
        for key, value in kwargs.items():
            self.add_module(key, value)


def _absolute(index, size: int) -> int:
    """A possibly negative index as one from the start."""
    index = operator.index(index)
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of range")
    return index % size if size else index


class Sequential(Module):
    """Runs modules one after the other, each on the output of the one before."""

    def __init__(self, *args) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], dict) and _is_ordered(args[0]):
            for key, module in args[0].items():
                self.add_module(key, module)
        else:
            for index, module in enumerate(args):
                self.add_module(str(index), module)

    def _get_item_by_idx(self, iterator, idx: int):
        return next(itertools.islice(iterator, _absolute(idx, len(self)), None))

    def __getitem__(self, idx):
        if isinstance(idx, slice):
            from collections import OrderedDict

            return self.__class__(OrderedDict(list(self._modules.items())[idx]))
        return self._get_item_by_idx(self._modules.values(), idx)

    def __setitem__(self, idx: int, module: Module) -> None:
        setattr(self, self._get_item_by_idx(self._modules, idx), module)

    def __delitem__(self, idx) -> None:
        if isinstance(idx, slice):
            for key in list(self._modules)[idx]:
                delattr(self, key)
        else:
            delattr(self, self._get_item_by_idx(self._modules, idx))
        # The names stay 0, 1, 2, ...
        self._modules = {str(i): module for i, module in enumerate(self._modules.values())}

    def __len__(self) -> int:
        return len(self._modules)

    def __add__(self, other) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(
                "add operator supports only objects of Sequential class, but "
                f"{type(other)!s} is given."
            )
        return Sequential(*self, *other)

    def __iadd__(self, other) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(
                "add operator supports only objects of Sequential class, but "
                f"{type(other)!s} is given."
            )
        return self.extend(other)

    def __mul__(self, other: int) -> Sequential:
        _check_factor(other)
        return Sequential(*(module for _ in range(other) for module in self))

    def __rmul__(self, other: int) -> Sequential:
        return self.__mul__(other)

    def __imul__(self, other: int) -> Sequential:
        _check_factor(other)
        size = len(self)
        for repeat in range(1, other):
            for index in range(size):
                self.add_module(str(index + repeat * size), self._modules[str(index)])
        return self

    def __dir__(self) -> list[str]:
        return [key for key in super().__dir__() if not key.isdigit()]

    def __iter__(self):
        return iter(self._modules.values())

    def forward(self, input):
        for module in self._modules.values():
            input = module(input)
        return input

    def append(self, module: Module) -> Sequential:
        """Adds a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key):
        """Takes out a module and gives it, or those of a slice."""
        taken = self[key]
        del self[key]
        return taken

    def insert(self, index: int, module: Module) -> Sequential:
        """Puts a module before position `index`."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        size = len(self._modules)
        if not -size <= index <= size:
            raise IndexError(f"Index out of range: {index}")
        if index < 0:
            index += size
        for place in range(size, index, -1):
            self._modules[str(place)] = self._modules[str(place - 1)]
        self._modules[str(index)] = module
        return self

    def extend(self, sequential) -> Sequential:
        """Adds the modules of another container at the end."""
        for module in list(sequential):
            self.append(module)
        return self


def _is_ordered(mapping: dict) -> bool:
    from collections import OrderedDict

    return isinstance(mapping, OrderedDict)


def _check_factor(other) -> None:
    if not isinstance(other, int):
        raise TypeError(f"unsupported operand type(s) for *: {Sequential} and {type(other)}")
    if other <= 0:
        raise ValueError(f"Non-positive multiplication factor {other} for {Sequential}")


class ModuleList(Module):
    """A list of modules that belong to the owner."""

    def __init__(self, modules=None) -> None:
        super().__init__()
        if modules is not None:
            self += modules

    def _get_abs_string_index(self, idx) -> str:
        return str(_absolute(idx, len(self)))

    def __getitem__(self, idx):
        if isinstance(idx, slice):
            return self.__class__(list(self._modules.values())[idx])
        return self._modules[self._get_abs_string_index(idx)]

    def __setitem__(self, idx: int, module: Module) -> None:
        setattr(self, self._get_abs_string_index(idx), module)

    def __delitem__(self, idx) -> None:
        if isinstance(idx, slice):
            for index in range(len(self._modules))[idx]:
                delattr(self, str(index))
        else:
            delattr(self, self._get_abs_string_index(idx))
        self._modules = {str(i): module for i, module in enumerate(self._modules.values())}

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __iadd__(self, modules) -> ModuleList:
        return self.extend(modules)

    def __add__(self, other) -> ModuleList:
        return ModuleList(list(self) + list(other))

    def __repr__(self) -> str:
        """Neighbours that print the same are printed once, with their count."""
        printed = [repr(module) for module in self]
        if not printed:
            return self._get_name() + "()"
        groups: list[list] = []
        for index, text in enumerate(printed):
            if groups and groups[-1][2] == text:
                groups[-1][1] = index
            else:
                groups.append([index, index, text])
        lines = []
        for first, last, text in groups:
            line = f"({first}): {text}"
            if first != last:
                line = f"({first}-{last}): {last - first + 1} x {text}"
            lines.append(_addindent(line, 2))
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"

    def __dir__(self) -> list[str]:
        return [key for key in super().__dir__() if not key.isdigit()]

    def insert(self, index: int, module: Module) -> None:
        """Puts a module before position `index`."""
        for place in range(len(self._modules), index, -1):
            self._modules[str(place)] = self._modules[str(place - 1)]
        self._modules[str(index)] = module

    def append(self, module: Module) -> ModuleList:
        """Adds a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key):
        """Takes out a module and gives it, or those of a slice."""
        taken = self[key]
        del self[key]
        return taken

    def extend(self, modules) -> ModuleList:
        """Adds the modules of an iterable at the end."""
        if not hasattr(modules, "__iter__"):
            raise TypeError(
                "ModuleList.extend should be called with an iterable, but got "
                + type(modules).__name__
            )
        start = len(self)
        for offset, module in enumerate(modules):
            self.add_module(str(start + offset), module)
        return self


class ModuleDict(Module):
    """A dictionary of modules that belong to the owner; it keeps the order of insertion."""

    def __init__(self, modules=None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Takes out all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Takes out a module and gives it."""
        taken = self[key]
        del self[key]
        return taken

    def keys(self):
        """The names."""
        return self._modules.keys()

    def items(self):
        """The (name, module) pairs."""
        return self._modules.items()

    def values(self):
        """The modules."""
        return self._modules.values()

    def update(self, modules) -> None:
        """Adds or replaces modules from a mapping or from (name, module) pairs."""
        if not hasattr(modules, "__iter__"):
            raise TypeError(
                "ModuleDict.update should be called with an iterable of key/value pairs, but got "
                + type(modules).__name__
            )
        for key, module in _pairs(modules, "ModuleDict"):
            self[key] = module


def _pairs(values, owner: str):
    """The pairs of a mapping, or of an iterable of pairs, checked."""
    if hasattr(values, "keys"):
        for key in values.keys():
            yield key, values[key]
        return
    for index, pair in enumerate(values):
        if not hasattr(pair, "__iter__"):
            raise TypeError(
                f"{owner} update sequence element #{index} should be Iterable; is"
                + type(pair).__name__
            )
        if len(pair) != 2:
            raise ValueError(
                f"{owner} update sequence element #{index} has length {len(pair)}; 2 is required"
            )
        yield pair[0], pair[1]


# The parameter containers live in a file of their own; they are part of this module's public names.
from ._parameter_containers import ParameterDict, ParameterList  # noqa: E402

publish(__name__, ParameterDict, ParameterList)
