"""Symbolic tracing: running a function on stand-ins that write down what is done to them."""

from __future__ import annotations

import functools
import inspect
import math
import operator
import traceback
import types
from collections.abc import Callable

from rushlight import _C
from rushlight.fx._inputs import call_with, stand_ins
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node, map_aggregate
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter


class TraceError(ValueError):
    """The program asks a stand-in for a value."""


class Attribute:
    """An attribute of a stand-in that has been read and not yet called."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root = root
        self.attr = attr
        self.tracer = root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:
        """The reading as a node, made where it is used as a value."""
        if self._node is None:
            made = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {})
            self._node = made.node
        return self._node

    def __call__(self, *args: object, **kwargs: object) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class Proxy:
    """Stands for the value of a node: what is done to it becomes nodes."""

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = tracer if tracer is not None else GraphAppendingTracer(node.graph)
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, name: str) -> object:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return _ProxyAttribute(self, name)

    def __call__(self, *args: object, **kwargs: object) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> object:
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be "
            "recorded, please call torch.fx.wrap('len') at module scope"
        )

    def __contains__(self, item: object) -> bool:
        raise TraceError("'in' needs the value of a symbolically traced variable")

    def keys(self) -> object:
        """What ** of it asks for."""
        return self.tracer.keys(self)

    @classmethod
    def __torch_function__(
        cls, function: Callable, types_: object, args: tuple = (), kwargs: dict | None = None
    ) -> Proxy:
        kwargs = kwargs or {}
        found: list[Proxy] = []

        def look(item: object) -> object:
            if isinstance(item, Proxy):
                found.append(item)
            return item

        map_aggregate((args, kwargs), look)
        tracer = found[0].tracer
        if _is_method(function):
            return tracer.create_proxy("call_method", function.__name__, args, kwargs)
        return tracer.create_proxy("call_function", function, args, kwargs)


class _ProxyAttribute(Attribute, Proxy):
    """Both: called as a method, or used as a value."""

    def __init__(self, root: Proxy, attr: str) -> None:
        Attribute.__init__(self, root, attr)

    __call__ = Attribute.__call__


def _is_method(function: Callable) -> bool:
    name = getattr(function, "__name__", "")
    return getattr(_C.Tensor, name, None) is function


_BINARY = (
    "add sub mul floordiv truediv mod pow lshift rshift and_ or_ xor matmul getitem "
    "eq ne lt le gt ge"
).split()
_UNARY = ("neg", "pos", "invert", "abs")
_REFLECTED = "add sub mul floordiv truediv mod pow lshift rshift and_ or_ xor matmul".split()


def _add_operators() -> None:
    def method(target: Callable, reflected: bool) -> Callable:
        def call(self: Proxy, *args: object) -> Proxy:
            given = (args[0], self) if reflected else (self, *args)
            return self.tracer.create_proxy("call_function", target, given, {})

        return call

    for name in (*_BINARY, *_UNARY):
        setattr(Proxy, f"__{name.strip('_')}__", method(getattr(operator, name), False))
    for name in _REFLECTED:
        setattr(Proxy, f"__r{name.strip('_')}__", method(getattr(operator, name), True))
    Proxy.__hash__ = object.__hash__


_add_operators()


class TracerBase:
    """What makes nodes of the operations on stand-ins."""

    graph: Graph
    record_stack_traces = False

    def create_node(
        self,
        kind: str,
        target: object,
        args: tuple,
        kwargs: dict,
        name: str | None = None,
        type_expr: object = None,
    ) -> Node:
        """Adds a node."""
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node: Node) -> Proxy:
        """The stand-in of a node."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: object,
        args: tuple,
        kwargs: dict,
        name: str | None = None,
        type_expr: object = None,
        proxy_factory_fn: Callable | None = None,
    ) -> Proxy:
        """Adds a node with stand-ins among its arguments; gives its own."""
        args = self.create_arg(tuple(args))
        kwargs = self.create_arg(dict(kwargs))
        node = self.create_node(kind, target, args, kwargs, name, type_expr)
        if self.record_stack_traces:
            node.stack_trace = "".join(traceback.format_stack()[:-2])
        return self.proxy(node) if proxy_factory_fn is None else proxy_factory_fn(node)

    def create_arg(self, a: object) -> object:
        """The structure with nodes for stand-ins."""
        return map_aggregate(a, self._leaf)

    def _leaf(self, item: object) -> object:
        return item.node if isinstance(item, Proxy) else item

    def iter(self, obj: Proxy) -> object:
        """Unpacking into a known number of names is what iteration over a stand-in can be."""
        frame = inspect.currentframe().f_back.f_back
        count = _unpacked(frame)
        if count is not None:
            return (obj[i] for i in range(count))
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a "
            "loop or as a *args or **kwargs function argument."
        )

    def to_bool(self, obj: Proxy) -> bool:
        """A stand-in has no truth."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def keys(self, obj: Proxy) -> object:
        """The keys of a stand-in for a dict."""
        return Attribute(obj, "keys")()


def _unpacked(frame: types.FrameType | None) -> int | None:
    """Into how many names the running instruction unpacks; None where it does something else."""
    import dis

    if frame is None:
        return None
    for instruction in dis.get_instructions(frame.f_code):
        if instruction.offset == frame.f_lasti:
            return instruction.argval if instruction.opname == "UNPACK_SEQUENCE" else None
    return None


class GraphAppendingTracer(TracerBase):
    """Adds to a graph that is there: for rewriting with stand-ins."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph


