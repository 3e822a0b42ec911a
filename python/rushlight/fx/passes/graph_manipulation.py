"""Changes of many nodes at once."""

from __future__ import annotations

from collections.abc import Callable

from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule

__all__ = ["replace_target_nodes_with"]


def replace_target_nodes_with(
    fx_module: GraphModule,
    old_op: str,
    old_target: Callable | str,
    new_op: str,
    new_target: Callable | str,
) -> None:
    """Has all nodes of a kind and target be of another, with the same arguments and names."""
    graph, known = Graph(), {}
    for node in fx_module.graph.nodes:
        made = graph.node_copy(node, lambda n: known[n])
        if node.op == old_op and node.target == old_target:
            made.op, made.target = new_op, new_target
        known[node] = made
    fx_module.graph = graph
