"""Replacing each place where a graph does what a pattern does."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node, map_arg
from rushlight.fx.proxy import symbolic_trace


class Match(NamedTuple):
    """A place that was replaced: its last node, and the node of each of the pattern's."""

    anchor: Node
    nodes_map: dict[Node, Node]


def _graph_of(pattern: Callable | Graph | GraphModule) -> Graph:
    if isinstance(pattern, Graph):
        return pattern
    if isinstance(pattern, GraphModule):
        return pattern.graph
    return symbolic_trace(pattern).graph


def _result(graph: Graph) -> Node:
    result = graph.output_node().args[0]
    if not isinstance(result, Node):
        raise RuntimeError("replace_pattern: a pattern has one result")
    return result


def _matches(pattern: object, found: object, nodes: dict[Node, Node]) -> bool:
    if isinstance(pattern, Node):
        return isinstance(found, Node) and _node_matches(pattern, found, nodes)
    if isinstance(pattern, (list, tuple)):
        return (
            isinstance(found, (list, tuple))
            and len(pattern) == len(found)
            and all(_matches(p, f, nodes) for p, f in zip(pattern, found))
        )
    if isinstance(pattern, dict):
        return (
            isinstance(found, dict)
            and pattern.keys() == found.keys()
            and all(_matches(pattern[key], found[key], nodes) for key in pattern)
        )
    return type(pattern) is type(found) and pattern == found


def _node_matches(pattern: Node, found: Node, nodes: dict[Node, Node]) -> bool:
    if pattern in nodes:
        return nodes[pattern] is found
    if pattern.op != "placeholder" and not (
        pattern.op == found.op
        and pattern.target == found.target
        and _matches(pattern.args, found.args, nodes)
        and _matches(pattern.kwargs, found.kwargs, nodes)
    ):
        return False
    nodes[pattern] = found
    return True


def _is_closed(nodes: dict[Node, Node], result: Node) -> bool:
    """Whether nobody outside uses what is inside, but for the result."""
    inside = {found for pattern, found in nodes.items() if pattern.op != "placeholder"}
    return all(
        user in inside for found in inside if found is not nodes[result] for user in found.users
    )


def replace_pattern(
    gm: GraphModule,
    pattern: Callable | Graph | GraphModule,
    replacement: Callable | Graph | GraphModule,
) -> list[Match]:
    """Puts `replacement` wherever the graph does what `pattern` does; gives the places.

    Both are functions of the same inputs with one result, or graphs.
    """
    wanted, better = _graph_of(pattern), _graph_of(replacement)
    result = _result(wanted)
    inputs = [node for node in wanted.nodes if node.op == "placeholder"]
    better_inputs = [node for node in better.nodes if node.op == "placeholder"]
    if len(inputs) != len(better_inputs):
        raise RuntimeError("replace_pattern: pattern and replacement take different inputs")
    places: list[Match] = []
    for node in list(gm.graph.nodes):
        nodes: dict[Node, Node] = {}
        if node._erased or node.op in ("placeholder", "output"):
            continue
        if not _node_matches(result, node, nodes) or not _is_closed(nodes, result):
            continue
        copies = {new: nodes[old] for new, old in zip(better_inputs, inputs)}
        with gm.graph.inserting_before(node):
            made = gm.graph.graph_copy(better, copies)
        made = map_arg(made, lambda n: n)
        node.replace_all_uses_with(made)
        places.append(Match(node, dict(nodes)))
        for old in reversed(list(wanted.nodes)):
            if old in nodes and old.op not in ("placeholder", "output"):
                if not nodes[old].users:
                    gm.graph.erase_node(nodes[old])
    gm.recompile()
    return places
