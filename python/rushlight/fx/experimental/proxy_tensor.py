"""make_fx: the operators that a call of a function runs, as an fx graph of aten operators.

The function runs once, on the arguments given; a dispatch mode writes down what it calls, gradients
included. The graph is of that call's shapes, numbers and branches.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import operator
import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from rushlight import _C, SymBool, SymFloat, SymInt, Tensor, fx, ops
from rushlight._ops import OpOverload
from rushlight._subclasses.fake_tensor import FakeTensorMode, fake_meta
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.utils._python_dispatch import (
    TorchDispatchMode,
    _get_current_dispatch_mode_stack,
)
from rushlight.utils._pytree import TreeSpec, tree_flatten, tree_map, tree_map_only, tree_unflatten

__all__ = [
    "DecompositionInterpreter", "ProxyTorchDispatchMode", "get_innermost_proxy_mode",
    "get_proxy_mode", "make_fx", "py_sym_types",
]  # fmt: skip

py_sym_types = (SymInt, SymFloat, SymBool)


class ProxyTorchDispatchMode(TorchDispatchMode):
    """Runs operators and puts each down as a node of `graph`.

    constant: gives the node of a tensor that is no argument and that no operator gave. on_value: is
    called with the mode, a tensor and its value where the program reads one; else that is an error.
    """

    on_value: Callable[[ProxyTorchDispatchMode, Tensor, Any], None] | None = None

    def __init__(
        self,
        graph: fx.Graph,
        constant: Callable[[Tensor], fx.Node],
        decompositions: Mapping[Any, Callable] | None = None,
    ) -> None:
        super().__init__()
        self.graph = graph
        self.constant = constant
        self.decompositions = decompositions or {}
        # By identity, with the tensor, which keeps its object and so its identity. The second is of
        # tensors that no operator gave, such as x.data, by the memory that they share.
        self._nodes: dict[int, tuple[Tensor, fx.Node]] = {}
        self._memory: dict[int, tuple[Tensor, fx.Node]] = {}
        self.modules: dict[str, fx.GraphModule] = {}  # of functions that operators are given

    def track(self, tensor: Tensor, node: fx.Node) -> None:
        """Makes a node stand for a tensor."""
        self._nodes[id(tensor)] = (tensor, node)
        if not tensor.is_meta:
            self._memory.setdefault(_C._storage_id(tensor), (tensor, node))
        node.meta.setdefault("val", tensor.detach() if tensor.requires_grad else tensor)
        node.meta.setdefault(
            "tensor_meta",
            fx.TensorMetadata(tensor.shape, tensor.dtype, False, tensor.stride(), None),
        )

    def is_tracked(self, tensor: Tensor) -> bool:
        """Whether a tensor is an argument, or made of arguments or by an operator."""
        return id(tensor) in self._nodes

    def node(self, tensor: Tensor) -> fx.Node:
        """What stands for a tensor."""
        if id(tensor) not in self._nodes:
            self.track(tensor, self._found(tensor))
        return self._nodes[id(tensor)][1]

    def _found(self, tensor: Tensor) -> fx.Node:
        shared = None if tensor.is_meta else self._memory.get(_C._storage_id(tensor))
        if shared is None:
            return self.constant(tensor)
        if shared[0].dtype != tensor.dtype:
            raise NotImplementedError("make_fx: the memory of one tensor is seen as of two dtypes")
        layout = (list(tensor.shape), list(tensor.stride()), tensor.storage_offset())
        return self.graph._call_operator(ops.aten.as_strided.default, (shared[1], *layout))

    def argument(self, value: Any) -> Any:
        """A value with nodes in the place of tensors."""
        return tree_map(lambda leaf: self.node(leaf) if isinstance(leaf, Tensor) else leaf, value)

    def __torch_dispatch__(
        self, func: Any, types: tuple, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in self.decompositions:
            with self:
                result = self.decompositions[func](*args, **kwargs)
            if result is not NotImplemented:
                return result
        if func is ops.aten._local_scalar_dense.default and self.is_tracked(args[0]):
            if self.on_value is not None:
                value = func(*args)
                self.on_value(self, args[0], value)
                return value
            raise RuntimeError(
                "It appears that you're trying to get value out of a tracing tensor with "
                f"{func} - erroring out! It's likely that this is caused by data-dependent control "
                "flow or similar. A graph is of one call: use torch.where, or torch.cond."
            )
        node = self.graph._call_operator(func, self.argument(args), self.argument(kwargs))
        result = func(*args, **kwargs)
        self._track_result(node, result)
        return result

    def _track_result(self, node: fx.Node, result: Any) -> None:
        if isinstance(result, Tensor):
            self.track(result, node)
        elif isinstance(result, (tuple, list)):
            for number, item in enumerate(result):
                if isinstance(item, Tensor):
                    self.track(item, self.graph.call_function(operator.getitem, (node, number)))


class WholeOperatorsMode(ProxyTorchDispatchMode):
    """The same, of operators as they are called: compositions are not opened.

    opens: says of which operators what they are made of is put down instead.
    """

    _pre_dispatch = True
    opens: Callable[[Any], bool] | None = None

    def __torch_dispatch__(
        self, func: Any, types: tuple, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        if self.opens is None or func in self.decompositions or not self.opens(func):
            return super().__torch_dispatch__(func, types, args, kwargs)
        return self._open(func, args, kwargs or {})

    def _open(self, func: Any, args: tuple, kwargs: dict) -> Any:
        """Puts down what a call is made of; the call itself where that has names of our own."""
        given = self.argument(args), self.argument(kwargs)
        last = next(iter(reversed(self.graph.nodes)), None)
        inner = ProxyTorchDispatchMode(self.graph, self.constant, self.decompositions)
        inner._nodes, inner._memory, inner.modules = self._nodes, self._memory, self.modules
        with inner:
            result = func(*args, **kwargs)
        made = list(itertools.takewhile(lambda node: node is not last, reversed(self.graph.nodes)))
        if any(_is_private(node.target) for node in made):
            self._forget(made)
            self._track_result(self.graph._call_operator(func, *given), result)
        return result

    def _forget(self, nodes: list[fx.Node]) -> None:
        """Takes back the last nodes, the last first."""
        gone = set(nodes)
        for known in (self._nodes, self._memory):
            for key in [key for key, (_, node) in known.items() if node in gone]:
                del known[key]
        for node in nodes:
            self.graph.erase_node(node)


# Operators whose names begin so and that PyTorch has.
_SHARED = "softmax log_softmax to_copy unsafe_view reshape_alias conj".split()


@functools.cache
def _private_names() -> set[str]:
    rows = [row["name"] for row in _C._operator_table() if "internal" in row["faces"]]
    return {name for name in rows if name[0] == "_" and name[1:] not in _SHARED}


def _is_private(target: Any) -> bool:
    """Whether it is an operator that no program can know by its name."""
    return isinstance(target, OpOverload) and target._opname in _private_names()


def get_proxy_mode() -> ProxyTorchDispatchMode | None:
    """The mode that traces now, None where none does."""
    for mode in reversed(_get_current_dispatch_mode_stack()):
        if isinstance(mode, ProxyTorchDispatchMode):
            return mode
    return None


get_innermost_proxy_mode = get_proxy_mode


class _Constants:
    """The attributes of a graph that is being traced."""

    def __init__(self, graph: fx.Graph) -> None:
        self.graph = graph
        self.values: dict[str, Tensor] = {}

    def node(self, tensor: Tensor) -> fx.Node:
        """A new attribute."""
        kind = "_param_constant" if isinstance(tensor, Parameter) else "_tensor_constant"
        name = f"{kind}{sum(known.startswith(kind) for known in self.values)}"
        self.values[name] = tensor
        return self.graph.get_attr(name)


class DecompositionInterpreter(fx.Interpreter):
    """Runs a graph of aten operators, and writes what it runs into another graph.

    decomposition_table: functions to call in the place of operators.
    """

    def __init__(
        self,
        module: fx.GraphModule,
        new_graph: fx.Graph,
        decomposition_table: Mapping[Any, Callable] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(module, **kwargs)
        self.new_graph = new_graph
        self.decomposition_table = dict(decomposition_table or {})
        self.constants = _Constants(new_graph)
        self.mode = ProxyTorchDispatchMode(new_graph, self.constants.node, self.decomposition_table)

    def placeholder(self, target: str, args: tuple, kwargs: dict) -> Any:
        """An input."""
        value = super().placeholder(target, args, kwargs)
        node = self.new_graph.placeholder(target)
        if isinstance(value, Tensor):
            self.mode.track(value, node)
        return value

    def get_attr(self, target: str, args: tuple, kwargs: dict) -> Any:
        """An attribute, of the same name."""
        value = super().get_attr(target, args, kwargs)
        if isinstance(value, Tensor):
            self.mode.track(value, self.new_graph.get_attr(target))
        return value

    def output(self, target: str, args: tuple, kwargs: dict) -> Any:
        """The result."""
        value = super().output(target, args, kwargs)
        self.new_graph.output(self.mode.argument(value))
        return value

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the graph; gives its result."""
        with self.mode:
            return super().run(*args, **kwargs)


