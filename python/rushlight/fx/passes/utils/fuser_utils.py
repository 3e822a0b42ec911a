"""Putting a submodule in the place of nodes."""

from __future__ import annotations

from collections.abc import Iterable

from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.fx.passes.tools_common import legalize_graph
from rushlight.fx.proxy import Proxy

__all__ = ["erase_nodes", "fuse_as_graphmodule", "fuse_by_partitions", "insert_subgm", "topo_sort"]


def topo_sort(nodes: Iterable[Node]) -> list[Node]:
    """Nodes of a graph in its order, in which each comes after those that it takes."""
    nodes = list(nodes)
    inside = set(nodes)
    return [node for node in nodes[0].graph.nodes if node in inside] if nodes else []


def fuse_as_graphmodule(
    gm: GraphModule, nodes: list[Node], module_name: str, always_return_tuple: bool = False
) -> tuple[GraphModule, tuple[Node, ...], tuple[Node, ...]]:
    """A module of these nodes, what it takes, and the nodes whose values it gives."""
    graph, known = Graph(), {}
    inputs: dict[Node, Node] = {}
    inside = set(nodes)

    def find(node: Node) -> Node:
        if node in known:
            return known[node]
        if node not in inputs:
            made = graph.placeholder(node.name)
            made.meta = node.meta.copy()
            inputs[node] = made
        return inputs[node]

    first_inputs = [s for node in nodes for s in node.all_input_nodes if s not in inside]
    for source in dict.fromkeys(first_inputs):
        find(source)
    for node in nodes:
        known[node] = graph.node_copy(node, find)
    outputs = tuple(node for node in nodes if any(user not in inside for user in node.users))
    results = tuple(known[node] for node in outputs)
    graph.output(results if len(results) != 1 or always_return_tuple else results[0])
    graph.lint()
    return GraphModule(gm, graph, module_name), tuple(inputs), outputs


def insert_subgm(
    gm: GraphModule,
    sub_gm: GraphModule,
    orig_inputs: tuple[Node, ...],
    orig_outputs: tuple[Node, ...],
    insertion_point: Node | None = None,
) -> GraphModule:
    """Has the module call another, whose results take the place of `orig_outputs`.

    The call stands after insertion_point, or at the end; `legalize_graph` puts it into its place.
    """
    name = type(sub_gm).__name__
    gm.add_submodule(name, sub_gm)
    at = insertion_point.next if insertion_point is not None else gm.graph.output_node()
    with gm.graph.inserting_before(at):
        call = gm.graph.call_module(name, orig_inputs)
        if len(orig_outputs) == 1 and isinstance(sub_gm.graph.output_node().args[0], Node):
            results = [call]
        else:
            results = [Proxy(call)[number].node for number in range(len(orig_outputs))]
    for old, new in zip(orig_outputs, results):
        old.replace_all_uses_with(new, propagate_meta=True)
    return gm


def erase_nodes(gm: GraphModule, nodes: list[Node]) -> None:
    """Takes out nodes that are in order, the last first."""
    for node in reversed(nodes):
        gm.graph.erase_node(node)


def fuse_by_partitions(
    gm: GraphModule,
    partitions: list[dict[Node, int | None]],
    prefix: str = "fused_",
    always_return_tuple: bool = False,
) -> GraphModule:
    """Puts a submodule, `prefix` and a number, in the place of each group of nodes."""
    for number, group in enumerate(partitions):
        nodes = topo_sort(group)
        made, inputs, outputs = fuse_as_graphmodule(
            gm, nodes, f"{prefix}{number}", always_return_tuple
        )
        insert_subgm(gm, made, inputs, outputs, nodes[-1])
        erase_nodes(gm, nodes)
    return legalize_graph(gm)
