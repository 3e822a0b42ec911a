"""Which modules an exported call went through, and how these were called."""

from __future__ import annotations

import contextlib
import threading
import types
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from rushlight import Tensor, fx
from rushlight.export.graph_signature import ConstantArgument, TensorArgument
from rushlight.fx import traceback as fx_traceback
from rushlight.fx.node import type_name
from rushlight.nn.modules.module import Module
from rushlight.utils._pytree import TreeSpec, tree_flatten

__all__ = ["ModuleCallEntry", "ModuleCallSignature"]

ROOT = "L__self__"  # how nodes' meta calls the module that was exported


@dataclass
class ModuleCallSignature:
    """How a module was called: its arguments and results, flat, and their structures."""

    inputs: list[Any]
    outputs: list[Any]
    in_spec: TreeSpec
    out_spec: TreeSpec
    forward_arg_names: list[str] | None = None

    def replace_all_uses_with(self, original_node: str, new_node: str) -> None:
        """Has another node, by name, in the place of one."""
        for arg in (*self.inputs, *self.outputs):
            if arg.name == original_node:
                arg.name = new_node


@dataclass
class ModuleCallEntry:
    """A module by its path, and how it was called where that was to be kept."""

    fqn: str
    signature: ModuleCallSignature | None = None


class CallGraph(fx.Graph):
    """A graph whose nodes note the modules that they were called in."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.stack: dict[str, tuple[str, str]] = {}
        self.outermost: types.CodeType | None = None  # where what is traced is called

    def create_node(self, op: str, target: Any, *args: Any, **kwargs: Any) -> fx.Node:
        """Adds a node at the insertion point."""
        node = super().create_node(op, target, *args, **kwargs)
        if op in ("placeholder", "output", "get_attr"):
            return node
        stack = self.stack
        if fx_traceback.has_preserved_node_meta():  # a program that runs again
            stack = fx_traceback.get_current_meta().get("nn_module_stack", {})
            node.stack_trace = fx_traceback.get_current_meta().get("stack_trace")
        elif stack:
            node.stack_trace = fx_traceback.program_stack(_is_forward, self.outermost)
        if stack:
            node.meta["nn_module_stack"] = dict(stack)
        return node


def _is_forward(frame: types.FrameType) -> bool:
    """Whether a frame is the forward of a module."""
    name = frame.f_code.co_name
    return name == "forward" and isinstance(frame.f_locals.get("self"), Module)


class CallRecorder:
    """Notes the modules of `root` that are called, and how those in `preserved` are."""

    def __init__(
        self, root: Module, graph: CallGraph, node: Callable[[Tensor], fx.Node], preserved: tuple
    ) -> None:
        self.signatures: dict[str, ModuleCallSignature] = {}
        self._graph, self._node, self._preserved = graph, node, preserved
        self._paths = {id(module): name for name, module in root.named_modules()}
        self._counts: Counter[str] = Counter()
        self._thread = threading.get_ident()

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """A block in which calls are noted."""
        original = Module.__call__
        recorder = self

        def call(module: Module, *args: Any, **kwargs: Any) -> Any:
            path = recorder._paths.get(id(module))
            if path is None or threading.get_ident() != recorder._thread:
                return original(module, *args, **kwargs)
            return recorder._call(original, module, path, args, kwargs)

        own = Module.__dict__["__call__"]
        Module.__call__ = call
        try:
            yield
        finally:
            Module.__call__ = own

    def _call(self, original: Callable, module: Module, path: str, args: Any, kwargs: Any) -> Any:
        number = self._counts[path]
        self._counts[path] += 1
        suffix = f"@{number}" if number else ""
        before = self._graph.stack
        kind = getattr(module, "_exported_class", None) or type_name(type(module))
        self._graph.stack = {**before, f"{ROOT}{path}{suffix}": (path, kind)}
        try:
            result = original(module, *args, **kwargs)
        finally:
            self._graph.stack = before
        if path in self._preserved:
            given, in_spec = tree_flatten((args, kwargs))
            made, out_spec = tree_flatten(result)
            self.signatures[path + suffix] = ModuleCallSignature(
                [self._argument(value) for value in given],
                [self._argument(value) for value in made],
                in_spec,
                out_spec,
            )
        return result

    def _argument(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            return TensorArgument(self._node(value).name)
        return ConstantArgument("", value)
