"""swap_tensors: two tensors exchange everything but their identity."""

from __future__ import annotations

import copyreg
import weakref

from rushlight import Tensor


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Makes each object the tensor that the other was, with its class, attributes and gradient;
    whoever holds one of them then sees the other's numbers. Weak references are not followed.
    """
    for name, tensor in (("t1", t1), ("t2", t2)):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"swap_tensors(): argument '{name}' must be Tensor, not {type(tensor)}")
        if weakref.getweakrefs(tensor):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    slots = set(copyreg._slotnames(type(t1)))
    if slots != set(copyreg._slotnames(type(t2))):
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    t1.__dict__, t2.__dict__ = t2.__dict__, t1.__dict__
    for name in slots:
        _swap_slot(t1, t2, name)
    Tensor._swap(t1, t2)


def _swap_slot(t1: Tensor, t2: Tensor, name: str) -> None:
    held = [(hasattr(tensor, name), getattr(tensor, name, None)) for tensor in (t1, t2)]
    for tensor, (is_set, value) in zip((t2, t1), held, strict=True):
        if is_set:
            setattr(tensor, name, value)
        elif hasattr(tensor, name):
            delattr(tensor, name)
