"""Passes for inference: normalisations into convolutions, dropout left out."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from rushlight import fx, nn
from rushlight.nn.utils.fusion import fuse_conv_bn_eval

__all__ = ["extract_subgraph", "fuse", "matches_module_pattern", "remove_dropout"]

_CONV_BN = (
    (nn.Conv1d, nn.BatchNorm1d), (nn.Conv2d, nn.BatchNorm2d), (nn.Conv3d, nn.BatchNorm3d),
)  # fmt: skip


def matches_module_pattern(pattern: Iterable[type], node: fx.Node, modules: dict[str, Any]) -> bool:
    """Whether the node's first argument and the node call modules of these two classes."""
    if len(node.args) == 0:
        return False
    for kind, current in zip(pattern, (node.args[0], node)):
        if not isinstance(current, fx.Node) or current.op != "call_module":
            return False
        if type(modules.get(current.target)) is not kind:
            return False
    return True


def replace_node_module(node: fx.Node, modules: dict[str, Any], new_module: nn.Module) -> None:
    """Puts another module where the node calls one."""
    parent, _, name = str(node.target).rpartition(".")
    modules[node.target] = new_module
    setattr(modules[parent], name, new_module)


def fuse(model: nn.Module, inplace: bool = False, no_trace: bool = False) -> nn.Module:
    """The model, traced, with the batch normalisations after convolutions made part of these.

    For a model in eval mode; normalisations without running statistics stay. inplace: the model's
    own modules change. no_trace: `model` is a GraphModule.
    """
    if not inplace:
        model = copy.deepcopy(model)
    if not no_trace:
        traced = fx.symbolic_trace(model)
    elif isinstance(model, fx.GraphModule):
        traced = model
    else:
        raise AssertionError(f"fuse: no_trace needs a GraphModule, got {type(model)}")
    modules = dict(traced.named_modules())
    graph = copy.deepcopy(traced.graph)
    for pattern in _CONV_BN:
        for node in graph.nodes:
            if not matches_module_pattern(pattern, node, modules):
                continue
            convolution, normalisation = modules[node.args[0].target], modules[node.target]
            if len(node.args[0].users) > 1 or not normalisation.track_running_stats:
                continue
            fused = fuse_conv_bn_eval(convolution, normalisation)
            replace_node_module(node.args[0], modules, fused)
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
    return fx.GraphModule(traced, graph)


def remove_dropout(model: nn.Module) -> nn.Module:
    """The model, traced, without its Dropout modules."""

    class Without(fx.Transformer):
        """Gives what a dropout takes."""

        def call_module(self, target: str, args: tuple, kwargs: dict) -> Any:
            if isinstance(self.submodules[target], nn.Dropout):
                return args[0]
            return super().call_module(target, args, kwargs)

    return Without(fx.symbolic_trace(model)).transform()


def extract_subgraph(
    orig_module: nn.Module, nodes: list[fx.Node], inputs: list[fx.Node], outputs: list[fx.Node]
) -> fx.GraphModule:
    """A module of some nodes of a graph, of the values of `inputs`; it gives those of `outputs`."""
    graph = fx.Graph()
    known = {node: graph.placeholder(node.name) for node in inputs}
    for node in nodes:
        known[node] = graph.node_copy(node, lambda n: known[n])
    graph.output([known[node] for node in outputs])
    graph.lint()
    return fx.GraphModule(orig_module, graph)
