"""A graph: nodes in the order in which they run, and the Python code that runs them."""

from __future__ import annotations

import builtins
import contextlib
import copy
import keyword
import re
import warnings
from collections.abc import Callable, Iterator

import rushlight
from rushlight.fx._writer import Writer
from rushlight.fx.codegen import CodeGen, PythonCode
from rushlight.fx.codegen import _PyTreeCodeGen as _PyTreeCodeGen
from rushlight.fx.codegen import _PyTreeInfo as _PyTreeInfo
from rushlight.fx.node import _LEGAL_OPS, Node, map_arg
from rushlight.nn.modules.module import Module

_MISSING = object()


class _Namespace:
    """Names that are taken."""

    def __init__(self) -> None:
        self._taken: dict[str, object] = {}

    def create_name(self, candidate: str, owner: object) -> str:
        name = re.sub(r"[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        if name[0].isdigit():
            name = f"_{name}"
        base, number = name, 0
        match = re.fullmatch(r"(.*)_(\d+)", name)
        if match and name in self._taken:
            base, number = match.group(1), int(match.group(2))
        while name in self._taken or keyword.iskeyword(name) or name in _RESERVED:
            number += 1
            name = f"{base}_{number}"
        self._taken[name] = owner
        return name


# Names that the code of a graph may use for what they mean elsewhere.
_RESERVED = frozenset(
    {"torch", "device", "inf", "nan", "NoneType", "fx_pytree", "pytree"}
    | {name for name in dir(builtins) if not name.startswith("_")}
)


class _InsertPoint:
    def __init__(self, graph: Graph, insert: Callable) -> None:
        self._graph = graph
        self._before, graph._insert = graph._insert, insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        self._graph._insert = self._before


class _NodeList:
    """The nodes of a graph in order; nodes may be added and erased while they are visited."""

    def __init__(self, graph: Graph, backwards: bool = False) -> None:
        self._graph = graph
        self._backwards = backwards

    def __len__(self) -> int:
        return self._graph._len

    def __iter__(self) -> Iterator[Node]:
        root = self._graph._root
        at = root._prev if self._backwards else root._next
        while at is not root:
            after = at._prev if self._backwards else at._next
            if not at._erased:
                yield at
            # What was erased meanwhile knows its neighbours no more.
            at = after if at._erased else (at._prev if self._backwards else at._next)

    def __reversed__(self) -> _NodeList:
        return _NodeList(self._graph, not self._backwards)


class Graph:
    """Nodes in the order in which they run: placeholders first, the output last."""

    def __init__(
        self,
        owning_module: object = None,
        tracer_cls: type | None = None,
        tracer_extras: dict | None = None,
    ) -> None:
        self._root = Node(self, "", "placeholder", "", (), {})
        self._len = 0
        self._namespace = _Namespace()
        self._insert = self._root.prepend
        self._owning_module = owning_module
        self._tracer_cls = tracer_cls
        self._codegen = CodeGen()

    @property
    def owning_module(self) -> object:
        """The module that it is the graph of, or None."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, module: object) -> None:
        self._owning_module = module

    @property
    def nodes(self) -> _NodeList:
        """The nodes in order."""
        return _NodeList(self)

    def output_node(self) -> Node:
        """The output."""
        found = [node for node in self.nodes if node.op == "output"]
        if len(found) != 1:
            raise AssertionError(f"expected exactly one output node, got {len(found)}")
        return found[0]

    def find_nodes(self, *, op: str, target: object = None, sort: bool = True) -> list[Node]:
        """The nodes of this kind, and of this target, which has to be given for functions."""
        if op == "call_function" and target is None:
            raise AssertionError("target must not be None for call_function op")
        return [
            node
            for node in self.nodes
            if node.op == op and (target is None or op == "output" or node.target == target)
        ]

    # ---- Adding nodes --------------------------------------------------------------------------

    def create_node(
        self,
        op: str,
        target: object,
        args: tuple | None = None,
        kwargs: dict | None = None,
        name: str | None = None,
        type_expr: object = None,
    ) -> Node:
        """Adds a node at the insertion point."""
        candidate = name if name is not None else self._target_name(op, target)
        node = Node(self, "", op, target, args or (), kwargs or {}, type_expr)
        node._name = self._namespace.create_name(candidate, node)
        self._insert(node)
        self._len += 1
        return node

    def _target_name(self, op: str, target: object) -> str:
        if op == "output":
            return "output"
        name = target if isinstance(target, str) else getattr(target, "__name__", None)
        if name is None:
            name = type(target).__name__
        if name.startswith("__") and name.endswith("__"):
            name = name[2:-2]
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.replace(".", "_")).lower()

    def placeholder(
        self, name: str, type_expr: object = None, default_value: object = _MISSING
    ) -> Node:
        """Adds an input."""
        args = () if default_value is _MISSING else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: object = None) -> Node:
        """Adds the reading of an attribute of the module; warns where it has none of this name."""
        if self.owning_module is not None and not _has(self.owning_module, qualified_name):
            warnings.warn(
                "Attempted to insert a get_attr Node with no underlying reference in the owning "
                "GraphModule! Call GraphModule.add_submodule to add the necessary submodule, "
                "GraphModule.add_parameter to add the necessary Parameter, or "
                "nn.Module.register_buffer to add the necessary buffer",
                stacklevel=2,
            )
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple | None = None,
        kwargs: dict | None = None,
        type_expr: object = None,
    ) -> Node:
        """Adds a call of a submodule. AttributeError where the owning module has none there."""
        if self.owning_module is not None:
            self.owning_module.get_submodule(module_name)
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple | None = None,
        kwargs: dict | None = None,
        type_expr: object = None,
    ) -> Node:
        """Adds a call of a method of args[0]."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable,
        args: tuple | None = None,
        kwargs: dict | None = None,
        type_expr: object = None,
        name: str | None = None,
    ) -> Node:
        """Adds a call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def create_size_node(self, tensor_node: Node, dim: int) -> Node:
        """Adds a size of a tensor."""
        return self.call_function(rushlight.ops.aten.sym_size.int, (tensor_node, dim))

    def create_stride_node(self, tensor_node: Node, dim: int) -> Node:
        """Adds a stride of a tensor."""
        return self.call_function(rushlight.ops.aten.sym_stride.int, (tensor_node, dim))

    def create_storage_offset_node(self, tensor_node: Node) -> Node:
        """Adds where a tensor starts in its memory."""
        return self.call_function(rushlight.ops.aten.sym_storage_offset.default, (tensor_node,))

    def _call_operator(self, operator: Callable, args: tuple, kwargs: dict | None = None) -> Node:
        """Adds a call of an aten operator, under a name that leaves out which form it is."""
        packet = getattr(operator, "overloadpacket", operator)
        return self.call_function(operator, args, kwargs, name=packet.__name__)

    def output(self, result: object, type_expr: object = None) -> Node:
        """Adds the output."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable = lambda node: node) -> Node:
        """Adds a copy of a node; `arg_transform` finds its inputs in this graph."""
        made = self.create_node(
            node.op,
            node.target,
            map_arg(node.args, arg_transform),
            map_arg(node.kwargs, arg_transform),
            node.name,
            node.type,
        )
        made.meta = dict(node.meta)
        return made

    def graph_copy(
        self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False
    ) -> object:
        """Adds copies of a graph's nodes; gives what its output is here."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: dict) -> Graph:
        made = Graph(tracer_cls=self._tracer_cls)
        made._codegen = copy.deepcopy(self._codegen)
        memo[id(self)] = made
        result = made.graph_copy(self, {}, return_output_node=True)
        if result is not None:
            value, old = result
            made.output(value, old.type).meta = dict(old.meta)
        return made

    # ---- Changing ------------------------------------------------------------------------------

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """From now on, or for a with block, new nodes go before this one (the first node)."""
        if n is None:
            return self.inserting_after(self._root)
        self._own(n)
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """From now on, or for a with block, new nodes go after this one (the last node)."""
        if n is None:
            return self.inserting_before(self._root)
        self._own(n)
        at = [n]

        def insert(node: Node) -> None:
            at[0].append(node)
            at[0] = node

        return _InsertPoint(self, insert)

    def _own(self, n: Node) -> None:
        if n.graph is not self:
            raise AssertionError("Node to insert before/after is not in graph.")

    def erase_node(self, to_erase: Node) -> None:
        """Takes out a node that nobody uses."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in "
                f"the graph: {to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            return
        to_erase._update((), {})
        to_erase._prev._next, to_erase._next._prev = to_erase._next, to_erase._prev
        to_erase._erased = True
        self._len -= 1

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Takes out what nobody uses and that does nothing else; whether there was any."""
        self.lint()
        kept = is_impure_node or Node.is_impure
        changed = False
        for node in list(reversed(self.nodes)):
            if not node.users and not kept(node):
                self.erase_node(node)
                changed = True
        return changed

    def lint(self) -> None:
        """RuntimeError where a node uses another before it was made, or names are not unique."""
        seen: set[Node] = set()
        names: set[str] = set()
        for node in self.nodes:
            if node.op not in _LEGAL_OPS:
                raise RuntimeError(f"Node {node} had unknown opcode {node.op}!")
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for source in node.all_input_nodes:
                if source.graph is not self:
                    raise RuntimeError(
                        f"Argument '{source}' of Node '{node}' does not belong to this Graph, but "
                        "was used as an argument! If you are copying nodes from another graph, make"
                        f" sure to use ``arg_transform`` on node_copy() to remap values\n{self}"
                    )
                if source not in seen:
                    raise RuntimeError(
                        f"Argument '{source}' of Node '{node}' was used before it has been "
                        "defined! Please check that Nodes in the graph are topologically "
                        f"ordered\n{self}"
                    )
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            seen.add(node)
            names.add(node.name)
            if node.op in ("get_attr", "call_module") and self.owning_module is not None:
                _check_target(self.owning_module, node)

    # ---- Text ----------------------------------------------------------------------------------

    def __str__(self) -> str:
        lines = ["graph():"]
        lines += [f"    {node.format_node()}" for node in self.nodes]
        return "\n".join(lines)

    def print_tabular(self) -> None:
        """Prints the nodes as a table."""
        rows = [("opcode", "name", "target", "args", "kwargs")]
        rows += [
            (
                node.op,
                node.name,
                str(node.target),
                str(node.args),
                str(node.kwargs),
            )
            for node in self.nodes
        ]
        # As tabulate sets them: a column is wider than its title.
        widths = [max(len(rows[0][i]) + 2, *(len(row[i]) for row in rows)) for i in range(5)]
        for number, row in enumerate(rows):
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
            if number == 0:
                print("  ".join("-" * width for width in widths))

    def python_code(
        self,
        root_module: str,
        *,
        verbose: bool = False,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        expanded_def: bool = False,
        record_func: bool = False,
        additional_meta: list[str] | None = None,
    ) -> PythonCode:
        """The source of `forward`, in which `root_module` is the name of the module.

        verbose: with the types of tensors and where nodes came from. include_stride,
        include_device: types say more. colored: for a terminal. expanded_def: a parameter a line.
        record_func: with an event of the profiler a node. additional_meta: keys of nodes' meta that
        are shown.
        """
        return Writer(
            self,
            root_module,
            verbose,
            include_stride=include_stride,
            include_device=include_device,
            colored=colored,
            expanded_def=expanded_def,
            record_func=record_func,
            additional_meta=additional_meta,
        ).write()

    # ---- Calls ---------------------------------------------------------------------------------

    def set_codegen(self, codegen: CodeGen) -> None:
        """Changes how the code is written and called."""
        self._codegen = codegen

    def process_inputs(self, *args: object) -> object:
        """The values of the placeholders in a call with these arguments."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: object) -> object:
        """What a call gives where the output is this."""
        return self._codegen.process_outputs(out)

    def on_generate_code(
        self, make_transformer: Callable[[Callable | None], Callable[[list[str]], list[str]]]
    ) -> contextlib.AbstractContextManager[None]:
        """Has the lines of the code changed from now on, or for a with block.

        make_transformer: is given the function that does so already, or None, and gives another.
        """
        before = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(before)

        @contextlib.contextmanager
        def block() -> Iterator[None]:
            try:
                yield
            finally:
                self._codegen._body_transformer = before

        return block()


def _has(root: object, path: str) -> bool:
    for name in path.split("."):
        if not hasattr(root, name):
            return False
        root = getattr(root, name)
    return True


def _check_target(root: object, node: Node) -> None:
    """RuntimeError where the module has no such attribute or submodule."""
    for name in str(node.target).split("."):
        if not hasattr(root, name):
            raise RuntimeError(
                f"Node {node} target {node.target} references nonexistent attribute {name} of "
                f"{type(root).__name__}"
            )
        root = getattr(root, name)
    if node.op == "call_module" and not isinstance(root, Module):
        raise RuntimeError(
            f"Node {node} target {node.target} {type(root)} of does not reference an nn.Module"
        )
