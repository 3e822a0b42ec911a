"""Stand-ins that write down what is done to them, and what makes nodes of that."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import dis
import enum
import inspect
import operator
import types
from collections import OrderedDict
from collections.abc import Callable

import rushlight
from rushlight import _C
from rushlight.fx import traceback as fx_traceback
from rushlight.fx.graph import Graph
from rushlight.fx.node import Node, immutable_dict, immutable_list, map_aggregate
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


@dataclasses.dataclass
class Scope:
    """Where tracing is: the path of a module, and its class."""

    module_path: str
    module_type: object


class ScopeContextManager(contextlib.AbstractContextManager):
    """A block in which `scope` is what `current_scope` says; gives `scope`."""

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self._before = copy.copy(scope)
        self._scope = scope
        scope.module_path = current_scope.module_path
        scope.module_type = current_scope.module_type

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(self, *exception: object) -> None:
        self._scope.module_path = self._before.module_path
        self._scope.module_type = self._before.module_type


_BASE_TYPES = (
    bool, int, float, complex, str, range, enum.Enum, type(None), type(Ellipsis), Node,
    rushlight.dtype, rushlight.device, rushlight.layout, rushlight.memory_format, _C.Tensor,
    rushlight.Generator,
)  # fmt: skip


class TracerBase:
    """What makes nodes of the operations on stand-ins.

    record_stack_traces: nodes note where the program called. check_mutable_operations: operators
    that write are errors. trace_asserts: `assert` on a stand-in becomes a node.
    proxy_buffer_attributes: buffers are stand-ins when they are read, as parameters are.
    traced_func_name: the method of modules that is traced.
    """

    graph: Graph
    record_stack_traces = False
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False
    traced_func_name = "forward"

    def __init__(self) -> None:
        self.scope = Scope("", None)
        self.module_stack: OrderedDict[str, tuple[str, object]] = OrderedDict()
        self.node_name_to_scope: dict[str, tuple[str, object]] = {}

    def create_node(
        self,
        kind: str,
        target: object,
        args: tuple,
        kwargs: dict,
        name: str | None = None,
        type_expr: object = None,
    ) -> Node:
        """Adds a node, which notes the modules that call it."""
        if kind == "call_function" and self.check_mutable_operations:
            from rushlight.fx.operator_schemas import check_for_mutable_operation

            check_for_mutable_operation(target, args, kwargs)
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        if fx_traceback.has_preserved_node_meta():
            node.meta.update(fx_traceback._copied_meta())
        scope = getattr(self, "scope", None)
        if scope is not None:
            self.node_name_to_scope[node.name] = (scope.module_path, scope.module_type)
            if self.module_stack:
                node.meta["nn_module_stack"] = copy.copy(self.module_stack)
        return node

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
        if self.record_stack_traces and not node.stack_trace:
            end = getattr(type(self), "trace", None)
            node.stack_trace = fx_traceback.program_stack(
                fx_traceback.is_of_program, getattr(end, "__code__", None)
            )
        return self.proxy(node) if proxy_factory_fn is None else proxy_factory_fn(node)

    def create_arg(self, a: object) -> object:
        """The structure with nodes for stand-ins.

        NotImplementedError for objects that a graph's code cannot write; those with a method
        `__fx_create_arg__(tracer)` say themselves what stands for them.
        """
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            items = [self.create_arg(item) for item in a]
            return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
        if isinstance(a, list):
            return immutable_list([self.create_arg(item) for item in a])
        if isinstance(a, dict):
            return immutable_dict({self._key(k): self.create_arg(v) for k, v in a.items()})
        if isinstance(a, slice):
            return slice(*(self.create_arg(part) for part in (a.start, a.stop, a.step)))
        if dataclasses.is_dataclass(a) and not isinstance(a, type):
            fields = {f.name: self.create_arg(getattr(a, f.name)) for f in dataclasses.fields(a)}
            return self.create_node("call_function", type(a), (), fields)
        if isinstance(a, _BASE_TYPES) or type(a).__name__ == "OpOverload":
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _key(self, key: object) -> object:
        made = self.create_arg(key)

        def refuse(item: object) -> object:
            if isinstance(item, Node):
                raise RuntimeError(
                    "Keys for dictionaries used as an argument cannot contain a Node. "
                    f"Got key: {key.node if isinstance(key, Proxy) else key}"
                )
            return item

        return map_aggregate(made, refuse)

    def iter(self, obj: Proxy) -> object:
        """Unpacking into a known number of names is what iteration over a stand-in can be."""
        frame = inspect.currentframe().f_back.f_back
        count = _unpacked(frame)
        if count is not None:
            return (obj[i] for i in range(count))
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a "
            "loop or as a *args or **kwargs function argument. See the torch.fx docs on pytorch.org"
            " for a more detailed explanation of what types of control flow can be traced, and "
            "check out the Proxy docstring for help troubleshooting Proxy iteration errors"
        )

    def to_bool(self, obj: Proxy) -> bool:
        """A stand-in has no truth."""
        if self.trace_asserts and _is_asserted(inspect.currentframe().f_back.f_back):
            self.create_proxy("call_function", rushlight._assert, (obj, ""), {})
            return True
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def keys(self, obj: Proxy) -> object:
        """The keys of a stand-in for a dict."""
        return Attribute(obj, "keys")()


def _instructions_from(frame: types.FrameType | None) -> list[dis.Instruction]:
    """The instruction that a frame runs, and those after it."""
    if frame is None:
        return []
    return [i for i in dis.get_instructions(frame.f_code) if i.offset >= frame.f_lasti]


def _unpacked(frame: types.FrameType | None) -> int | None:
    """Into how many names the running instruction unpacks; None where it does something else."""
    for instruction in _instructions_from(frame)[:1]:
        return instruction.argval if instruction.opname == "UNPACK_SEQUENCE" else None
    return None


def _is_asserted(frame: types.FrameType | None) -> bool:
    """Whether the running instruction is the jump of an assert."""
    names = [i.opname for i in _instructions_from(frame) if i.opname not in ("TO_BOOL", "CACHE")]
    return "JUMP" in names[0] and names[1:2] == ["LOAD_ASSERTION_ERROR"] if names else False


class GraphAppendingTracer(TracerBase):
    """Adds to a graph that is there: for rewriting with stand-ins."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph


class MetaProxy(Proxy):
    """A stand-in whose nodes carry a FakeTensorMode in their meta."""

    def __init__(
        self, node: Node, tracer: TracerBase | None = None, fake_mode: object = None
    ) -> None:
        super().__init__(node, tracer)
        self.fake_mode = fake_mode

    def __repr__(self) -> str:
        return f"MetaProxy({self.node.name})"


class ParameterProxy(Proxy):
    """A stand-in for a parameter whose sizes are numbers."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Parameter) -> None:
        super().__init__(node, tracer)
        if not isinstance(param, Parameter):
            raise AssertionError(f"expected a Parameter, got {type(param)}")
        self.param = param
        self.name = name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> tuple[int, ...]:
        """The parameter's."""
        return self.param.shape

    def size(self, dim: int | None = None) -> object:
        """The parameter's."""
        return self.param.size() if dim is None else self.param.size(dim)

    def dim(self) -> int:
        """The parameter's."""
        return self.param.dim()

    @property
    def ndim(self) -> int:
        """The parameter's."""
        return self.param.ndim

    def numel(self) -> int:
        """The parameter's."""
        return self.param.numel()

    def nelement(self) -> int:
        """The parameter's."""
        return self.param.nelement()
