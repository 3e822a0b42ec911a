"""Sizes that a trace follows: numbers that know how they were made of tensors' sizes."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rushlight.fx.node import Node
    from rushlight.jit._record import Recorder


class TracedSize(int):
    """A size as a number. Sums, products and quotients of it are written down, too."""

    _node: Node
    _recorder: Recorder


def traced_size(value: int, node: Node, recorder: Recorder) -> TracedSize:
    """The number that a node gives."""
    made = TracedSize(value)
    made._node = node
    made._recorder = recorder
    return made


def _define(name: str, reflected: bool) -> None:
    function = getattr(operator, name)

    def method(self: TracedSize, other: Any) -> Any:
        if not isinstance(other, int):
            plain = getattr(int, f"__{'r' if reflected else ''}{name}__")
            return plain(self, other)
        pair = (other, self) if reflected else (self, other)
        value = function(*map(int, pair))
        recorder = self._recorder
        if not isinstance(value, int) or not recorder.is_open:
            return value
        node = recorder.graph.call_function(function, recorder.argument(pair))
        return traced_size(value, node, recorder)

    setattr(TracedSize, f"__{'r' if reflected else ''}{name}__", method)


def _negated(self: TracedSize) -> Any:
    return 0 - self


TracedSize.__neg__ = _negated
for _name in ("add", "sub", "mul", "floordiv", "mod"):
    _define(_name, False)
    _define(_name, True)
