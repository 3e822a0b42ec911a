"""Graphs whose calls have all their arguments, by name."""

from __future__ import annotations

from typing import Any

from rushlight import fx
from rushlight.fx.node import Node
from rushlight.fx.operator_schemas import normalize_function, normalize_module
from rushlight.fx.proxy import Proxy
from rushlight.utils._pytree import tree_map

__all__ = ["NormalizeArgs"]


class NormalizeArgs(fx.Transformer):
    """Fills in defaults, and gives arguments by name where the callee's signature is known.

    normalize_to_only_use_kwargs: all of them; else those that were given by position stay. Nodes'
    `meta["type"]`, which ShapeProp notes, decides between forms of an operator.
    """

    def __init__(self, module: fx.GraphModule, normalize_to_only_use_kwargs: bool = True) -> None:
        super().__init__(module)
        self.node_map: dict[Proxy, Node] = {}
        self.normalize_to_only_use_kwargs = normalize_to_only_use_kwargs

    def run_node(self, n: Node) -> Any:
        """The call, normalised."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        if n.op == "call_function":
            made = self.call_function(n.target, args, kwargs, _types(n.args), _types(n.kwargs))
        else:
            made = super().run_node(n)
        if n.op != "output" and isinstance(made, Proxy):
            self.node_map[made] = n
            made.node.meta = {**n.meta, **made.node.meta}
            made.node.type = n.type
        return made

    def call_function(
        self,
        target: Any,
        args: tuple,
        kwargs: dict[str, Any],
        arg_types: tuple | None = None,
        kwarg_types: dict[str, Any] | None = None,
    ) -> Any:
        """A function's call."""
        known = normalize_function(
            target, args, kwargs, arg_types, kwarg_types, self.normalize_to_only_use_kwargs
        )
        if known is None:
            return super().call_function(target, args, kwargs)
        return self.tracer.create_proxy("call_function", target, known.args, known.kwargs)

    def call_module(self, target: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A submodule's call."""
        known = normalize_module(
            self.module, target, args, kwargs, self.normalize_to_only_use_kwargs
        )
        return super().call_module(target, *(known or (args, kwargs)))


def _types(arguments: Any) -> Any:
    def kind(leaf: Any) -> Any:
        return leaf.meta.get("type") if isinstance(leaf, Node) else type(leaf)

    return tree_map(kind, arguments)
