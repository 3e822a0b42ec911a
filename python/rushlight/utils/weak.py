"""Weak references to tensors, and dictionaries whose keys are held weakly and by identity.

Tensors compare element by element, so they are told apart by identity here.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any
from weakref import ref

from rushlight import Tensor

WeakRef = ref

__all__ = [
    "TensorWeakRef",
    "WeakIdKeyDictionary",
    "WeakIdRef",
    "WeakTensorKeyDictionary",
]


class WeakIdRef(weakref.ref):
    """A weak reference that is equal to another of the same object, and hashes as its id."""

    __slots__ = ["_id"]

    def __init__(self, key: Any, callback: Any = None) -> None:
        self._id = id(key)
        super().__init__(key, callback)

    def __call__(self) -> Any:
        return super().__call__()

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        one, two = self(), other() if isinstance(other, weakref.ref) else None
        if one is not None and two is not None:
            return one is two
        return self is other

    def __ne__(self, other: object) -> bool:
        return not self == other


class WeakIdKeyDictionary(MutableMapping):
    """A dictionary whose entries go when their key, told by identity, is no longer used."""

    def __init__(self, dict: Any = None, ref_type: type = WeakIdRef) -> None:
        self.data: dict[Any, Any] = {}
        self.ref_type = ref_type
        self_ref = ref(self)

        def remove(key: Any) -> None:
            own = self_ref()
            if own is not None:
                own.data.pop(key, None)

        self._remove = remove
        if dict is not None:
            self.update(dict)

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._remove)] = value

    def __len__(self) -> int:
        return len(self.data)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"

    def __contains__(self, key: Any) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:
            return False

    def __iter__(self) -> Iterator[Any]:
        return self.keys()

    def copy(self) -> WeakIdKeyDictionary:
        """Another dictionary of the same keys and values."""
        return type(self)(self, ref_type=self.ref_type)

    __copy__ = copy

    def __deepcopy__(self, memo: dict) -> WeakIdKeyDictionary:
        import copy

        made = self.__class__()
        for key, value in self.items():
            made[key] = copy.deepcopy(value, memo)
        return made

    def get(self, key: Any, default: Any = None) -> Any:
        """The value of a key, or the default."""
        return self.data.get(self.ref_type(key), default)

    def items(self) -> Iterator[tuple[Any, Any]]:
        """The keys that are still used, with their values."""
        for reference, value in list(self.data.items()):
            key = reference()
            if key is not None:
                yield key, value

    def keys(self) -> Iterator[Any]:
        """The keys that are still used."""
        return (key for key, _ in self.items())

    def values(self) -> Iterator[Any]:
        """The values of the keys that are still used."""
        return (value for _, value in self.items())

    def keyrefs(self) -> list:
        """The weak references to the keys."""
        return list(self.data)

    def popitem(self) -> tuple[Any, Any]:
        """Takes out the last pair whose key is still used."""
        while True:
            reference, value = self.data.popitem()
            key = reference()
            if key is not None:
                return key, value

    def pop(self, key: Any, *args: Any) -> Any:
        """Takes out a value; the default, where one is given, for a key that is not there."""
        return self.data.pop(self.ref_type(key), *args)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """The value of a key, set to the default first where there is none."""
        return self.data.setdefault(self.ref_type(key, self._remove), default)

    def update(self, dict: Any = None, **kwargs: Any) -> None:
        """Takes over the pairs of a mapping, or of a sequence of pairs."""
        if dict is not None:
            pairs = dict.items() if hasattr(dict, "items") else dict
            for key, value in pairs:
                self[key] = value
        if kwargs:
            self.update(kwargs)

    def __ior__(self, other: Any) -> WeakIdKeyDictionary:
        self.update(other)
        return self

    def __or__(self, other: Any) -> Any:
        if not isinstance(other, Mapping):
            return NotImplemented
        made = self.copy()
        made.update(other)
        return made

    def __ror__(self, other: Any) -> Any:
        if not isinstance(other, Mapping):
            return NotImplemented
        made = self.__class__()
        made.update(other)
        made.update(self)
        return made

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        return {id(k): v for k, v in self.items()} == {id(k): v for k, v in other.items()}

    __hash__ = None


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor: calling it gives the tensor, or None where it is gone."""

    def __init__(self, tensor: Tensor) -> None:
        if not isinstance(tensor, Tensor):
            raise AssertionError(f"expected torch.Tensor, got {type(tensor)}.")
        self.ref = weakref.ref(tensor)

    def __call__(self) -> Tensor | None:
        return self.ref()
