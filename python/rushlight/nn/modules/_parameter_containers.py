"""A list and a dictionary of parameters."""

from __future__ import annotations

import operator

from rushlight import Tensor

from ..parameter import Parameter
from ._members import typename
from .module import Module

__all__ = ["ParameterDict", "ParameterList"]


def _as_parameter(value):
    """Plain tensors become parameters; anything else is kept as it is."""
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


def _dtype(value: Tensor) -> str:
    return str(value.dtype)


def _describe(name, value, kind_of) -> str:
    if not isinstance(value, Tensor):
        return f"({name}): Object of type: {type(value).__name__}"
    size = "x".join(str(extent) for extent in value.size())
    device = f" ({value.device})" if value.device.type not in ("cpu",) else ""
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"({name}): {kind} containing: [{kind_of(value)} of size {size}{device}]"


class ParameterList(Module):
    """A list of parameters that belong to the owner. Tensors put in become parameters."""

    def __init__(self, values=None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self += values

    def _get_abs_string_index(self, idx) -> str:
        index = operator.index(idx)
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} is out of range")
        return str(index + len(self) if index < 0 else index)

    def __getitem__(self, idx):
        if isinstance(idx, slice):
            start, stop, step = idx.indices(len(self))
            out = self.__class__()
            for index in range(start, stop, step):
                out.append(self[index])
            return out
        return getattr(self, self._get_abs_string_index(idx))

    def __setitem__(self, idx: int, param) -> None:
        setattr(self, self._get_abs_string_index(idx), _as_parameter(param))

    def __len__(self) -> int:
        return self._size

    def __iter__(self):
        return iter(self[index] for index in range(len(self)))

    def __iadd__(self, parameters) -> ParameterList:
        return self.extend(parameters)

    def __dir__(self) -> list[str]:
        return [key for key in super().__dir__() if not key.isdigit()]

    def append(self, value) -> ParameterList:
        """Adds a value at the end."""
        index = len(self)
        self._size += 1
        self[index] = value
        return self

    def extend(self, values) -> ParameterList:
        """Adds the values of an iterable at the end."""
        if not hasattr(values, "__iter__") or isinstance(values, Tensor):
            raise TypeError(
                "ParameterList.extend should be called with an iterable, but got "
                + type(values).__name__
            )
        for value in values:
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return "\n".join("  " + _describe(index, value, _dtype) for index, value in enumerate(self))

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dictionary of parameters that belong to the owner. Tensors put in become parameters."""

    def __init__(self, parameters=None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def _key_to_attr(self, key: str) -> str:
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string (type "
                "is "
                f"'{type(key).__name__}'). Open an issue on github if you need non-string keys."
            )
        return key

    def __getitem__(self, key: str):
        return getattr(self, self._key_to_attr(key))

    def __setitem__(self, key: str, value) -> None:
        self._keys[key] = None
        setattr(self, self._key_to_attr(key), _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._key_to_attr(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self):
        return iter(self._keys)

    def __reversed__(self):
        return reversed(list(self._keys))

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        """Another dictionary of the same parameters."""
        return ParameterDict({key: self[key] for key in self._keys})

    def setdefault(self, key: str, default=None):
        """The value at `key`, which is `default` from now on if there was none."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Takes out all values."""
        for key in self._keys.copy():
            del self[key]

    def pop(self, key: str):
        """Takes out a value and gives it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, object]:
        """Takes out the (key, value) pair inserted last and gives it."""
        key, _ = self._keys.popitem()
        self._keys[key] = None
        value = self.pop(key)
        return key, value

    def get(self, key: str, default=None):
        """The value at `key`, or `default`."""
        return self[key] if key in self else default

    def fromkeys(self, keys, default=None) -> ParameterDict:
        """A dictionary with the given keys, all of them with the same value."""
        return ParameterDict((key, default) for key in keys)

    def keys(self):
        """The keys."""
        return self._keys.keys()

    def items(self):
        """The (key, value) pairs."""
        return ((key, self[key]) for key in self._keys)

    def values(self):
        """The values."""
        return (self[key] for key in self._keys)

    def update(self, parameters) -> None:
        """Adds or replaces values from a mapping or from (key, value) pairs."""
        if not hasattr(parameters, "__iter__"):
            raise TypeError(
                "ParametersDict.update should be called with an iterable of key/value pairs, but "
                "got " + type(parameters).__name__
            )
        if isinstance(parameters, ParameterDict) or hasattr(parameters, "keys"):
            from collections import OrderedDict

            pairs = list(parameters.items())
            if not isinstance(parameters, ParameterDict | OrderedDict):
                pairs.sort()
        else:
            from .container import _pairs

            pairs = list(_pairs(parameters, "ParameterDict"))
        for key, value in pairs:
            self[key] = value

    def extra_repr(self) -> str:
        return "\n".join("  " + _describe(key, value, typename) for key, value in self.items())

    def __call__(self, input):
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other: ParameterDict) -> ParameterDict:
        copy = self.copy()
        copy.update(other)
        return copy

    def __ror__(self, other: ParameterDict) -> ParameterDict:
        copy = other.copy()
        copy.update(self)
        return copy

    def __ior__(self, other: ParameterDict) -> ParameterDict:
        self.update(other)
        return self
