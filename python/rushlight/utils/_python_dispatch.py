"""Questions about subclasses of Tensor that wrap other tensors."""

from __future__ import annotations

from rushlight import Tensor


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether an object is of a subclass that says how it is made of plain tensors."""
    return is_traceable_wrapper_subclass_type(type(t))


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Whether a class is such a subclass: it has __tensor_flatten__ and __tensor_unflatten__."""
    return (
        issubclass(t, Tensor)
        and t is not Tensor
        and hasattr(t, "__tensor_flatten__")
        and hasattr(t, "__tensor_unflatten__")
    )
