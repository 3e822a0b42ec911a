"""Exported programs as modules again: one for each call of a module, with the state that it had."""

from __future__ import annotations

import abc
from typing import Any

from rushlight import Tensor, fx
from rushlight.export._unflatten import Builder, Part
from rushlight.export.exported_program import ExportedProgram, _set
from rushlight.fx.graph_module import _run_source
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

__all__ = [
    "FlatArgsAdapter", "InterpreterModule", "InterpreterModuleDispatcher", "UnflattenedModule",
    "unflatten",
]  # fmt: skip


class FlatArgsAdapter(abc.ABC):
    """Makes arguments of another structure those that a program takes."""

    @abc.abstractmethod
    def adapt(
        self,
        target_spec: TreeSpec,
        input_spec: TreeSpec,
        input_args: list[Any],
        metadata: dict[str, Any] | None = None,
        obj: Any | None = None,
    ) -> list[Any]:
        """The leaves that target_spec asks for, of the leaves that input_spec describes."""

    def get_flat_arg_paths(self) -> list[str]:
        """Names of the leaves, where there are any."""
        return []


class _GraphModule(Module):
    """A module that runs a graph on itself."""

    graph: fx.Graph
    graph_module: fx.GraphModule | None

    def _take_graph(self, graph: fx.Graph) -> None:
        self.__dict__["graph"] = graph
        graph.owning_module = self
        self.finalize()

    def finalize(self) -> None:
        """Writes the code of the graph as it is now."""
        self.graph.lint()
        code = self.graph.python_code("self")
        self.__dict__["_run"] = _run_source(code.src, code.globals)

    def print_readable(
        self,
        print_output: bool = True,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
    ) -> str:
        """Prints the code, with the types of tensors; gives it."""
        code = self.graph.python_code(
            "self",
            verbose=True,
            include_stride=include_stride,
            include_device=include_device,
            colored=colored,
        )
        lines = [f"    {line}" if line.strip() else "" for line in code.src.strip().split("\n")]
        text = "\n".join([f"class {type(self).__name__}(torch.nn.Module):", *lines, ""])
        if print_output:
            print(text)
        return text


class InterpreterModule(_GraphModule):
    """A module that was called within the exported one. ty: the class that it had."""

    def __init__(self, graph: fx.Graph, ty: str | None = None) -> None:
        super().__init__()
        self._ty = ty
        self._take_graph(graph)

    def type_name(self) -> str | None:
        """The class that the module had."""
        return self._ty

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the graph; arguments by name are those of its placeholders."""
        return self._run(self, *args, **kwargs)

    def finalize(self) -> None:
        """Writes the code of the graph as it is now; `arg_names` are its parameters."""
        super().finalize()
        self.arg_names = [str(n.target) for n in self.graph.nodes if n.op == "placeholder"]


class InterpreterModuleDispatcher(Module):
    """Modules of several calls of one, which are called in turn.

    attrs: names that are read of the first one.
    """

    def __init__(self, attrs: set[str], call_modules: list[InterpreterModule]) -> None:
        super().__init__()
        if not call_modules:
            raise AssertionError("call_modules must not be empty")
        self._modules = call_modules[0]._modules
        for name in attrs:
            setattr(self, name, getattr(call_modules[0], name))
        self.__dict__["_call_modules"] = call_modules
        self.__dict__["_num_calls"] = 0

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the next one."""
        module = self._call_modules[self._num_calls]
        self.__dict__["_num_calls"] = (self._num_calls + 1) % len(self._call_modules)
        return module(*args, **kwargs)

    def call_modules(self) -> list[InterpreterModule]:
        """The modules in turn."""
        return self._call_modules

    def type_name(self) -> str | None:
        """The class that the module had."""
        return self._call_modules[0].type_name()

    def print_readable(
        self,
        print_output: bool = True,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
    ) -> str:
        """Prints the code of each of them; gives it."""
        texts = [
            module.print_readable(print_output, include_stride, include_device, colored)
            for module in self._call_modules
        ]
        return "\n".join(texts)


