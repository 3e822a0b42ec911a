"""Nodes of a graph: one call, or an input or the output."""

from __future__ import annotations

import builtins
import operator
import re
import types
from collections.abc import Callable
from typing import NamedTuple

import rushlight

Target = Callable[..., object] | str  # of a node: what it calls, or a name
Argument = object  # of a node: numbers, texts, nodes, and structures of them
_LEGAL_OPS = ("placeholder", "call_method", "call_module", "call_function", "get_attr", "output")


class TensorMetadata(NamedTuple):
    """How a node's tensor looks."""

    shape: tuple[int, ...]
    dtype: object
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: object
    is_quantized: bool = False
    qparams: dict | None = None


_side_effects: set[Callable] = set()


def has_side_effect(fn: Callable) -> Callable:
    """Says that calls of a function are kept, used or not."""
    _side_effects.add(fn)
    return fn


class immutable_list(list):
    """A list in the arguments of a node, which are changed as a whole."""

    def _refuse(self, *args: object, **kwargs: object) -> None:
        raise TypeError(
            f"'{type(self).__name__}' object does not support mutation. If you are attempting to "
            "modify the kwargs or args of a torch.fx.Node object,\ninstead create a new copy of it "
            "and assign the copy to the node:\n\n    new_args = ...  # copy and mutate args\n"
            "    node.args = new_args\n"
        )

    __delitem__ = __iadd__ = __imul__ = __setitem__ = append = clear = extend = insert = _refuse
    pop = remove = reverse = sort = _refuse

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __reduce__(self) -> tuple:
        return immutable_list, (tuple(iter(self)),)


class immutable_dict(dict):
    """A dict in the arguments of a node, which are changed as a whole."""

    _refuse = immutable_list._refuse
    __delitem__ = __ior__ = __setitem__ = clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple:
        return immutable_dict, (dict(self),)


def map_aggregate(a: object, fn: Callable) -> object:
    """The structure with `fn` of each leaf."""
    if isinstance(a, tuple):
        items = [map_aggregate(item, fn) for item in a]
        return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
    if isinstance(a, list):
        return immutable_list([map_aggregate(item, fn) for item in a])
    if isinstance(a, dict):
        return immutable_dict((key, map_aggregate(value, fn)) for key, value in a.items())
    if isinstance(a, slice):
        return slice(
            map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn)
        )
    return fn(a)


def map_arg(a: object, fn: Callable) -> object:
    """The structure with `fn` of each node in it."""
    return map_aggregate(a, lambda item: fn(item) if isinstance(item, Node) else item)


# Where PyTorch has functions that are operators there too, but are called through Python.
_HOMES = dict.fromkeys(
    "atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod "
    "cdist einsum lu meshgrid norm split tensordot unique unique_consecutive".split(),
    "torch.functional",
)


