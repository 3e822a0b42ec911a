"""Replacing each place where a graph does what a pattern does."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

from rushlight.fx._symbolic_trace import symbolic_trace
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule, _member
from rushlight.fx.node import Node
from rushlight.nn.modules.module import Module

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]


class Match(NamedTuple):
    """A place that was replaced: the pattern's result, and the node of each of the pattern's."""

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclasses.dataclass
class ReplacedPatterns:
    """The same, with the nodes that were put there."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


def _graph_of(pattern: Callable | Graph | GraphModule) -> Graph:
    if isinstance(pattern, Graph):
        return pattern
    if isinstance(pattern, GraphModule):
        return pattern.graph
    return symbolic_trace(pattern).graph


def _take_members(gm: GraphModule, replacement: Module) -> None:
    """Gives the module what the replacement's nodes call and read, and drops what none does."""
    gm.delete_all_unused_submodules()
    if isinstance(replacement, GraphModule):
        replacement.graph.lint()
    for node in gm.graph.nodes:
        if node.op not in ("call_module", "get_attr") or _member(gm, node.target) is not None:
            continue
        found = _member(replacement, node.target)
        if found is None:
            raise RuntimeError(
                f'Attempted to create a "{node.op}" node during subgraph rewriting with target '
                f"{node.target}, but the referenced attribute does not exist in the replacement "
                "GraphModule"
            )
        if node.op == "call_module":
            gm.add_submodule(node.target, copy.deepcopy(found))
        else:
            prefix, _, name = node.target.rpartition(".")
            setattr(_member(gm, prefix) if prefix else gm, name, copy.deepcopy(found))
    gm.graph.lint()


def replace_pattern(
    gm: GraphModule,
    pattern: Callable | GraphModule,
    replacement: Callable | GraphModule,
) -> list[Match]:
    """Puts `replacement` wherever the graph does what `pattern` does; gives the places.

    Both are functions of the same inputs with as many results, or graphs.
    """
    places = replace_pattern_with_filters(gm, pattern, replacement)
    return [Match(place.anchor, place.nodes_map) for place in places]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Callable | Graph | GraphModule,
    replacement: Callable | Graph | GraphModule | None = None,
    match_filters: list[Callable] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    """The same, only where each filter (match, original graph, pattern graph) says so.

    ignore_literals: numbers, texts and the like may differ. replacement_callback: makes a graph for
    each match, called as filters are. node_name_match: a part of the results' names.
    """
    # The matcher is of torch.fx.passes, whose modules import this package.
    from rushlight.fx.passes.utils.matcher_utils import SubgraphMatcher

    graph, wanted = gm.graph, _graph_of(pattern)
    matcher = SubgraphMatcher(wanted, ignore_literals=ignore_literals)
    matches = [
        match
        for match in matcher.match(graph, node_name_match)
        if all(accept(match, graph, wanted) for accept in match_filters or ())
    ]
    better = None
    if replacement is not None:
        better = _graph_of(replacement)
    elif replacement_callback is None:
        raise AssertionError("Must provide either replacement GraphModule or replacement_callback")
    changed: dict[Node, Node] = {}  # earlier results that later matches take
    places = []
    for match in matches:
        graph_put = better if better is not None else replacement_callback(match, graph, wanted)
        places.append(_replace(graph, wanted, graph_put, match, changed))
    gm.recompile()
    if isinstance(replacement, Module):
        _take_members(gm, replacement)
    return places


def _replace(
    graph: Graph, wanted: Graph, better: Graph, match: Any, changed: dict[Node, Node]
) -> ReplacedPatterns:
    inputs = [node for node in better.nodes if node.op == "placeholder"]
    if len(inputs) != len(match.placeholder_nodes):
        raise AssertionError(
            f"replace_pattern: the pattern takes {len(match.placeholder_nodes)} inputs, the "
            f"replacement {len(inputs)}"
        )
    values = {
        node: changed.get(given, given) if isinstance(given, Node) else given
        for node, given in zip(inputs, match.placeholder_nodes)
    }
    given = set(inputs)
    with graph.inserting_before(_first_after(graph, match.returning_nodes)):
        made = graph.graph_copy(better, values)
    results = (made,) if isinstance(made, Node) else tuple(made)
    if len(results) != len(match.returning_nodes):
        raise AssertionError(
            f"replace_pattern: the pattern has {len(match.returning_nodes)} results, the "
            f"replacement {len(results)}"
        )
    for old, new in zip(match.returning_nodes, results):
        old.replace_all_uses_with(new)
        changed[old] = new
    for node in reversed(list(wanted.nodes)):
        if node.op not in ("placeholder", "output"):
            graph.erase_node(match.nodes_map[node])
    new = [node for old, node in values.items() if old not in given]
    return ReplacedPatterns(match.anchors[0], match.nodes_map, new)


def _first_after(graph: Graph, results: list[Node]) -> Node:
    """The first user of the results, or what stands after the last of them."""
    users = {user for node in results for user in node.users}
    if users:
        return next(node for node in graph.nodes if node in users)
    return next(node for node in reversed(graph.nodes) if node in results).next