class UnflattenedModule(_GraphModule):
    """A program as a module with the submodules that were called, each with its own graph.

    It is called as the exported module was; its state is a copy. Submodules can be replaced by
    others that take and give the same: where the program was exported with
    preserve_module_call_signature, by modules of the original's signature. flat_args_adapter: makes
    arguments of another structure fit.
    """

    def __init__(
        self,
        export_module: ExportedProgram,
        flat_args_adapter: FlatArgsAdapter | None = None,
    ) -> None:
        super().__init__()
        program = export_module
        self.__dict__["_program"] = program
        self.__dict__["flat_args_adapter"] = flat_args_adapter
        self.module_call_graph = program.module_call_graph
        root = Builder(program).root()
        for entry in program.module_call_graph:
            _path(self, entry.fqn)  # in the order that they had
        _plant(self, root)
        hidden = program.graph_signature.non_persistent_buffers
        own = {name: _cloned(value) for name, value in program._state.items()}
        for name, value in own.items():
            _set(self, name, value, name not in hidden)
        for name, known in program._aliases.items():
            _set(self, name, own[known], known not in hidden)
        for name, value in program._constants.items():
            _set(self, name, value, None)
        _share(self, self, root)
        self._take_graph(root.graph)
        self._finalize_parts()

    def _finalize_parts(self) -> None:
        for module in self.modules():
            if isinstance(module, InterpreterModule):
                module.finalize()

    def type_name(self) -> str | None:
        """The class of the exported module."""
        for node in self._program.graph.nodes:
            for path, kind in node.meta.get("nn_module_stack", {}).values():
                if not path:
                    return kind
        return None

    def process_forward_inputs(self, *args: Any, **kwargs: Any) -> list[Any]:
        """The leaves of the arguments of a call, checked.

        TypeError where their structure is another and no adapter is there.
        """
        expected = self._program.example_inputs[1]
        if list(kwargs) != list(expected) and set(kwargs) == set(expected):
            kwargs = {name: kwargs[name] for name in expected}
        leaves, spec = tree_flatten((args, kwargs))
        wanted = self._program.call_spec.in_spec
        if spec != wanted:
            if self.flat_args_adapter is None:
                raise TypeError(
                    "There is no flat args adapter specified. Are you sure you are calling this "
                    f"with the right arguments? The program takes {wanted}, got {spec}"
                )
            leaves = self.flat_args_adapter.adapt(wanted, spec, leaves)
            if len(leaves) != wanted.num_leaves:
                raise TypeError(
                    f"Flat args adaption failed, number of args mismatch. Adatped: {len(leaves)}, "
                    f"exported module: {wanted.num_leaves}"
                )
        self._program._check(leaves)
        return leaves

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the graph."""
        made = self._run(self, *self.process_forward_inputs(*args, **kwargs))
        return tree_unflatten(list(made), self._program.call_spec.out_spec)


def _cloned(tensor: Tensor) -> Tensor:
    made = tensor.detach().clone()
    if isinstance(tensor, Parameter):
        return Parameter(made, requires_grad=tensor.requires_grad)
    return made


def _path(root: Module, path: str) -> Module:
    """The module at a path; what is missing on the way is made, empty."""
    for name in filter(None, path.split(".")):
        if name not in root._modules:
            root.add_module(name, Module())
        root = root._modules[name]
    return root


def _plant(module: Module, part: Part) -> None:
    """Gives a module those of the calls within it. Graphs are linted when state is there."""
    module.__dict__.update(part.specs)
    for name, child in part.children.items():
        made = InterpreterModule.__new__(InterpreterModule)
        Module.__init__(made)
        made._ty = child.kind
        made.__dict__["graph"] = child.graph
        child.graph.owning_module = made
        prefix, _, last = name.rpartition(".")
        at = _path(module, prefix)
        if last in at._modules:
            made._modules = at._modules[last]._modules
        at._modules[last] = made
        _plant(made, child)


def _share(root: Module, module: Module, part: Part) -> None:
    """Gives modules of later calls (a@1) the state that they read of the first."""
    for local, name in part.state.items():
        value = _value(root, name)
        prefix, _, last = local.rpartition(".")
        at = _path(module, prefix)
        if getattr(at, last, None) is value:
            continue
        owner = _path(root, name.rpartition(".")[0])
        kind = None
        if last in owner._buffers:
            kind = last not in owner._non_persistent_buffers_set
        _set(at, last, value, kind)
    for name, child in part.children.items():
        _share(root, _path(module, name), child)


def _value(root: Module, name: str) -> Tensor:
    prefix, _, last = name.rpartition(".")
    return getattr(_path(root, prefix), last)


def unflatten(
    module: ExportedProgram, flat_args_adapter: FlatArgsAdapter | None = None
) -> UnflattenedModule:
    """The program as a module with the submodules that were called.

    flat_args_adapter: makes arguments of another structure fit.
    """
    return UnflattenedModule(module, flat_args_adapter)
