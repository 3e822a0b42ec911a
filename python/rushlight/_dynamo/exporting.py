"""`torch._dynamo.export`: one call of a function as one fx graph, of fixed shapes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import NamedTuple

from rushlight import _C, Tensor, fx, ops
from rushlight._dynamo import exc, segments
from rushlight._dynamo.eval_frame import CompileContext, OptimizedModule, innermost
from rushlight.nn.modules.module import Module


class ExportResult(NamedTuple):
    """The graph of a call. There are no guards: it is of the shapes and numbers of that call."""

    graph_module: fx.GraphModule
    guards: set


class ExportedGraphModule(fx.GraphModule):
    """A graph that is called as the function was: `forward` takes the tensors among the arguments.

    ValueError where arguments have another structure than in the call that was exported.
    """

    def _describe_call(self, in_spec: object, out_spec: object, results: list) -> None:
        self.__dict__["_call"] = (in_spec, out_spec, results)

    def __call__(self, *args: object, **kwargs: object) -> object:
        in_spec, out_spec, results = self.__dict__["_call"]
        leaves, spec = _flatten((list(args), kwargs))
        if spec != in_spec:
            raise ValueError(f"the graph was exported for arguments {in_spec}, got {spec}")
        made = list(super().__call__(*(leaf for leaf in leaves if isinstance(leaf, Tensor))))
        filled = [made.pop(0) if item is _MADE else item for item in results]
        return _unflatten(filled, out_spec)


_MADE = object()  # stands for a tensor among the results


class _Recorder:
    """The back end of the exported call: keeps its graph, and says where a second one begins."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.graph: fx.GraphModule | None = None

    def compile(self, gm: fx.GraphModule, example_inputs: list) -> Callable:
        if gm.meta["is_backward"] or self.graph is not None:
            what = "a backward pass" if gm.meta["is_backward"] else "more than one graph"
            raise exc.Unsupported(
                f"torch._dynamo.export: '{self.name}' has {what}. A graph ends where a number is "
                "read (item, int, float), where a shape depends on data, and where backward "
                "runs\n\n"
                f"from user code:\n{segments.describe(segments.user_frame())}"
            )
        self.graph = gm
        return gm.forward


class _Exporter:
    """Makes the graph of a call of the captured one: arguments in, results out."""

    def __init__(self, root: Module | None, captured: fx.GraphModule | None) -> None:
        self._captured = captured
        self._graph = fx.Graph()
        self._state: dict[str, Tensor] = {}
        self._nodes: dict[int, tuple[fx.Node, Tensor | None]] = {}  # by storage: what stands for it
        self._own: dict[int, tuple[str, Tensor]] = {}  # by storage: the state of the module
        if root is not None:
            for name, value in (*root.named_buffers(), *root.named_parameters()):
                self._own[_C._storage_id(value)] = (name, value)

    def add_arguments(self, names: list[str], tensors: list[Tensor]) -> None:
        for name, tensor in zip(names, tensors):
            node = self._graph.placeholder(name)
            node.meta["tensor_meta"] = _meta(tensor)
            node.meta["example_value"] = tensor
            # Of arguments that share memory, the first stands for it.
            self._nodes.setdefault(_C._storage_id(tensor), (node, tensor))

    def _of_storage(self, storage: int, tensor: Tensor) -> tuple[fx.Node, Tensor]:
        """What stands for the memory of a tensor: an argument, or an attribute of the module."""
        if storage not in self._nodes:
            constant = (f"_tensor_constant{len(self._state)}", tensor)
            name, tensor = self._own.get(storage, constant)
            self._state[name] = tensor
            node = self._graph.get_attr(name)
            node.meta["tensor_meta"] = _meta(tensor)
            self._nodes[storage] = (node, tensor)
        return self._nodes[storage]

    def view(self, tensor: Tensor) -> fx.Node:
        """A tensor, as what stands for its memory or as a view of that."""
        storage = _C._storage_id(tensor)
        node, _ = self._of_storage(storage, tensor)
        own, base = _meta(tensor), node.meta["tensor_meta"]
        if own.dtype != base.dtype:
            raise exc.Unsupported("torch._dynamo.export: a tensor is seen as of two dtypes")
        offset = tensor.storage_offset()
        if own == base and offset == node.meta.get("offset", _offset(self._nodes[storage][1])):
            return node
        made = self._graph._call_operator(
            ops.aten.as_strided.default, (node, list(own.shape), list(own.stride), offset)
        )
        made.meta["tensor_meta"] = own
        return made

    def copy_captured(self) -> None:
        """Puts down the captured operators, and notes what stands for the memory they made."""
        if self._captured is None:
            return
        known: dict[fx.Node, fx.Node] = {}
        for node in self._captured.graph.nodes:
            if node.op == "placeholder":
                known[node] = self.view(node.meta["example_value"])
            elif node.op == "output":
                for made, (storage, offset) in zip(node.args[0], self._captured.meta["results"]):
                    known[made].meta["offset"] = offset
                    self._nodes[storage] = (known[made], None)
            else:
                known[node] = self._graph.node_copy(node, lambda n: known[n])

    def finish(self, results: list[Tensor]) -> ExportedGraphModule:
        self._graph.output(tuple(self.view(r) for r in results))
        return ExportedGraphModule(self._state, self._graph)


