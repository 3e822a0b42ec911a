"""One call of a module as a graph whose placeholders are its state and its arguments."""

from __future__ import annotations

import contextlib
import keyword
import re
from collections.abc import Callable, Iterator
from typing import Any

import rushlight as torch
from rushlight import Tensor, fx
from rushlight.export.graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)
from rushlight.export.module_call import CallGraph, CallRecorder
from rushlight.fx.experimental.proxy_tensor import ProxyTorchDispatchMode, WholeOperatorsMode
from rushlight.nn.modules.module import Module
from rushlight.utils._pytree import tree_flatten, tree_map_only

_PREFIXES = {InputKind.PARAMETER: "p", InputKind.BUFFER: "b", InputKind.CONSTANT_TENSOR: "c"}


def _tensor_attributes(root: Module) -> dict[int, str]:
    """The names of tensors that modules have as plain attributes, by identity."""
    found = {}
    for prefix, module in root.named_modules():
        for name, value in vars(module).items():
            if isinstance(value, Tensor):
                found.setdefault(id(value), f"{prefix}.{name}" if prefix else name)
    return found


@contextlib.contextmanager
def _unchanged(root: Module) -> Iterator[None]:
    """A block after which the state of a module and of random numbers are what they were."""
    state = [*root.parameters(), *root.buffers()]
    before = [(tensor, tensor.detach().clone(), tensor._version) for tensor in state]
    random_state = torch.get_rng_state()
    try:
        yield
    finally:
        torch.set_rng_state(random_state)
        with torch.no_grad():
            for tensor, values, version in before:
                if tensor._version != version:
                    tensor.copy_(values)


class TracedCall:
    """The graph of a call, with the inputs in the order of PyTorch: state first, then arguments."""

    def __init__(
        self,
        root: Module,
        names: list[str],
        decompositions: Any,
        whole: bool | Callable[[Any], bool],
        preserved: tuple[str, ...] = (),
    ) -> None:
        self.graph = CallGraph()
        self.graph.outermost = TracedCall.run.__code__
        self.inputs: list[InputSpec] = []
        self.state: dict[str, Tensor] = {}
        self.constants: dict[str, Tensor] = {}
        self.arguments: list[fx.Node] = []
        self.result_spec: Any = None
        self._root = root
        self._names = names
        self._attributes = _tensor_attributes(root)
        kind = WholeOperatorsMode if whole else ProxyTorchDispatchMode
        self._mode = kind(self.graph, self._constant_node, decompositions)
        if callable(whole):
            self._mode.opens = whole
        self.calls = CallRecorder(root, self.graph, self._mode.node, preserved)

    @property
    def modules(self) -> dict[str, fx.GraphModule]:
        """The graphs of functions that operators are given, by the names of attributes."""
        return self._mode.modules

    def on_value(self, function: Callable | None) -> None:
        """Has values that the program reads go to a function instead of being errors."""
        self._mode.on_value = function

    def run(self, call: Callable, args: tuple, kwargs: dict) -> TracedCall:
        """Traces call(*args, **kwargs)."""
        args, kwargs = tree_map_only(Tensor, lambda x: x.detach().clone(), (args, kwargs))
        self._add_state()
        for name, leaf in zip(self._names, tree_flatten((args, kwargs))[0], strict=True):
            node = self._placeholder(name)
            self.arguments.append(node)
            if isinstance(leaf, Tensor):
                self._mode.track(leaf, node)
                arg: Any = TensorArgument(node.name)
            else:
                node.meta["val"] = leaf
                arg = ConstantArgument(node.name, leaf)
            self.inputs.append(InputSpec(InputKind.USER_INPUT, arg, None))
        with _unchanged(self._root), torch.no_grad():
            with self._mode, self.calls.recording():
                result = call(*args, **kwargs)
        leaves, self.result_spec = tree_flatten(result)
        self.graph.output(tuple(self._mode.argument(leaves)))
        self.graph.eliminate_dead_code()
        return self

    def signature(self) -> ExportGraphSignature:
        """What inputs and outputs stand for."""
        outputs = []
        for item in self.graph.output_node().args[0]:
            if not isinstance(item, fx.Node):
                arg: Any = ConstantArgument("", item)
            elif isinstance(item.meta.get("val"), int):
                arg = SymIntArgument(item.name)
            else:
                arg = TensorArgument(item.name)
            outputs.append(OutputSpec(OutputKind.USER_OUTPUT, arg, None))
        return ExportGraphSignature(self.inputs, outputs)

    def _placeholder(self, name: str) -> fx.Node:
        name = re.sub(r"\W", "_", name)
        node = self.graph.placeholder(name)
        taken = self.graph._namespace._taken
        if name not in taken and not keyword.iskeyword(name):
            # The argument's own name, be it that of a builtin: `input`.
            taken[name] = node
            node._name = name
        node.target = node.name
        return node

    def _add_state(self) -> None:
        kept = set(self._root.state_dict())
        for name, value in self._root.named_parameters():
            self._add_tensor(InputKind.PARAMETER, name, value)
        for name, value in self._root.named_buffers():
            self._add_tensor(InputKind.BUFFER, name, value, name in kept)

    def _add_tensor(
        self, kind: InputKind, name: str, tensor: Tensor, persistent: bool | None = None
    ) -> fx.Node:
        node = self._placeholder(f"{_PREFIXES[kind]}_{name}")
        arg = TensorArgument(node.name)
        at = len(self.inputs) - len(self.arguments)
        self.inputs.insert(at, InputSpec(kind, arg, name, persistent))
        where = self.constants if kind is InputKind.CONSTANT_TENSOR else self.state
        where[name] = tensor
        self._mode.track(tensor, node)
        return node

    def _constant_node(self, tensor: Tensor) -> fx.Node:
        """An input for a tensor that is neither state nor argument."""
        name = self._attributes.get(id(tensor))
        if name is None:
            lifted = sum(known.startswith("lifted_tensor_") for known in self.constants)
            name = f"lifted_tensor_{lifted}"
        first = self.arguments[0] if self.arguments else next(iter(self.graph.nodes), None)
        with self.graph.inserting_before(first):
            return self._add_tensor(InputKind.CONSTANT_TENSOR, name, tensor)
