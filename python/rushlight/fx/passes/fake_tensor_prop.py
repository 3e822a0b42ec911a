"""Shapes and dtypes of a graph's nodes, found by running it on fake tensors."""

from __future__ import annotations

from typing import Any

from rushlight import Tensor
from rushlight._subclasses.fake_tensor import FakeTensorMode
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.interpreter import Interpreter
from rushlight.fx.node import Node
from rushlight.fx.passes.shape_prop import _extract_tensor_metadata
from rushlight.utils._pytree import tree_map_only

__all__ = ["FakeTensorProp"]


class FakeTensorProp(Interpreter):
    """Runs a graph on fake tensors: each node's meta has its result as `val` afterwards."""

    def __init__(self, module: GraphModule, mode: FakeTensorMode | None = None) -> None:
        super().__init__(module)
        self._mode = mode if mode is not None else FakeTensorMode(allow_non_fake_inputs=True)

    def run_node(self, n: Node) -> Any:
        """What a node gives, which goes into the node's meta."""
        result = super().run_node(n)
        n.meta["val"] = result
        if isinstance(result, Tensor):
            n.meta["tensor_meta"] = _extract_tensor_metadata(result)
        return result

    def propagate(self, *args: object) -> Any:
        """Runs the graph on fakes of these arguments; gives its result."""
        return self.propagate_dont_convert_inputs(
            *tree_map_only(Tensor, self._mode.from_tensor, args)
        )

    def propagate_dont_convert_inputs(self, *args: object) -> Any:
        """Runs the graph on these arguments, which are fake; gives its result."""
        with self._mode:
            return super().run(*args)
