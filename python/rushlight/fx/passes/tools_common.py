"""What passes ask of nodes, and graphs put in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING

from rushlight.fx.node import Node, qualified_name, type_name
from rushlight.nn.modules.module import Module

if TYPE_CHECKING:
    from rushlight.fx.graph_module import GraphModule

__all__ = ["CALLABLE_NODE_OPS", "get_node_target", "legalize_graph"]

CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}


def get_node_target(submodules: Mapping[str, Module], node: Node) -> str:
    """What a node calls: the class of the module, the path of the function or the method."""
    if node.op == "call_module":
        return type_name(type(submodules[str(node.target)]))
    if node.op == "call_function":
        name = qualified_name(node.target)
        return f"_{name}" if name.startswith("operator.") else name
    if node.op == "call_method":
        return str(node.target)
    raise AssertionError(
        f"Expect op types of {', '.join(sorted(CALLABLE_NODE_OPS))}, but found {node.op}"
    )


def legalize_graph(gm: GraphModule) -> GraphModule:
    """Puts nodes in an order in which each comes after what it takes; RuntimeError on a cycle."""
    waits = {node: len(node.all_input_nodes) for node in gm.graph.nodes}
    ready = deque(node for node, count in waits.items() if count == 0 and node.op == "placeholder")
    ready.extend(node for node, count in waits.items() if count == 0 and node.op != "placeholder")
    order = []
    while ready:
        node = ready.popleft()
        order.append(node)
        for user in node.users:
            waits[user] -= 1
            if waits[user] == 0:
                ready.append(user)
    if len(order) != len(waits):
        raise RuntimeError(
            f"Input graph has cycles, unable to add {[n for n in waits if n not in order]}"
        )
    order.sort(key=lambda node: node.op == "output")  # last, whatever it takes
    for node in order:
        gm.graph._root.prepend(node)
    gm.recompile()
    return gm


def is_node_output_tensor(node: Node) -> bool:
    """Whether the node gives a tensor, by what ShapeProp noted."""
    import rushlight

    kind = node.meta.get("type")
    return isinstance(kind, type) and issubclass(kind, rushlight.Tensor)
