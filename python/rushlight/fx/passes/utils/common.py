"""Graphs as modules of their own, and whether two are the same."""

from __future__ import annotations

from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule, _assign_attr, _get_attr
from rushlight.fx.passes.utils.matcher_utils import SubgraphMatcher
from rushlight.nn.modules.module import Module

__all__ = ["HolderModule", "compare_graphs", "lift_subgraph_as_module"]


class HolderModule(Module):
    """A module of nothing but these submodules."""

    def __init__(self, d: dict[str, Module]) -> None:
        super().__init__()
        for name, module in d.items():
            self.add_module(name, module)


def lift_subgraph_as_module(
    gm: GraphModule, subgraph: Graph, comp_name: str = "", class_name: str = "GraphModule"
) -> tuple[GraphModule, dict[str, str]]:
    """A module of a graph with what that reads and calls of `gm`, and the paths in `comp_name`."""
    root, names = HolderModule({}), {}
    for node in subgraph.nodes:
        if node.op not in ("call_module", "get_attr"):
            continue
        target = str(node.target)
        *prefix, last = target.split(".")
        at: Module = root
        for name in prefix:
            if not hasattr(at, name):
                at.add_module(name, HolderModule({}))
            at = getattr(at, name)
        if not hasattr(at, last):
            value = _get_attr(gm, target)
            if isinstance(value, Module):
                at.add_module(last, value)
            else:
                _assign_attr(value, root, target)
        names[target] = f"{comp_name}.{target}"
    return GraphModule(root, subgraph, class_name), names


def compare_graphs(left: Graph, right: Graph) -> bool:
    """Whether two graphs do the same, but for names."""
    matcher = SubgraphMatcher(left, match_output=True, match_placeholder=True)
    return bool(matcher.match(right))
