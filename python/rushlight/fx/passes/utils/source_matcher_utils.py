"""The nodes of exported graphs by the modules and functions that they are calls of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rushlight.fx.graph import Graph
from rushlight.fx.node import Node, type_name

__all__ = ["SourcePartition", "check_subgraphs_connected", "get_source_partitions"]


@dataclass
class SourcePartition:
    """The nodes of one call, what they take, those whose values others use, and parameters read."""

    nodes: list[Node]
    source: Any
    input_nodes: list[Node] = field(default_factory=list)
    output_nodes: list[Node] = field(default_factory=list)
    params: list[Node] = field(default_factory=list)


def _call(node: Node) -> tuple[str, str] | None:
    """The innermost call of a module that a node was made in, and the class of that."""
    stack = node.meta.get("nn_module_stack")
    if not stack:
        return None
    key, (_, kind) = next(reversed(stack.items()))
    return key, str(kind)


def get_source_partitions(
    graph: Graph, wanted_sources: list[Any], filter_fn: Callable[[Node], bool] | None = None
) -> dict[Any, list[SourcePartition]]:
    """The calls of each of these sources: classes of modules, or names of operators ("add").

    filter_fn: calls stay out that have a node for which it is false.
    """
    found: dict[Any, dict[str, list[Node]]] = {}
    classes = {type_name(source): source for source in wanted_sources if isinstance(source, type)}
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        packet = getattr(node.target, "overloadpacket", None)
        call = _call(node)
        if packet is not None and packet.__name__ in wanted_sources:
            found.setdefault(packet.__name__, {})[node.name] = [node]
        elif call is not None and call[1] in classes:
            found.setdefault(classes[call[1]], {}).setdefault(call[0], []).append(node)
    partitions = {
        source: [_partition(nodes, source) for nodes in calls.values()]
        for source, calls in found.items()
    }
    if filter_fn is None:
        return partitions
    kept = {
        source: [part for part in parts if all(map(filter_fn, part.nodes))]
        for source, parts in partitions.items()
    }
    return {source: parts for source, parts in kept.items() if parts}


def _partition(nodes: list[Node], source: Any) -> SourcePartition:
    inside = set(nodes)
    taken = dict.fromkeys(s for node in nodes for s in node.all_input_nodes if s not in inside)
    given = [node for node in nodes if any(user not in inside for user in node.users)]
    params = [node for node in nodes if node.op == "get_attr"]
    return SourcePartition(nodes, source, list(taken), given, params)


def check_subgraphs_connected(subgraph1: SourcePartition, subgraph2: SourcePartition) -> bool:
    """Whether the second takes what the first gives."""
    given = set(subgraph1.nodes)
    return any(source in given for node in subgraph2.nodes for source in node.all_input_nodes)
