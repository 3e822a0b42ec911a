"""Symbolic tracing: running a function on stand-ins that write down what is done to them."""

from __future__ import annotations

import builtins
import functools
import inspect
import itertools
import math
import threading
import types
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping

from rushlight import _C
from rushlight.fx._compatibility import compatibility as compatibility
from rushlight.fx._inputs import PH as PH
from rushlight.fx._inputs import Inputs, PHBase, _assert_is_none, annotations_of  # noqa: F401
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node, map_aggregate
from rushlight.fx.proxy import ParameterProxy, Proxy, Scope, ScopeContextManager, TracerBase
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter

__all__ = ["PH", "PHBase", "ProxyableClassMeta", "Tracer", "symbolic_trace", "wrap"]

_state = threading.local()


def is_fx_symbolic_tracing() -> bool:
    """Whether a program is being traced on stand-ins."""
    return getattr(_state, "depth", 0) > 0


is_fx_tracing = is_fx_symbolic_tracing


class ProxyableClassMeta(type):
    """The metaclass of classes whose objects may be made of stand-ins, which makes a node."""

    def __call__(cls, *args: object, **kwargs: object) -> object:
        proxy = _first_proxy(args, kwargs) if is_fx_symbolic_tracing() else None
        if proxy is None:
            return super().__call__(*args, **kwargs)
        return proxy.tracer.create_proxy("call_function", cls, args, kwargs)


_wrapped: dict[tuple[int, str], dict] = {}  # the globals that hold a function, by its name


def wrap(fn_or_name: str | Callable) -> str | Callable:
    """Called at module scope: calls of this function are one node, and not looked into."""
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(
            "Unsupported type for global function! Must be either a callable or string name"
        )
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
        made = proxy.tracer.create_proxy("call_function", function, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

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
        super().__init__()
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
        with ScopeContextManager(self.scope, Scope(path, type(m))):
            known = self.module_stack.get(path)
            self.module_stack[path] = (path, type(m))
            try:
                if self.is_leaf_module(m, path):
                    return self.create_proxy("call_module", path, args, kwargs)
                return forward(*args, **kwargs)
            finally:
                if known is None:
                    del self.module_stack[path]

    def getattr(self, attr: str, attr_val: object, parameter_proxy_cache: dict) -> object:
        """What the program gets that reads an attribute of a module: parameters are stand-ins."""
        if not isinstance(attr_val, _C.Tensor):
            return attr_val
        if isinstance(attr_val, Parameter):
            return self._stand_in(attr_val, self.root.named_parameters, parameter_proxy_cache)
        if self.proxy_buffer_attributes:
            return self._stand_in(attr_val, self.root.named_buffers, parameter_proxy_cache)
        return attr_val

    def _stand_in(self, value: object, members: Callable, known: dict[str, Proxy]) -> object:
        for name, member in members():
            if member is not value:
                continue
            if name not in known:
                node = self.create_node("get_attr", name, (), {})
                of_shape = self.param_shapes_constant and isinstance(value, Parameter)
                made = ParameterProxy(self, node, name, value) if of_shape else self.proxy(node)
                known[name] = made
            return known[name]
        return value

    def create_arg(self, a: object) -> object:
        """The structure with nodes for stand-ins and for tensors, which are attributes then."""
        if isinstance(a, Parameter):
            for name, member in self.root.named_parameters():
                if member is a:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        if isinstance(a, _C.Tensor):
            return self._constant(a)
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            items = tuple(self.create_arg(item) for item in a)
            return self.create_node("call_function", type(a), items, {})
        return super().create_arg(a)

    def get_fresh_qualname(self, prefix: str) -> str:
        """A name that the traced module has no attribute of: the prefix and a number."""
        number = 0
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        return f"{prefix}{number}"

    def create_args_for_root(
        self,
        root_fn: Callable,
        is_module: bool,
        concrete_args: Mapping[str, object] | tuple | None = None,
    ) -> tuple[Callable, list]:
        """A function of stand-ins by position, and these: one for each parameter."""
        return Inputs(self, root_fn, is_module, concrete_args).call()

    # ---- Tracing -------------------------------------------------------------------------------

    def trace(
        self,
        root: Module | Callable,
        concrete_args: Mapping[str, object] | tuple | None = None,
    ) -> Graph:
        """The graph of a module's forward, or of a function. `concrete_args`: values, by name."""
        if isinstance(root, Module):
            self.root = root
            if not hasattr(type(root), self.traced_func_name):
                raise AssertionError(
                    f"traced_func_name={self.traced_func_name} doesn't exist in "
                    f"{type(root).__name__}"
                )
            function = getattr(type(root), self.traced_func_name)
            if self.traced_func_name in root.__dict__:
                bound = root.__dict__[self.traced_func_name]
                function = lambda self, *args, **kwargs: bound(*args, **kwargs)  # noqa: E731
                function.__signature__ = _with_self(bound)
        else:
            self.root = Module()
            function = root
        self.graph = Graph(tracer_cls=type(self))
        self.scope = Scope("", None)
        self.module_stack = OrderedDict()
        self.node_name_to_scope = {}
        call, given = self.create_args_for_root(function, isinstance(root, Module), concrete_args)
        _state.depth = getattr(_state, "depth", 0) + 1
        try:
            with _Patches() as patches:
                self._patch(patches, function)
                result = call(*given)
        finally:
            _state.depth -= 1
        kind = annotations_of(function).get("return")
        self.create_node("output", "output", (self.create_arg(result),), {}, type_expr=kind)
        return self.graph

    def _patch(self, patches: _Patches, function: Callable) -> None:
        original = Module._call_impl
        read = Module.__getattr__
        tracer = self
        proxies: dict[str, Proxy] = {}

        def call(module: Module, *args: object, **kwargs: object) -> object:
            def forward(*args: object, **kwargs: object) -> object:
                return original(module, *args, **kwargs)

            return tracer.call_module(module, forward, args, kwargs)

        def attribute(module: Module, name: str) -> object:
            return tracer.getattr(name, read(module, name), proxies)

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
            value = owner.get(name, getattr(builtins, name, None))
            if value is not None:
                patches.item(owner, name, _recorded(value))

    def _constant(self, tensor: object) -> Node:
        """A buffer, or a tensor that the program made: that is kept as the module's attribute."""
        for name, member in itertools.chain(self.root.named_buffers(), _tensors_of(self.root)):
            if member is tensor:
                return self.create_node("get_attr", name, (), {})
        name = self.get_fresh_qualname("_tensor_constant")
        self.root.__dict__[name] = tensor
        return self.create_node("get_attr", name, (), {})


def _tensors_of(root: Module) -> Iterator[tuple[str, object]]:
    """Tensors that modules have as plain attributes."""
    for path, module in root.named_modules():
        for name, value in vars(module).items():
            if isinstance(value, _C.Tensor):
                yield f"{path}.{name}" if path else name, value


def _with_self(bound: Callable) -> inspect.Signature:
    signature = inspect.signature(bound)
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return signature.replace(parameters=[own, *signature.parameters.values()])


def symbolic_trace(
    root: Module | Callable, concrete_args: Mapping[str, object] | tuple | None = None
) -> GraphModule:
    """The module or function as a GraphModule.

    concrete_args: values that are traced with, by name; leaves that are `fx.PH` stay inputs.
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
