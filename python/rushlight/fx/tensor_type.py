"""Types of tensors by their sizes, for programs that check shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["Dyn", "TensorType", "is_consistent", "is_more_precise"]


class TensorType:
    """The type of tensors of these sizes, each of which is a number or `Dyn`: any."""

    def __init__(self, dim: Sequence[Any]) -> None:
        self.__origin__ = TensorType
        self.__args__ = dim

    @property
    def dims(self) -> Sequence[Any]:
        """The sizes."""
        return self.__args__

    def __repr__(self) -> str:
        return f"TensorType[{self.__args__}]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorType) and list(self.__args__) == list(other.__args__)

    __hash__ = None

    @staticmethod
    def __class_getitem__(*args: Any) -> TensorType:
        return TensorType(args[0] if len(args) == 1 and isinstance(args[0], tuple) else args)


class _DynType:
    """Any type."""

    def __init__(self) -> None:
        self.__name__ = "_DynType"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _DynType)

    def __hash__(self) -> int:
        return hash(_DynType)

    def __repr__(self) -> str:
        return "Dyn"


Dyn = _DynType()


def _all(test: Any, t1: TensorType, t2: TensorType) -> bool:
    one, other = t1.__args__, t2.__args__
    return len(one) == len(other) and all(map(test, one, other))


def is_consistent(t1: object, t2: object) -> bool:
    """Whether a value can be of both types."""
    if t1 == t2 or t1 == Dyn or t2 == Dyn:
        return True
    if isinstance(t1, TensorType) and isinstance(t2, TensorType):
        return _all(is_consistent, t1, t2)
    return False


def is_more_precise(t1: object, t2: object) -> bool:
    """Whether each value of the first type is of the second."""
    if t1 == t2 or t2 == Dyn:
        return True
    if isinstance(t1, TensorType) and isinstance(t2, TensorType):
        return _all(is_more_precise, t1, t2)
    return False