def qualified_name(target: Callable) -> str:
    """How code names a function: torch.cat, operator.add, torch.ops.aten.sin.default."""
    from rushlight import _ops

    if isinstance(target, (_ops.OpOverload, _ops.OpOverloadPacket)):
        return f"torch.ops.{target}"
    if isinstance(target, _ops.HigherOrderOperator):
        return f"torch.ops.{target.namespace}.{target}"
    name = getattr(target, "__name__", type(target).__name__)
    module = getattr(target, "__module__", None) or ""
    if getattr(builtins, name, None) is target:
        return name
    if isinstance(target, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        return f"{target.__objclass__.__module__}.{target.__objclass__.__name__}.{name}".replace(
            "rushlight", "torch", 1
        )
    module = module.replace("_operator", "operator")
    home = _HOMES.get(name)
    if home is not None and getattr(rushlight.functional, name, None) is target:
        return f"{home}.{name}"
    if module.startswith("rushlight") and getattr(rushlight, name, None) is target:
        return f"torch.{name}"
    space = name.partition("_")[0]
    if module.startswith("rushlight.") and module.endswith(f".{space}"):
        # torch.fft.fft is called fft_fft, and is found under that name in torch._C._fft.
        if getattr(getattr(rushlight._C, f"_{space}", None), name, None) is target:
            return f"torch._C._{space}.{name}"
    if module == "rushlight" or module.startswith("rushlight."):
        module = "torch" + module.removeprefix("rushlight")
    return f"{module}.{name}" if module else name


def _get_qualified_name(func: Callable) -> str:
    """The same, with the module that operators of Python are of: _operator.add."""
    name = qualified_name(func)
    return f"_{name}" if name.startswith("operator.") else name


class Node:
    """One step of a graph: what `op` says it does with `target`, `args` and `kwargs`.

    placeholder: an input named `target`. get_attr: the attribute at the path `target`.
    call_function: target(*args, **kwargs). call_method: args[0].target(...). call_module: the
    submodule at the path `target`. output: gives args[0] back.

    graph: the Graph that it is of. type: the type that the program annotates its result with.
    users: the nodes that take it as an argument. meta: what passes note about it.
    """

    __slots__ = (
        "graph", "op", "target", "type", "meta", "users", "_name", "_input_nodes", "_prev", "_next",
        "_erased", "_args", "_kwargs", "__dict__", "__weakref__",
    )  # fmt: skip

    def __init__(
        self,
        graph,
        name: str,
        op: str,
        target: object,
        args: tuple,
        kwargs: dict,
        return_type: object = None,
    ) -> None:
        if op not in _LEGAL_OPS:
            raise AssertionError(f"op '{op}' is not one of {_LEGAL_OPS}")
        if op == "call_function":
            if not callable(target):
                raise ValueError(
                    f"Node [graph = {graph}, name = '{name}'] target {target} has type "
                    f"{type(target)} but a Callable is expected"
                )
        elif not isinstance(target, str):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target)} "
                "but a str is expected"
            )
        self.graph = graph
        self._name = name
        self.op = op
        self.target = target
        self.type = return_type
        self.meta: dict = {}
        self.users: dict[Node, None] = {}
        self._input_nodes: dict[Node, None] = {}
        self._prev: Node = self
        self._next: Node = self
        self._erased = False
        self._args: tuple = ()
        self._kwargs: dict = {}
        self._update(args, kwargs)

    # ---- Arguments -----------------------------------------------------------------------------

    def _update(self, args: tuple, kwargs: dict) -> None:
        for node in self._input_nodes:
            node.users.pop(self, None)
        self._input_nodes = {}

        def use(node: Node) -> Node:
            self._input_nodes[node] = None
            node.users[self] = None
            return node

        self._args = map_arg(tuple(args), use)
        self._kwargs = map_arg(dict(kwargs), use)

    @property
    def args(self) -> tuple:
        """The arguments by position."""
        return self._args

    @args.setter
    def args(self, value: tuple) -> None:
        self._update(value, self._kwargs)

    @property
    def kwargs(self) -> dict:
        """The arguments by name."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, value: dict) -> None:
        self._update(self._args, value)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments, each once."""
        return list(self._input_nodes)

    def update_arg(self, idx: int, arg: object) -> None:
        """Changes one argument by position."""
        args = list(self._args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: object) -> None:
        """Puts an argument before the one at this position."""
        if not 0 <= idx <= len(self._args):
            raise AssertionError("insert_args index must be between 0 and len(self.args)")
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def update_kwarg(self, key: str, arg: object) -> None:
        """Changes one argument by name."""
        self.kwargs = {**self._kwargs, key: arg}

    # ---- Place in the graph --------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The variable that code calls it; no two nodes of a graph share it."""
        return self._name

    @name.setter
    def name(self, value: str) -> None:
        self._rename(value)

    def _rename(self, candidate: str) -> None:
        if candidate != self._name:
            self._name = self.graph._namespace.create_name(candidate, self)

    @property
    def next(self) -> Node:
        """The node after it; the graph's root after the last."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before it; the graph's root before the first."""
        return self._prev

    def _remove_from_list(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev
        self._prev = self._next = self

    def prepend(self, x: Node) -> None:
        """Moves a node to just before this one."""
        if self.graph is not x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if self is x:
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x

    def append(self, x: Node) -> None:
        """Moves a node to just after this one."""
        self._next.prepend(x)

    def __lt__(self, other: Node) -> bool:
        """Whether it runs before another node of its graph."""
        if self.graph is not other.graph:
            raise AssertionError("nodes of two graphs have no order")
        at = self._next
        while at is not other and at is not self.graph._root:
            at = at._next
        return self is not other and at is other

    def __gt__(self, other: Node) -> bool:
        return other < self

    def __le__(self, other: Node) -> bool:
        return self is other or self < other

    def __ge__(self, other: Node) -> bool:
        return self is other or other < self

    # ---- Uses ----------------------------------------------------------------------------------

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] | None = None,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Has the other node used in its place; gives the nodes that changed."""
        if propagate_meta:
            replace_with.meta.update(
                {key: value for key, value in self.meta.items() if key not in replace_with.meta}
            )
        changed = []
        for user in list(self.users):
            if delete_user_cb is None or delete_user_cb(user):
                user.replace_input_with(self, replace_with)
                changed.append(user)
        return changed

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Puts another node in the place of one among the arguments."""

        def replace(node: Node) -> Node:
            return new_input if node is old_input else node

        self._update(map_arg(self._args, replace), map_arg(self._kwargs, replace))

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether it must be kept though nobody uses it: inputs, outputs, and what writes.

        Calls of modules are kept where the module has a true `_is_impure`.
        """
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            if impure_random and _draws(self.target):
                return True
            return _writes(self.target) or _asserts(self.target) or self.target in _side_effects
        if self.op == "call_method":
            return self.target.endswith("_") and not self.target.endswith("__")
        if self.op == "call_module":
            root = self.graph.owning_module
            if root is None:
                raise AssertionError("self.graph.owning_module not set for purity check")
            return bool(getattr(root.get_submodule(self.target), "_is_impure", False))
        return False

    def normalized_arguments(
        self,
        root: object,
        arg_types: tuple | None = None,
        kwarg_types: dict[str, object] | None = None,
        normalize_to_only_use_kwargs: bool = False,
    ) -> object:
        """The arguments as the callee's signature has them: an ArgsKwargsPair, or None.

        root: the module that submodules are found in. arg_types, kwarg_types: what decides between
        forms of an operator that take the same arguments. normalize_to_only_use_kwargs: by name.
        """
        from rushlight.fx import operator_schemas as schemas

        if self.op == "call_function":
            return schemas.normalize_function(
                self.target,
                self.args,
                self.kwargs,
                arg_types,
                kwarg_types,
                normalize_to_only_use_kwargs,
            )
        if self.op == "call_module":
            return schemas.normalize_module(
                root, self.target, self.args, self.kwargs, normalize_to_only_use_kwargs
            )
        return None

    # ---- Text ----------------------------------------------------------------------------------

    @property
    def stack_trace(self) -> str | None:
        """Where in the program it came from."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def _pretty_print_target(self, target: object) -> str:
        if isinstance(target, str):
            return target
        name = qualified_name(target)
        return f"builtins.{name}" if getattr(builtins, name, None) is target else name

    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        *,
        include_tensor_metadata: bool = False,
    ) -> str | None:
        """The node as a line of the graph's text."""
        if self.op == "output":
            if self.type is not None and maybe_return_typename is not None:
                maybe_return_typename[0] = f" -> {type_name(self.type)}"
            return f"return {self.args[0]}"
        kind = "" if self.type is None else f"{type_name(self.type)} "
        if include_tensor_metadata and self.op != "placeholder":
            kind = _metadata_text(self.meta.get("val")) or kind
        start = f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}"
        if self.op == "placeholder":
            if placeholder_names is not None:
                names = f": {type_name(self.type)}" if self.type is not None else ""
                placeholder_names.append(f"{self.target}{names}")
            default = f"(default={self.args[0]})" if self.args else ""
            return f"{start}[target={self.target}]{default}"
        if self.op == "get_attr":
            return f"{start}[target={self.target}]"
        return (
            f"{start}[target={self._pretty_print_target(self.target)}]"
            f"(args = {_shown(self.args)}, kwargs = {_shown(self.kwargs)})"
        )

    def __repr__(self) -> str:
        return self.name


