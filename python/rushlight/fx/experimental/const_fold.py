"""Computing once what does not depend on a graph's inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight as torch
from rushlight import fx
from rushlight.fx.graph_module import _get_attr
from rushlight.fx.node import Node, map_arg
from rushlight.fx.proxy import Proxy

__all__ = ["FoldedGraphModule", "split_const_subgraphs"]

_NAME = "_FX_CONST_FOLDED_ATTRS"


class FoldedGraphModule(fx.GraphModule):
    """A module that computes its constants in the first call, or in `run_folding`.

    const_subgraph_module: gives the constants; None where there are none.
    """

    def __init__(
        self,
        root: torch.nn.Module | dict[str, Any],
        graph: fx.Graph,
        const_subgraph: fx.Graph | None = None,
        fx_const_folded_attrs_name: str | None = None,
        device_for_folded_attrs: str = "cpu",
    ) -> None:
        super().__init__(root, graph)
        self.const_subgraph_module = None
        if const_subgraph is not None:
            self.const_subgraph_module = fx.GraphModule(root, const_subgraph)
        self.has_folding_been_run = False
        self.fx_const_folded_attrs_name = fx_const_folded_attrs_name
        self.device_for_folded_attrs = device_for_folded_attrs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.has_folding_been_run:
            self.run_folding()
        return super().__call__(*args, **kwargs)

    def run_folding(self) -> None:
        """Computes the constants."""
        if self.const_subgraph_module is None or self.fx_const_folded_attrs_name is None:
            return
        if self.has_folding_been_run:
            raise AssertionError("Folding has already been run")
        self.has_folding_been_run = True
        made = self.const_subgraph_module()
        delattr(self, self.fx_const_folded_attrs_name)

        def kept(value: torch.Tensor) -> torch.nn.Parameter:
            value = value.detach() if not isinstance(value, int) else torch.tensor(value)
            return torch.nn.Parameter(value.to(self.device_for_folded_attrs), requires_grad=False)

        if isinstance(made, torch.Tensor):
            setattr(self, self.fx_const_folded_attrs_name, kept(made))
        else:
            values = torch.nn.ParameterList([kept(value) for value in made])
            setattr(self, self.fx_const_folded_attrs_name, values)


def split_const_subgraphs(
    module: torch.nn.Module,
    skip_folding_node_fn: Callable[[Node], bool] | None = None,
    device_for_folded_attrs: str = "cpu",
) -> FoldedGraphModule:
    """The module, traced, with a graph that computes once what reads attributes alone.

    skip_folding_node_fn: says which nodes stay where they are.
    """
    gm = module if isinstance(module, fx.GraphModule) else fx.symbolic_trace(module)
    constant: dict[Node, None] = {}
    for node in gm.graph.nodes:
        if node.op in ("placeholder", "output"):
            continue
        if node.op != "get_attr" and not set(node.all_input_nodes) <= set(constant):
            continue
        if skip_folding_node_fn and skip_folding_node_fn(node):
            continue
        if node.op == "call_module" or node.is_impure() or not (node.op == "get_attr" or node.args):
            continue
        constant[node] = None
    rest = [node for node in gm.graph.nodes if node not in constant]
    used = dict.fromkeys(source for node in rest for source in node.all_input_nodes)
    folded = [node for node in used if node in constant and node.op != "get_attr"]
    if not folded:
        return FoldedGraphModule(gm, gm.graph, None, None, device_for_folded_attrs)
    first, inner = fx.Graph(), {}
    for node in constant:
        inner[node] = first.node_copy(node, lambda n: inner[n])
    results = tuple(inner[node] for node in folded)
    first.output(results[0] if len(results) == 1 else results)
    first.eliminate_dead_code()
    return _folded(gm, first, folded, constant, device_for_folded_attrs)


def _folded(
    gm: fx.GraphModule, first: fx.Graph, folded: list[Node], constant: dict, device: str
) -> FoldedGraphModule:
    graph, known = fx.Graph(), {}
    for node in gm.graph.nodes:
        if node.op == "placeholder":
            known[node] = graph.node_copy(node)
    values = graph.get_attr(_NAME)
    for number, node in enumerate(folded):
        known[node] = values if len(folded) == 1 else Proxy(values)[number].node

    def find(node: Node) -> Node:
        if node not in known:  # an attribute that is not folded
            known[node] = graph.node_copy(node)
        return known[node]

    for node in gm.graph.nodes:
        if node.op == "placeholder" or node in constant:
            continue
        for source in node.all_input_nodes:
            find(source)
        if node.op == "output":
            graph.output(map_arg(node.args[0], find))
        else:
            known[node] = graph.node_copy(node, find)
    wanted = (*graph.nodes, *first.nodes)
    root = {
        str(node.target): _get_attr(gm, str(node.target))
        for node in wanted
        if node.op in ("get_attr", "call_module") and node.target != _NAME
    }
    root[_NAME] = torch.nn.Parameter(torch.empty(0), requires_grad=False)  # until it is folded
    return FoldedGraphModule(root, graph, first, _NAME, device)
