"""PassBase: a transformation of a graph module, with checks before and after."""

from __future__ import annotations

import abc
from typing import NamedTuple

from rushlight.fx.graph_module import GraphModule

__all__ = ["PassBase", "PassResult"]


class PassResult(NamedTuple):
    """A graph module, and whether the pass changed it."""

    graph_module: GraphModule
    modified: bool


class PassBase(abc.ABC):
    """A pass: calling it checks what it requires, runs `call`, and checks what it ensures."""

    def __call__(self, graph_module: GraphModule) -> PassResult | None:
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module: GraphModule) -> PassResult | None:
        """Transforms the module."""

    def requires(self, graph_module: GraphModule) -> None:  # noqa: B027  a hook
        """Raises where the module is not what the pass takes."""

    def ensures(self, graph_module: GraphModule) -> None:  # noqa: B027  a hook
        """Raises where the module is not what the pass promises."""
