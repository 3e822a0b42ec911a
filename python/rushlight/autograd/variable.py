"""Variable: the old name of Tensor."""

from __future__ import annotations

from typing import Any

import rushlight as torch
from rushlight import _C

__all__ = ["Variable", "VariableMeta"]


class VariableMeta(type):
    """Lets isinstance(x, Variable) be true of every tensor."""

    def __instancecheck__(cls, other: Any) -> bool:
        return isinstance(other, _C.Tensor)


class _Engine:
    """What hooks use of the engine."""

    @staticmethod
    def queue_callback(callback: Any) -> None:
        """Calls callback() when the running backward ends."""
        _C._queue_callback(callback)

    @staticmethod
    def run_backward(
        tensors: tuple,
        grad_tensors: tuple,
        keep_graph: bool,
        create_graph: bool,
        inputs: tuple = (),
        allow_unreachable: bool = True,
        accumulate_grad: bool = True,
    ) -> tuple:
        return _C._run_backward(
            tuple(tensors),
            tuple(grad_tensors),
            keep_graph,
            create_graph,
            tuple(inputs),
            allow_unreachable,
            accumulate_grad,
        )


class Variable(metaclass=VariableMeta):
    """Variable(data, requires_grad=False): the data as a leaf of the graph."""

    _execution_engine = _Engine()

    def __new__(
        cls,
        data: Any = None,
        requires_grad: bool | None = None,
        volatile: bool | None = None,
        _grad_fn: Any = None,
    ) -> Any:
        if _grad_fn is not None:
            raise ValueError(f"Variable: a node cannot be given to a tensor, got {_grad_fn!r}")
        if data is None:
            data = torch.empty(0)
        return data.detach().requires_grad_(bool(requires_grad))
