"""Dividing a graph by the tags of its nodes."""

from __future__ import annotations

from typing import Any

from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule, _get_attr
from rushlight.fx.node import Node, map_arg
from rushlight.fx.proxy import Proxy

__all__ = ["split_by_tags"]

_OUTSIDE = ("placeholder", "get_attr", "output")


def split_by_tags(
    gm: GraphModule,
    tags: list[str],
    return_fqn_mapping: bool = False,
    return_tuple: bool = False,
    GraphModuleCls: type[GraphModule] = GraphModule,
) -> Any:
    """A module that calls one submodule for each tag, in this order, of the nodes with `node.tag`.

    return_fqn_mapping: gives also the paths that modules had, by their new ones. return_tuple:
    submodules give tuples always.
    """
    groups: dict[str, list[Node]] = {tag: [] for tag in tags}
    for node in gm.graph.nodes:
        if node.op not in _OUTSIDE:
            tag = getattr(node, "tag", None)
            if tag not in groups:
                raise AssertionError(f"split_by_tags: node {node} has the tag {tag}, not in {tags}")
            groups[tag].append(node)
    graph, known, members, names = Graph(), {}, {}, {}
    for node in gm.graph.nodes:
        if node.op == "placeholder":
            known[node] = graph.placeholder(str(node.target), node.type, *node.args)
            known[node].meta = node.meta.copy()
    for tag, nodes in groups.items():
        if nodes:
            made, inputs, outputs = _component(gm, nodes, return_tuple, GraphModuleCls)
            members[tag] = made
            paths = [str(n.target) for n in nodes if n.op == "call_module"]
            names.update({f"{tag}.{path}": path for path in paths})
            call = graph.call_module(
                tag, tuple(map(lambda n: _known(gm, graph, members, known, n), inputs))
            )
            if len(outputs) == 1 and not return_tuple:
                known[outputs[0]] = call
            else:
                for number, node in enumerate(outputs):
                    known[node] = Proxy(call)[number].node
    output = gm.graph.output_node()
    result = map_arg(output.args[0], lambda n: _known(gm, graph, members, known, n))
    graph.output(result, output.type)
    whole = GraphModuleCls(members, graph)
    return (whole, names) if return_fqn_mapping else whole


def _known(gm: GraphModule, graph: Graph, members: dict, known: dict, node: Node) -> Node:
    """What stands for a node outside; attributes are read where they are wanted."""
    if node not in known and node.op == "get_attr":
        members[str(node.target)] = _get_attr(gm, str(node.target))
        known[node] = graph.get_attr(str(node.target))
    return known[node]


def _component(
    gm: GraphModule, nodes: list[Node], tuples: bool, kind: type[GraphModule]
) -> tuple[GraphModule, list[Node], list[Node]]:
    graph, known, inside = Graph(), {}, set(nodes)
    taken = dict.fromkeys(s for n in nodes for s in n.all_input_nodes if s not in inside)
    inputs = [node for node in taken if node.op != "get_attr"]
    for node in inputs:
        known[node] = graph.placeholder(node.name, node.type)
        known[node].meta = node.meta.copy()

    def find(node: Node) -> Node:
        if node not in known:  # an attribute, which the component reads itself
            known[node] = graph.node_copy(node)
        return known[node]

    for node in nodes:
        for source in node.all_input_nodes:
            find(source)
        known[node] = graph.node_copy(node, find)
    outputs = [node for node in nodes if any(user not in inside for user in node.users)]
    results = tuple(known[node] for node in outputs)
    graph.output(results[0] if len(results) == 1 and not tuples else results)
    return kind(gm, graph), inputs, outputs