_wrapped: dict[tuple[int, str], dict] = {}


def wrap(fn_or_name: str | Callable) -> str | Callable:
    """Called at module scope: calls of this function are one node, and not looked into."""
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = inspect.currentframe().f_back
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


class _Patches:
    """Changes of attributes and of dict items, taken back at the end."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def attribute(self, owner: object, name: str, value: object) -> None:
        before = owner.__dict__.get(name, self)
        setattr(owner, name, value)

        def undo() -> None:
            if before is self:
                delattr(owner, name)
            else:
                setattr(owner, name, before)

        self._undo.append(undo)

    def item(self, owner: dict, name: str, value: object) -> None:
        before = owner.get(name, self)
        owner[name] = value

        def undo() -> None:
            if before is self:
                del owner[name]
            else:
                owner[name] = before

        self._undo.append(undo)

    def __enter__(self) -> _Patches:
        return self

    def __exit__(self, *exception: object) -> None:
        for undo in reversed(self._undo):
            undo()


def _first_proxy(args: tuple, kwargs: dict) -> Proxy | None:
    found: list[Proxy] = []
    map_aggregate(
        (args, kwargs), lambda item: found.append(item) if isinstance(item, Proxy) else None
    )
    return found[0] if found else None


def _recorded(function: Callable) -> Callable:
    """The function, but for stand-ins a node."""

    @functools.wraps(function)
    def wrapper(*args: object, **kwargs: object) -> object:
        proxy = _first_proxy(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        return proxy.tracer.create_proxy("call_function", function, args, kwargs)

    return wrapper


class Tracer(TracerBase):
    """Runs a module or function on stand-ins; gives the graph of what it did.

    Modules of rushlight.nn are single nodes (`is_leaf_module`).
    """

    def __init__(
        self,
        autowrap_modules: tuple = (math,),
        autowrap_functions: tuple = (),
        param_shapes_constant: bool = False,
    ) -> None:
        self._autowrap = [
            (module, name, value)
            for module in autowrap_modules
            for name, value in module.__dict__.items()
            if not name.startswith("_") and callable(value)
        ]
        self._autowrap_functions = set(autowrap_functions)
        self.param_shapes_constant = param_shapes_constant

    # ---- What subclasses change ----------------------------------------------------------------

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether a module is one node: those of the library are, but for containers."""
        module = type(m).__module__
        ours = module.startswith(("rushlight.nn", "torch.nn"))
        return ours and type(m).__name__ not in ("Sequential", "OptimizedModule")

    def path_of_module(self, mod: Module) -> str:
        """Where in the traced module it is."""
        for name, module in self.root.named_modules():
            if module is mod:
                return name
        raise NameError("module is not installed as a submodule")

    def call_module(self, m: Module, forward: Callable, args: tuple, kwargs: dict) -> object:
        """A call of a module: a node, or what it does."""
        path = self.path_of_module(m)
        if self.is_leaf_module(m, path):
            return self.create_proxy("call_module", path, args, kwargs)
        return forward(*args, **kwargs)

    # ---- Tracing -------------------------------------------------------------------------------

    def trace(
        self, root: Module | Callable, concrete_args: dict[str, object] | None = None
    ) -> Graph:
        """The graph of a module's forward, or of a function. `concrete_args`: values, by name."""
        if isinstance(root, Module):
            self.root = root
            function = type(root).forward
            if "forward" in root.__dict__:
                bound = root.__dict__["forward"]
                function = lambda self, *args, **kwargs: bound(*args, **kwargs)  # noqa: E731
                function.__signature__ = _with_self(bound)
        else:
            self.root = Module()
            function = root
        self.graph = Graph(tracer_cls=type(self))
        self._tensors: dict[int, str] = {}
        given = stand_ins(self, function, isinstance(root, Module), concrete_args or {})
        with _Patches() as patches:
            self._patch(patches, function)
            result = call_with(function, given)
        self.create_node("output", "output", (self.create_arg(result),), {})
        return self.graph

    def _patch(self, patches: _Patches, function: Callable) -> None:
        original = Module._call_impl
        read = Module.__getattr__
        tracer = self

        def call(module: Module, *args: object, **kwargs: object) -> object:
            def forward(*args: object, **kwargs: object) -> object:
                return original(module, *args, **kwargs)

            return tracer.call_module(module, forward, args, kwargs)

        def attribute(module: Module, name: str) -> object:
            return tracer._attribute(read(module, name))

        patches.attribute(Module, "__call__", call)
        patches.attribute(Module, "__getattr__", attribute)
        names = getattr(inspect.unwrap(function), "__globals__", {})
        for module, name, value in self._autowrap:
            patches.attribute(module, name, _recorded(value))
            if names.get(name) is value:
                patches.item(names, name, _recorded(value))
        for name, value in list(names.items()):
            if isinstance(value, types.FunctionType) and value in self._autowrap_functions:
                patches.item(names, name, _recorded(value))
        for (_, name), owner in _wrapped.items():
            import builtins

            value = owner.get(name, getattr(builtins, name, None))
            if value is not None:
                patches.item(owner, name, _recorded(value))

    def _attribute(self, value: object) -> object:
        """Parameters and buffers that the traced module reads are nodes."""
        if not isinstance(value, _C.Tensor):
            return value
        for names in (self.root.named_parameters, self.root.named_buffers):
            for name, member in names(remove_duplicate=False):
                if member is value:
                    return self.create_proxy("get_attr", name, (), {})
        return value

    def _leaf(self, item: object) -> object:
        if isinstance(item, Proxy):
            return item.node
        if isinstance(item, Parameter):
            for name, member in self.root.named_parameters():
                if member is item:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        if isinstance(item, _C.Tensor):
            return self._constant(item)
        return item

    def _constant(self, tensor: object) -> Node:
        """A tensor that the program made for itself: kept as an attribute of the module."""
        for name, member in self.root.__dict__.items():
            if member is tensor:
                return self.create_node("get_attr", name, (), {})
        number = 0
        while hasattr(self.root, f"_tensor_constant{number}"):
            number += 1
        name = f"_tensor_constant{number}"
        self.root.__dict__[name] = tensor
        return self.create_node("get_attr", name, (), {})


def _with_self(bound: Callable) -> inspect.Signature:
    signature = inspect.signature(bound)
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return signature.replace(parameters=[own, *signature.parameters.values()])


def symbolic_trace(
    root: Module | Callable, concrete_args: dict[str, object] | None = None
) -> GraphModule:
    """The module or function as a GraphModule."""
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    if not name.isidentifier():
        name = "GraphModule"  # a lambda
    return GraphModule(tracer.root, graph, name)
