"""Shapes and dtypes of a graph's nodes, found by running it."""

from __future__ import annotations

import rushlight
from rushlight.fx.interpreter import Interpreter
from rushlight.fx.node import Node, TensorMetadata, map_aggregate


def _extract_tensor_metadata(result: rushlight.Tensor) -> TensorMetadata:
    """How a tensor looks."""
    formats = (rushlight.contiguous_format, rushlight.channels_last, rushlight.channels_last_3d)
    return TensorMetadata(
        result.shape,
        result.dtype,
        result.requires_grad,
        result.stride(),
        next((f for f in formats if _is_laid_out(result, f)), None),
        False,
        {},
    )


def _is_laid_out(tensor: rushlight.Tensor, memory_format: object) -> bool:
    dims = {rushlight.channels_last: 4, rushlight.channels_last_3d: 5}.get(memory_format)
    return dims in (None, tensor.dim()) and tensor.is_contiguous(memory_format=memory_format)


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
            return _extract_tensor_metadata(item)

        described = map_aggregate(result, describe)
        if found:
            n.meta["tensor_meta"] = described
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: object) -> object:
        """Runs the graph; gives its result."""
        return self.run(*args)