def type_name(kind: object) -> str:
    """How a graph's text names a type: torch.Tensor, typing.List[int]."""
    if not isinstance(kind, type) or isinstance(kind, types.GenericAlias):
        return re.sub(r"\brushlight(\._C)?\b", "torch", repr(kind))
    if kind.__module__ == "builtins":
        return kind.__name__
    module = re.sub(r"^rushlight(\._C)?(?=\.|$)", "torch", kind.__module__)
    return f"{module}.{kind.__qualname__}"


def _metadata_text(value: object) -> str:
    """How the tensor of a node looks, where its meta has one."""
    if not isinstance(value, rushlight.Tensor):
        return ""
    text = f"{short_dtype(value.dtype)}{list(value.shape)}{list(value.stride())}{value.device}"
    return f'Tensor "{text}"'


def short_dtype(dtype: object) -> str:
    """As code is annotated with it: f32, i64, b8."""
    name = str(dtype).removeprefix("torch.")
    for long, short in (("bfloat", "bf"), ("float", "f"), ("uint", "u"), ("int", "i")):
        if name.startswith(long) and name[len(long) :].isdigit():
            return short + name[len(long) :]
    return {"bool": "b8", "complex64": "c64", "complex128": "c128"}.get(name, name)


def _shown(item: object) -> str:
    """An argument as a graph's text has it."""
    if isinstance(item, Node):
        return f"%{item.name}"
    if isinstance(item, list):
        return f"[{', '.join(map(_shown, item))}]"
    if isinstance(item, tuple):
        return f"({', '.join(map(_shown, item))}{',' if len(item) == 1 else ''})"
    if isinstance(item, dict):
        return f"{{{', '.join(f'{key}: {_shown(value)}' for key, value in item.items())}}}"
    return str(item)


def _writes(target: Callable) -> bool:
    """Whether a call of the function writes an argument: its name ends as in-place forms' do."""
    name = getattr(target, "__name__", "").split(".")[0]
    in_place = (operator.iadd, operator.isub, operator.imul, operator.setitem)
    return target in in_place or (name.endswith("_") and not name.endswith("__"))


def _asserts(target: Callable) -> bool:
    """Whether a call of the operator checks a value."""
    return getattr(target, "__name__", "").startswith(("_assert", "sym_constrain_range"))


def _draws(target: Callable) -> bool:
    """Whether a call of the function draws random numbers, which those after it depend on."""
    schema = getattr(target, "_schema", None)
    if schema is not None:
        return "Generator?" in schema or "dropout" in target.name()
    name = getattr(target, "__name__", "").removesuffix("_like")
    return name in _RANDOM and str(target.__module__) == "rushlight"


_RANDOM = frozenset(
    {"rand", "randn", "randint", "randperm", "normal", "bernoulli", "multinomial", "poisson"}
)