def _meta(tensor: Tensor) -> fx.TensorMetadata:
    return fx.TensorMetadata(tensor.shape, tensor.dtype, False, tensor.stride(), None)


def _offset(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.storage_offset()


def _argument_names(function: Callable, args: tuple, kwargs: dict) -> list[str]:
    """A name for each leaf of the arguments that is a tensor: x, or x_0, x_1 within a structure."""
    target = function.forward if isinstance(function, Module) else function
    try:
        bound = inspect.signature(target).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        bound = {}
    of_leaf: dict[int, str] = {}
    for name, value in bound.items():
        leaves = _flatten(value)[0]
        for number, leaf in enumerate(leaves):
            own = name if value is leaf else f"{name}_{number}"
            of_leaf.setdefault(id(leaf), own)
    tensors = [leaf for leaf in _flatten((list(args), kwargs))[0] if isinstance(leaf, Tensor)]
    return [of_leaf.get(id(leaf), f"arg{number}") for number, leaf in enumerate(tensors)]


def _root(function: Callable) -> Module | None:
    owner = getattr(function, "__self__", function)
    return owner if isinstance(owner, Module) else None


def export(f: Callable, *extra_args: object, **extra_kwargs: object):
    """export(f)(*args): runs f once, and gives the graph of that call.

    The graph is of aten operators and of that call's shapes, numbers and branches; parameters and
    tensors of the program are its attributes. Unsupported where the call is no single graph: it
    reads a value, or runs backward. Options of PyTorch's tracer (aten_graph, tracing_mode,
    dynamic_shapes, ...) are accepted; none changes the graph.
    """
    arguments = {name: value for name, value in extra_kwargs.items() if name not in _OPTIONS}

    def inner(*args: object, **kwargs: object) -> ExportResult:
        return _export(f, args, kwargs)

    if extra_args or arguments:
        return inner(*extra_args, **arguments)
    return inner


_OPTIONS = frozenset(
    {"aten_graph", "pre_dispatch", "decomposition_table", "tracing_mode", "dynamic_shapes"}
    | {"specialize_float", "assume_static_by_default", "same_signature", "constraints"}
    | {"disable_constraint_solver", "prefer_deferred_runtime_asserts_over_guards"}
    | {"_log_export_usage"}
)


def _export(function: Callable, args: tuple, kwargs: dict) -> ExportResult:
    function = function._orig_mod if isinstance(function, OptimizedModule) else innermost(function)
    name = getattr(function, "__qualname__", type(function).__qualname__)
    recorder = _Recorder(name)
    leaves, in_spec = _flatten((list(args), kwargs))
    tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]

    def call(*args: object, **kwargs: object) -> object:
        return function(*args, **kwargs)

    context = CompileContext(recorder.compile, fullgraph=True, name=name)
    root = _root(function)
    leaves = [*tensors, *(root.parameters() if root is not None else ())]
    grads = [tensor.grad for tensor in leaves]
    try:
        result = context(call)(*args, **kwargs)
    except exc.BackendCompilerFailed as failure:
        if isinstance(failure.inner_exception, exc.Unsupported):
            raise failure.inner_exception from None
        raise
    if any(tensor.grad is not grad for tensor, grad in zip(leaves, grads)):
        raise exc.Unsupported(
            f"torch._dynamo.export: '{name}' runs backward, which fills .grad: a graph has results "
            "alone. Use torch.autograd.grad"
        )
    found, out_spec = _flatten(result)
    exporter = _Exporter(root, recorder.graph)
    exporter.add_arguments(_argument_names(function, args, kwargs), tensors)
    exporter.copy_captured()
    made = exporter.finish([leaf for leaf in found if isinstance(leaf, Tensor)])
    results = [_MADE if isinstance(leaf, Tensor) else leaf for leaf in found]
    made._describe_call(in_spec, out_spec, results)
    return ExportResult(made, set())


# ---- Structures ----------------------------------------------------------------------------------


def _flatten(value: object) -> tuple[list, object]:
    """The leaves of lists, tuples and dicts, and the structure they were in."""
    if isinstance(value, dict):
        parts, items = list(value), list(value.values())
    elif isinstance(value, (list, tuple)):
        parts, items = len(value), list(value)
    else:
        return [value], None
    flat = [_flatten(item) for item in items]
    leaves = [leaf for part, _ in flat for leaf in part]
    return leaves, (type(value), parts, [spec for _, spec in flat])


def _unflatten(leaves: list, spec: object) -> object:
    """The structure with these leaves, which are used up from the front."""
    if spec is None:
        return leaves.pop(0)
    kind, parts, inner = spec
    items = [_unflatten(leaves, part) for part in inner]
    if issubclass(kind, dict):
        return kind(zip(parts, items))
    return kind(*items) if hasattr(kind, "_fields") else kind(items)
