"""Which nodes something can do: a device, a compiler, a format."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence

import rushlight as torch
from rushlight.fx.node import Node, TensorMetadata
from rushlight.fx.passes.tools_common import CALLABLE_NODE_OPS, get_node_target
from rushlight.nn.modules.module import Module

__all__ = [
    "OpSupports", "OperatorSupport", "OperatorSupportBase", "any_chain", "chain",
    "create_op_support",
]  # fmt: skip

Submodules = Mapping[str, Module]
# Which dtypes are supported, by argument; None: all.
Dtypes = tuple[Sequence[Sequence[torch.dtype]], dict[str, Sequence[torch.dtype]]] | None


class OperatorSupportBase(abc.ABC):
    """Says which nodes are supported."""

    @abc.abstractmethod
    def is_node_supported(self, submodules: Submodules, node: Node) -> bool:
        """Whether a node is; submodules: those of the module by path."""


class OperatorSupport(OperatorSupportBase):
    """Supports the targets that `support_dict` names, as get_node_target does.

    Its values are None, or which dtypes arguments may have, by position and by name; dtypes are
    those that ShapeProp noted.
    """

    _support_dict: Mapping[str, Dtypes] = {}

    def __init__(self, support_dict: Mapping[str, Dtypes] | None = None) -> None:
        self._support_dict = support_dict or self._support_dict

    def is_node_supported(self, submodules: Submodules, node: Node) -> bool:
        """Whether a node is; inputs and outputs always are."""
        if node.op not in CALLABLE_NODE_OPS:
            return True
        target = get_node_target(submodules, node)
        if target not in self._support_dict:
            return False
        dtypes = self._support_dict[target]
        if dtypes is None:
            return True
        by_position, by_name = dtypes
        pairs = [*zip(node.args, by_position)]
        pairs += [
            (node.kwargs[name], allowed) for name, allowed in by_name.items() if name in node.kwargs
        ]
        return all(_dtype(arg) in allowed for arg, allowed in pairs if isinstance(arg, Node))


def _dtype(node: Node) -> torch.dtype | None:
    meta = node.meta.get("tensor_meta")
    return meta.dtype if isinstance(meta, TensorMetadata) else None


class _FunctionSupport(OperatorSupportBase):
    def __init__(self, function: Callable[[Submodules, Node], bool]) -> None:
        self._function = function

    def is_node_supported(self, submodules: Submodules, node: Node) -> bool:
        return self._function(submodules, node)


def create_op_support(
    is_node_supported: Callable[[Submodules, Node], bool],
) -> OperatorSupportBase:
    """Supports the nodes for which a function says so."""
    return _FunctionSupport(is_node_supported)


def chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Supports what all of these support."""
    return create_op_support(lambda m, n: all(one.is_node_supported(m, n) for one in op_support))


def any_chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Supports what one of these supports."""
    return create_op_support(lambda m, n: any(one.is_node_supported(m, n) for one in op_support))


class OpSupports:
    """Common answers."""

    @classmethod
    def decline_if_input_dtype(cls, dtype: torch.dtype) -> OperatorSupportBase:
        """Supports nodes none of whose inputs is a tensor of this dtype."""
        return create_op_support(
            lambda m, node: all(_dtype(source) is not dtype for source in node.all_input_nodes)
        )

    @classmethod
    def decline_if_node_in_names(cls, disallow_set: set[str]) -> OperatorSupportBase:
        """Supports nodes whose names are not among these."""
        return create_op_support(lambda m, node: node.name not in disallow_set)