class TracedGraphModule(fx.GraphModule):
    """A graph that is called as the function was: with the same structure of arguments."""

    def _describe_call(self, in_spec: TreeSpec, out_spec: TreeSpec | None) -> None:
        self.__dict__["_in_spec"], self.__dict__["_out_spec"] = in_spec, out_spec

    def __call__(self, *args: Any) -> Any:
        leaves, spec = tree_flatten(args)
        if spec != self._in_spec:
            raise ValueError(f"the graph was made for arguments {self._in_spec}, got {spec}")
        made = super().__call__(*leaves)
        return made if self._out_spec is None else tree_unflatten(list(made), self._out_spec)


def _leaf_names(function: Callable, args: tuple) -> list[str]:
    """A name for each leaf of the arguments, that of the argument it is in."""
    try:
        if isinstance(function, Module):
            raise TypeError("modules' arguments have no names here")
        bound = inspect.signature(function).bind(*args)
        named = [
            (name, value)
            for name, value in bound.arguments.items()
            if bound.signature.parameters[name].kind is not inspect.Parameter.VAR_POSITIONAL
        ]
    except (TypeError, ValueError):
        named = []
    named += [(f"arg{number}", args[number]) for number in range(len(named), len(args))]
    counts: Counter[str] = Counter()
    names = []
    for name, value in named:
        for _ in tree_flatten(value)[0]:
            counts[name] += 1
            names.append(f"{name}_{counts[name]}")
    return names


