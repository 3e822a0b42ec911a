"""Common subexpressions: equal calls of operators become one."""

from __future__ import annotations

from typing import Any

from rushlight import ops
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node, map_aggregate
from rushlight.fx.passes.infra.pass_base import PassBase, PassResult

__all__ = ["CSEPass", "get_CSE_banned_ops"]

_RANDOM = """
    dropout _fused_dropout _standard_gamma bernoulli multinomial native_dropout normal poisson
    binomial rrelu rand_like rand randint randn randperm
"""
_FACTORIES = "empty empty_like empty_strided new_empty new_empty_strided"


def get_CSE_banned_ops() -> set[Any]:
    """The operators whose calls stay apart: they draw random numbers, write, or give new memory."""
    names = [*_RANDOM.split(), *_FACTORIES.split()]
    found = (getattr(ops.aten, name, None) for name in names)
    return {packet for packet in found if packet is not None}


def _writes(node: Node) -> bool:
    schema = getattr(node.target, "_schema", None)
    return schema is not None and schema.is_mutable


class CSEPass(PassBase):
    """Has equal calls of aten operators be one. banned_ops: whose calls stay apart.

    Graphs with operators that write are left as they are.
    """

    def __init__(self, banned_ops: set[Any] | None = None) -> None:
        self.banned_ops = banned_ops if banned_ops is not None else set()
        super().__init__()

    def call(self, graph_module: GraphModule) -> PassResult:
        """The module with the smaller graph, and whether it is smaller."""
        banned = self.banned_ops or get_CSE_banned_ops()
        if any(_writes(node) for node in graph_module.graph.nodes):
            return PassResult(graph_module, False)
        graph, known = Graph(), {}
        seen: dict[Any, Node] = {}
        changed = False
        for node in graph_module.graph.nodes:
            packet = getattr(node.target, "overloadpacket", None)
            if node.op != "call_function" or packet is None or packet in banned:
                known[node] = graph.node_copy(node, lambda n: known[n])
                continue
            key = (node.target, *(_key(part, known) for part in (node.args, node.kwargs)))
            if key in seen:
                known[node] = seen[key]
                changed = True
                continue
            known[node] = seen[key] = graph.node_copy(node, lambda n: known[n])
        if changed:
            graph_module = GraphModule(graph_module, graph)
        return PassResult(graph_module, changed)


def _key(value: Any, known: dict[Node, Node]) -> Any:
    """Arguments as a key: 1 and 1.0 and True are not the same."""

    def leaf(item: Any) -> Any:
        if isinstance(item, Node):
            return known[item]
        if isinstance(item, slice):
            return ("slice", item.start, item.stop, item.step)
        return (type(item), repr(item))

    made = map_aggregate(value, leaf)
    return tuple(sorted(made.items())) if isinstance(made, dict) else made
