"""A module whose `forward` is a graph's code."""

from __future__ import annotations

import copy
import itertools
import linecache
import os
from collections.abc import Callable

from rushlight.fx import _folder
from rushlight.fx.codegen import PythonCode, _PyTreeCodeGen
from rushlight.fx.graph import Graph
from rushlight.nn.modules.module import Module

_numbers = itertools.count()


def _run_source(source: str, names: dict[str, object]) -> Callable:
    """Defines `forward`; tracebacks show its lines."""
    file = f"<eval_with_key>.{next(_numbers)}"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    namespace = dict(names)
    exec(compile(source, file, "exec"), namespace)
    return namespace["forward"]


def _copy_attribute(source: object, target: Module, path: str) -> None:
    """Gives `target` what is at the path in `source`, with empty modules on the way."""
    _assign_attr(_get_attr(source, path), target, path)


reduce_graph_module = _folder.reduce_graph_module
_copy_attr = _copy_attribute
_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"  # of graph.meta


def _member(root: object, path: str) -> object:
    for name in path.split("."):
        root = getattr(root, name, None)
    return root


def _get_attr(model: object, attr_name: str) -> object:
    """What a module has at a path. AttributeError where it has nothing."""
    for name in attr_name.split("."):
        model = getattr(model, name)
    return model


def _assign_attr(from_obj: object, to_module: Module, target: str) -> None:
    """Gives a module something at a path, tensors as buffers, with empty modules on the way."""
    *prefix, name = target.split(".")
    for part in prefix:
        if not hasattr(to_module, part):
            setattr(to_module, part, Module())
        to_module = getattr(to_module, part)
    if type(from_obj).__name__ == "Tensor":
        to_module.register_buffer(name, from_obj)
    else:
        setattr(to_module, name, from_obj)


def _set_path(module: Module, path: str, value: object) -> None:
    *prefix, name = path.split(".")
    for part in prefix:
        if not hasattr(module, part):
            setattr(module, part, Module())
        module = getattr(module, part)
    setattr(module, name, value)