def _is_plain(value: Any) -> bool:
    """Whether a result is of tuples, lists and dicts alone, which a graph's code can write."""
    if isinstance(value, Mapping):
        return type(value) is dict and all(map(_is_plain, value.values()))
    if isinstance(value, (tuple, list)):
        return type(value) in (tuple, list) and all(map(_is_plain, value))
    return not tree_flatten(value)[1].num_children


def make_fx(
    f: Callable,
    decomposition_table: Mapping[Any, Callable] | None = None,
    tracing_mode: str = "real",
    _allow_non_fake_inputs: bool = False,
    *,
    pre_dispatch: bool = False,
    record_module_stack: bool = False,
    _allow_fake_constant: bool = False,
    _error_on_data_dependent_ops: bool = True,
    record_stack_traces: bool = False,
    proxy_module_inputs: bool = False,
    _disable_torch_fn_metadata_mode: bool = False,
) -> Callable[..., fx.GraphModule]:
    """make_fx(f)(*args): a GraphModule of the aten operators that f(*args) calls.

    decomposition_table: functions to call in the place of operators. pre_dispatch: the operators
    that f calls rather than those that these are made of. tracing_mode: "real" runs f; "fake" does
    so for its shapes alone, "symbolic" with several choices of sizes, which then are open in the
    graph where the program allows it: see _symbolic_trace.py.
    """
    if tracing_mode not in ("real", "fake", "symbolic"):
        raise AssertionError(f"tracing_mode must be real/fake/symbolic, got {tracing_mode}")

    def traced(args: tuple) -> _Traced:
        return _Traced(f, args, decomposition_table, pre_dispatch)

    def wrapped(*args: Any) -> fx.GraphModule:
        if tracing_mode == "symbolic":
            from rushlight.fx.experimental._symbolic_trace import SymbolicTracer

            return SymbolicTracer(traced, args).run().module()
        if tracing_mode == "fake":
            fake_mode = FakeTensorMode(allow_non_fake_inputs=True)
            args = tree_map_only(Tensor, fake_mode.from_tensor, args)
            with fake_mode:
                return traced(args).module()
        return traced(args).module()

    return wrapped


class _Traced:
    """What one call f(*args) ran."""

    def __init__(
        self, f: Callable, args: tuple, decompositions: Mapping[Any, Callable] | None, whole: bool
    ) -> None:
        self.graph = fx.Graph()
        attributes = _Constants(self.graph)
        kind = WholeOperatorsMode if whole else ProxyTorchDispatchMode
        mode = kind(self.graph, attributes.node, decompositions)
        leaves, self._in_spec = tree_flatten(args)
        self.arguments: list[fx.Node] = []
        for name, leaf in zip(_leaf_names(f, args), leaves, strict=True):
            self.arguments.append(self.graph.placeholder(name))
            if isinstance(leaf, Tensor):
                mode.track(leaf, self.arguments[-1])
        with mode:
            result = f(*args)
        plain = _is_plain(result)
        flat, out_spec = tree_flatten(result)
        self._out_spec = None if plain else out_spec
        self.graph.output(mode.argument(result if plain else tuple(flat)))
        self.graph.eliminate_dead_code()
        self.constants = attributes.values
        self.modules = mode.modules  # the branches of torch.cond
        self._name = re.sub(r"\W", "_", getattr(f, "__name__", type(f).__name__))

    def module(self) -> fx.GraphModule:
        """The graph as a module that is called as f is."""
        fake_meta(self.graph.nodes)
        made = TracedGraphModule({**self.constants, **self.modules}, self.graph, self._name)
        made._describe_call(self._in_spec, self._out_spec)
        return made
