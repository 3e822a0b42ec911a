"""A branch in a graph: both functions as graphs of their own, and a node that chooses.

The node is `torch.ops.higher_order.cond(pred, true_graph, false_graph, operands)`. Tensors that the
functions take from around them become further operands.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import rushlight as torch
from rushlight import Tensor, fx
from rushlight._ops import HigherOrderOperator
from rushlight.fx.experimental.proxy_tensor import ProxyTorchDispatchMode
from rushlight.utils._python_dispatch import _disable_current_modes
from rushlight.utils._pytree import tree_flatten, tree_map_only, tree_unflatten


class CondOp(HigherOrderOperator):
    """torch.ops.higher_order.cond."""

    def __call__(
        self, pred: Any, true_fn: Callable, false_fn: Callable, operands: tuple = ()
    ) -> Any:
        """true_fn(*operands) where pred holds, else false_fn(*operands)."""
        from rushlight._higher_order_ops.cond import cond

        return cond(pred, true_fn, false_fn, operands)


cond_op = CondOp("cond")


class _Branch:
    """One function's graph, whose placeholders are the operands and what it takes besides."""

    def __init__(self, outer: ProxyTorchDispatchMode, function: Callable, operands: Any) -> None:
        self.graph = fx.Graph()
        self.lifted: dict[int, tuple[Tensor, fx.Node]] = {}
        mode = type(outer)(self.graph, self._lift, outer.decompositions)
        self.modules = mode.modules
        # Fresh objects: outside, they stand for other nodes.
        given = tree_map_only(Tensor, lambda tensor: tensor.detach(), operands)
        self.operands = []
        for number, leaf in enumerate(tree_flatten(given)[0]):
            if isinstance(leaf, Tensor):
                node = self.graph.placeholder(f"arg{number}")
                mode.track(leaf, node)
                self.operands.append(node)
        with _disable_current_modes(), mode, torch.no_grad():
            result = function(*given)
        leaves, self.spec = tree_flatten(result)
        if not all(isinstance(leaf, Tensor) for leaf in leaves):
            raise RuntimeError("cond: the functions must give tensors, or structures of tensors")
        self.kinds = [(leaf.shape, leaf.dtype) for leaf in leaves]
        self.outputs = mode.argument(tuple(leaves))

    def _lift(self, tensor: Tensor) -> fx.Node:
        node = self.graph.placeholder(f"lifted{len(self.lifted)}")
        self.lifted[id(tensor)] = (tensor, node)
        return node

    def module(self, name: str, lifted: dict[int, Tensor]) -> fx.GraphModule:
        """The graph with placeholders for the operands, then for `lifted` of both functions."""
        graph, known = fx.Graph(), {}
        for node in self.operands:
            known[node] = graph.placeholder(f"arg{len(known)}_1")
        for number, key in enumerate(lifted, len(known)):
            placeholder = graph.placeholder(f"arg{number}_1")
            if key in self.lifted:
                known[self.lifted[key][1]] = placeholder
        for node in self.graph.nodes:
            if node not in known:
                known[node] = graph.node_copy(node, lambda n: known[n])
        graph.output(fx.map_arg(self.outputs, lambda n: known[n]))
        graph.eliminate_dead_code()
        return fx.GraphModule(self.modules, graph, name)


def traced_cond(
    mode: ProxyTorchDispatchMode, pred: Tensor, true_fn: Callable, false_fn: Callable, operands: Any
) -> Any:
    """cond in a graph that `mode` writes: runs the function that `pred` chooses."""
    branches = [_Branch(mode, function, operands) for function in (true_fn, false_fn)]
    if branches[0].spec != branches[1].spec or branches[0].kinds != branches[1].kinds:
        raise RuntimeError(
            "cond: the branches must give the same structure of tensors of the same shapes and "
            f"dtypes, but true_fn gives {branches[0].kinds} and false_fn {branches[1].kinds}"
        )
    leaves = [leaf for leaf in tree_flatten(operands)[0] if isinstance(leaf, Tensor)]
    lifted = {key: tensor for branch in branches for key, (tensor, _) in branch.lifted.items()}
    given = (*leaves, *lifted.values())
    number = sum(name.startswith("true_graph_") for name in mode.modules)
    graphs = []
    for kind, branch in zip(("true", "false"), branches, strict=True):
        name = f"{kind}_graph_{number}"
        graphs.append(branch.module(name, lifted))
        mode.modules[name] = graphs[-1]
    nodes = [mode.graph.get_attr(f"{kind}_graph_{number}") for kind in ("true", "false")]
    node = mode.graph.call_function(cond_op, (mode.node(pred), *nodes, mode.argument(given)))
    with _disable_current_modes():
        results = cond_op(pred, *graphs, given)
    for index, result in enumerate(results):
        mode.track(result, mode.graph.call_function(operator.getitem, (node, index)))
    return tree_unflatten(list(results), branches[0].spec)