class GraphModule(Module):
    """A module that runs `graph`. `root` has what the graph reads and calls: a module or a dict.

    `recompile()` after changing the graph: `code` and `forward` are of the last time.
    """

    def __new__(cls, *args: object, **kwargs: object) -> GraphModule:
        # A class of its own, so that its forward can be its own.
        for base in cls.__mro__:
            if base is GraphModule or not base.__dict__.get("_is_instance_class"):
                made = type(cls.__name__, (cls,), {"_is_instance_class": True})
                return super().__new__(made)
        raise AssertionError("GraphModule has no base")

    def __init__(
        self, root: Module | dict[str, object], graph: Graph, class_name: str = "GraphModule"
    ) -> None:
        super().__init__()
        type(self).__name__ = class_name
        self.__dict__["meta"] = {}
        if not isinstance(root, (Module, dict)):
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        if isinstance(root, Module):
            self.training = getattr(root, "training", True)
        for node in graph.nodes:
            if node.op not in ("get_attr", "call_module"):
                continue
            if isinstance(root, Module):
                _copy_attribute(root, self, node.target)
            elif node.target not in root:
                raise RuntimeError(
                    f"Node {node} referenced target {node.target} but that target was not provided "
                    "in ``root``!"
                )
            else:
                _set_path(self, node.target, root[node.target])
        self.graph = graph

    @property
    def graph(self) -> Graph:
        """The graph; assigning one recompiles."""
        return self.__dict__["_graph"]

    @graph.setter
    def graph(self, graph: Graph) -> None:
        if not isinstance(graph, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(graph)}")
        self.__dict__["_graph"] = graph
        graph.owning_module = self
        self.recompile()

    def __setattr__(self, name: str, value: object) -> None:
        if name == "graph":
            GraphModule.graph.fset(self, value)
        else:
            super().__setattr__(name, value)

    def recompile(self) -> PythonCode:
        """Writes the code of the graph as it is now; gives it."""
        codegen = self.graph._codegen
        if isinstance(codegen, _PyTreeCodeGen):
            self.__dict__["_in_spec"] = codegen.pytree_info.in_spec
            self.__dict__["_out_spec"] = codegen.pytree_info.out_spec
        code = self.graph.python_code("self")
        self.__dict__["_code"] = code.src
        type(self).forward = _run_source(code.src, code.globals)
        return code

    @property
    def code(self) -> str:
        """The source of `forward`."""
        return self.__dict__["_code"]

    def print_readable(
        self,
        print_output: bool = True,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        *,
        fast_sympy_print: bool = False,
        expanded_def: bool = False,
        additional_meta: list[str] | None = None,
    ) -> str:
        """Prints the code, with the types of tensors, of this module and those it calls; gives it.

        include_stride, include_device: types say more. colored: for a terminal. expanded_def: an
        argument a line. additional_meta: keys of nodes' meta that are shown.
        """
        options = {
            "include_stride": include_stride,
            "include_device": include_device,
            "colored": colored,
            "expanded_def": expanded_def,
            "additional_meta": additional_meta,
        }
        text = self._readable(type(self).__name__, options)
        if print_output:
            print(text)
        return text

    def _readable(self, name: str, options: dict[str, object]) -> str:
        source = self.graph.python_code("self", verbose=True, **options).src.strip()
        parts = [source]
        for child, module in self.named_children():
            if isinstance(module, GraphModule):
                parts.append(module._readable(child, options).rstrip("\n"))
        text = "\n\n".join(parts).split("\n")
        body = "\n".join(f"    {line}" if line.strip() else "" for line in text)
        return f"class {name}(torch.nn.Module):\n{body}\n"

    def __str__(self) -> str:
        return "\n".join(
            [
                super().__str__(),
                self.code,
                "# To see more debug info, please use `graph_module.print_readable()`",
            ]
        )

    # ---- Submodules ----------------------------------------------------------------------------

    def add_submodule(self, target: str, m: Module) -> bool:
        """Adds a module at a path; whether it could be."""
        *prefix, name = target.split(".")
        at: object = self
        for part in prefix:
            if not hasattr(at, part):
                setattr(at, part, Module())
            at = getattr(at, part)
            if not isinstance(at, Module):
                return False
        at.add_module(name, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Deletes the module at a path; whether there was one."""
        *prefix, name = target.split(".")
        at: object = self
        for part in prefix:
            at = getattr(at, part, None)
        if not isinstance(getattr(at, name, None), Module):
            return False
        delattr(at, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Deletes the modules that no node calls or reads."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = node.target.split(".")
                used.update(".".join(parts[:i]) for i in range(1, len(parts) + 1))
                inner = _member(self, node.target)
                if node.op == "call_module" and inner is not None:
                    used.update(f"{node.target}.{name}" for name, _ in inner.named_modules())
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    def to_folder(self, folder: str | os.PathLike[str], module_name: str = "FxModule") -> None:
        """Writes a Python package whose class `module_name` is this module, state included."""
        _folder.write(self, folder, module_name)

    # ---- Copies --------------------------------------------------------------------------------

    def __deepcopy__(self, memo: dict) -> GraphModule:
        bare = Module()
        memo[id(self)] = bare
        bare.__dict__.update(
            {
                key: copy.deepcopy(value, memo)
                for key, value in self.__dict__.items()
                if key not in _OWN
            }
        )
        made = self._class()(bare, copy.deepcopy(self.graph))
        memo[id(self)] = made
        made.__dict__["meta"] = dict(self.meta)
        return made

    def __copy__(self) -> GraphModule:
        made = GraphModule(self, self.graph)
        made.__dict__["meta"] = dict(self.meta)
        return made

    @classmethod
    def _class(cls) -> Callable:
        """What makes modules of this class of a root and a graph, past their own __init__."""
        base = next(kind for kind in cls.__mro__ if not kind.__dict__.get("_is_instance_class"))

        def make(root: Module, graph: Graph) -> GraphModule:
            made = base.__new__(base)
            GraphModule.__init__(made, root, graph)
            return made

        return make

    def __reduce__(self) -> tuple:
        members = {key: value for key, value in self.__dict__.items() if key not in _OWN}
        return _restore, (members, _portable(self.graph), self.graph._codegen)


_OWN = ("_graph", "_code", "meta")


def _portable(graph: Graph) -> list:
    """The nodes as data that can be pickled: functions by their names."""
    from rushlight.fx.node import map_arg

    return [
        (
            node.op,
            node.target,
            map_arg(node.args, lambda n: _Reference(n.name)),
            map_arg(node.kwargs, lambda n: _Reference(n.name)),
            node.name,
            node.type,
        )
        for node in graph.nodes
    ]


class _Reference:
    """A node by its name."""

    def __init__(self, name: str) -> None:
        self.name = name


def _restore(members: dict, rows: list, codegen: object) -> GraphModule:
    from rushlight.fx.node import map_aggregate

    graph = Graph()
    nodes: dict[str, object] = {}

    def find(item: object) -> object:
        return nodes[item.name] if isinstance(item, _Reference) else item

    for op, target, args, kwargs, name, kind in rows:
        nodes[name] = graph.create_node(
            op, target, map_aggregate(args, find), map_aggregate(kwargs, find), name, kind
        )
    graph.set_codegen(codegen)
    bare = Module()
    bare.__dict__.update(members)
    made = GraphModule(bare, graph)
    made.__dict__.update({name: value for name, value in members.items() if name not in vars(made)})
    return made
