"""Shapes and dtypes of a graph's nodes, found by running it."""

from __future__ import annotations

import rushlight
from rushlight.fx.interpreter import Interpreter
from rushlight.fx.node import Node, TensorMetadata, map_aggregate


class ShapeProp(Interpreter):
    """Runs a graph on example inputs; each node's meta has `tensor_meta` and `type` afterwards."""

    def run_node(self, n: Node) -> object:
        """What a node gives; how it looks goes into the node's meta."""
        result = super().run_node(n)
        found = False

        def describe(item: object) -> object:
            nonlocal found
            if not isinstance(item, rushlight.Tensor):
                return item
            found = True
            return TensorMetadata(tuple(item.shape), item.dtype, item.stride())

        described = map_aggregate(result, describe)
        if found:
            n.meta["tensor_meta"] = described
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: object) -> object:
        """Runs the graph; gives its result."""
        return self.run(*args)
