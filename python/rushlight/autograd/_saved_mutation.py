"""allow_mutation_on_saved_tensors: in-place writes copy what backward needs first."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from typing import Any

from rushlight import _C
from rushlight._C import Tensor
from rushlight.autograd.graph import saved_tensors_hooks
from rushlight.utils._python_dispatch import TorchDispatchMode
from rushlight.utils._pytree import tree_leaves


class _Handle:
    """Stands for one saved tensor in the graph."""


class _AllowMutationOnSavedContext:
    """The saved tensors of a block: as they are, or copied because they were written."""

    def __init__(self) -> None:
        self.cloned: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
        self.original: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
        self.handles: dict[int, weakref.WeakSet] = {}  # by storage

    def clear(self) -> None:
        """Forgets all of them."""
        self.cloned.clear()
        self.original.clear()
        self.handles.clear()

    def pack(self, tensor: Tensor) -> _Handle:
        """Notes a saved tensor."""
        handle = _Handle()
        self.original[handle] = tensor
        self.handles.setdefault(_C._storage_id(tensor), weakref.WeakSet()).add(handle)
        return handle

    def unpack(self, handle: _Handle) -> Tensor:
        """The tensor as it was when it was saved."""
        if not _inside:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context"
                "in which the graph was originally recorded."
            )
        kept = self.cloned.get(handle)
        return self.original[handle] if kept is None else kept

    def before_write(self, tensor: Tensor) -> None:
        """Copies the saved tensors that share the memory of one that is about to be written."""
        for handle in list(self.handles.pop(_C._storage_id(tensor), ())):
            self.cloned[handle] = self.original.pop(handle).clone()


class _WatchWrites(TorchDispatchMode):
    def __init__(self, context: _AllowMutationOnSavedContext) -> None:
        super().__init__()
        self._context = context

    def __torch_dispatch__(
        self, func: Any, types: tuple, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs = kwargs or {}
        for number, argument in enumerate(func._schema.arguments):
            if not argument.is_write:
                continue
            value = args[number] if number < len(args) else kwargs.get(argument.name)
            for leaf in tree_leaves(value):
                if isinstance(leaf, Tensor) and not leaf.is_meta:
                    self._context.before_write(leaf)
        return func(*args, **kwargs)


_inside: list[_AllowMutationOnSavedContext] = []


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_AllowMutationOnSavedContext]:
    """Context in which tensors that backward needs may be written in place.

    Those that are get copied before. Backward has to run inside it too. It yields the record of
    saved tensors, whose clear() frees them early.
    """
    if _inside:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    context = _AllowMutationOnSavedContext()
    with saved_tensors_hooks(context.pack, context.unpack), _WatchWrites(context):
        _inside.append(context)
        try:
            yield context
        finally:
            _inside.pop()
            context.clear()
