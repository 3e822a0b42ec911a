"""ExportedProgram: a graph of aten operators with the state and the call of a module."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from rushlight import Tensor, fx
from rushlight.export.dynamic_shapes import OpenSize, Range
from rushlight.export.graph_signature import ExportGraphSignature, InputKind
from rushlight.export.module_call import ModuleCallEntry
from rushlight.export.module_call import ModuleCallSignature as ModuleCallSignature
from rushlight.fx import traceback as fx_traceback
from rushlight.fx.experimental.proxy_tensor import get_proxy_mode
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

__all__ = ["ExportedProgram", "ModuleCallEntry", "ModuleCallSignature"]


class CallSpec(NamedTuple):
    """The structure of (args, kwargs), and of the result."""

    in_spec: TreeSpec
    out_spec: TreeSpec


class ExportedModule(fx.GraphModule):
    """An exported graph as a module: it is called as the module was that it was made of.

    AssertionError where sizes or numbers are not those of the graph; ValueError where arguments
    have another structure.
    """

    def _describe_call(self, program: ExportedProgram) -> None:
        self.__dict__["_program"] = program

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        program = self.__dict__["_program"]
        leaves = program._leaves(args, kwargs)
        program._check(leaves)
        made = self._run(leaves)
        return tree_unflatten(list(made), program.call_spec.out_spec)

    def _run(self, leaves: list) -> Any:
        replay = self.__dict__.get("_replay")
        if replay is None:
            return super().__call__(*leaves)
        # Node by node, so that new nodes note the modules of those that they are made of.
        replay.__dict__["mode"] = get_proxy_mode()
        with fx_traceback.preserve_node_meta():
            return replay.run(*leaves)

    def train(self, mode: bool = True) -> ExportedModule:
        """Not possible: the graph is of one of the two modes."""
        raise NotImplementedError("Calling train() is not supported yet.")

    def eval(self) -> ExportedModule:
        """Not possible: the graph is of one of the two modes."""
        raise NotImplementedError("Calling eval() is not supported yet.")


def _set(root: Module, path: str, value: Tensor, persistent: bool | None) -> None:
    *prefix, name = path.split(".")
    for part in prefix:
        if part not in root._modules:
            root.add_module(part, Module())
        root = root._modules[part]
    if isinstance(value, Parameter):
        root.register_parameter(name, value)
    elif persistent is None:
        root._buffers.pop(name, None)  # a graph module takes plain tensors for buffers
        root.__dict__[name] = value
    else:
        root.register_buffer(name, value, persistent=persistent)


class ExportedProgram:
    """What torch.export.export gives: `module()` makes something that can be called of it.

    The placeholders of `graph` are parameters, buffers, constants and arguments, as
    `graph_signature` says. Writes into buffers are in-place operators of the graph.
    """

    def __init__(
        self,
        graph_module: fx.GraphModule,
        graph_signature: ExportGraphSignature,
        state: dict[str, Tensor],
        constants: dict[str, Tensor],
        call_spec: CallSpec,
        example_inputs: tuple[tuple, dict],
        open_sizes: list[OpenSize],
        ranges: dict[str, Range],
        argument_names: list[str],
        module_call_graph: list[ModuleCallEntry] | None = None,
        aliases: dict[str, str] | None = None,
    ) -> None:
        self._graph_module = graph_module
        self._graph_signature = graph_signature
        self._state = state  # parameters and all buffers
        self._constants = constants
        self._call_spec = call_spec
        self._example_inputs = example_inputs
        self._open_sizes = open_sizes
        self._ranges = ranges
        self._argument_names = argument_names  # of the leaves
        self._module_call_graph = module_call_graph or []
        self._aliases = aliases or {}  # further names of state, by each its first

    @property
    def graph_module(self) -> fx.GraphModule:
        """The graph as a module of flat inputs and outputs."""
        return self._graph_module

    @property
    def graph(self) -> fx.Graph:
        """The graph."""
        return self._graph_module.graph

    @property
    def graph_signature(self) -> ExportGraphSignature:
        """What its inputs and outputs stand for."""
        return self._graph_signature

    @property
    def state_dict(self) -> dict[str, Tensor]:
        """Parameters and persistent buffers by name."""
        hidden = self._graph_signature.non_persistent_buffers
        return {name: value for name, value in self._state.items() if name not in hidden}

    @property
    def constants(self) -> dict[str, Tensor]:
        """Other tensors that the program holds, and buffers that are not persistent, by name."""
        hidden = self._graph_signature.non_persistent_buffers
        return {**{name: self._state[name] for name in hidden}, **self._constants}

    @property
    def tensor_constants(self) -> dict[str, Tensor]:
        """The same."""
        return self.constants

    @property
    def call_spec(self) -> CallSpec:
        """The structure of arguments and results."""
        return self._call_spec

    @property
    def module_call_graph(self) -> list[ModuleCallEntry]:
        """The modules that were exported, by path, and how they were called where that is kept."""
        return self._module_call_graph

    @property
    def example_inputs(self) -> tuple[tuple, dict]:
        """The arguments of the call that was exported."""
        return self._example_inputs

    @property
    def range_constraints(self) -> dict[str, Range]:
        """What each open size may be, by its name; also of those in terms of others, "2*d"."""
        made = dict(self._ranges)
        for size in self._open_sizes:
            own = self._ranges[size.name]
            made[size.expression] = Range(
                size.of(own.min), None if own.max is None else size.of(own.max)
            )
        return made

    @property
    def dialect(self) -> str:
        """The set of operators: ATEN."""
        return "ATEN"

    def parameters(self) -> Iterator[Tensor]:
        """The parameters."""
        for _, value in self.named_parameters():
            yield value

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """Their names, and the parameters."""
        for name in self._graph_signature.parameters:
            yield name, self._state[name]

    def buffers(self) -> Iterator[Tensor]:
        """The buffers."""
        for _, value in self.named_buffers():
            yield value

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """Their names, and the buffers."""
        for name in self._graph_signature.buffers:
            yield name, self._state[name]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Unable to call ExportedProgram directly. "
            "You should use `exported_program.module()` instead."
        )

    def module(self, check_guards: bool = True) -> fx.GraphModule:
        """A module with the program's parameters and buffers, called as the original one."""
        graph, root, known = fx.Graph(), Module(), {}
        specs = iter(self._graph_signature.input_specs)
        for node in self.graph.nodes:
            if node.op != "placeholder":
                known[node] = graph.node_copy(node, lambda n: known[n])
                continue
            spec = next(specs)
            if spec.kind is InputKind.USER_INPUT:
                known[node] = graph.node_copy(node)
                continue
            constant = spec.kind is InputKind.CONSTANT_TENSOR
            value = (self._constants if constant else self._state)[spec.target]
            _set(root, spec.target, value, spec.persistent)
            known[node] = graph.get_attr(spec.target)
            known[node].meta.update(node.meta)
        for name, function in self._graph_module.named_children():
            root.add_module(name, function)
        made = ExportedModule(root, graph)
        for name in self._constants:
            _set(made, name, self._constants[name], None)
        made._describe_call(self)
        return made

    def run_decompositions(
        self,
        decomp_table: Mapping[Any, Any] | None = None,
        decompose_custom_triton_ops: bool = False,
    ) -> ExportedProgram:
        """The same program in the operators that its own are made of.

        decomp_table: functions that run in the place of operators, and then only these are opened;
        or a CustomDecompTable, which says of all operators what becomes of them.
        """
        from rushlight.export import _export

        return _export.decomposed(self, decomp_table)

    def validate(self) -> None:
        """Checks the graph."""
        self.graph.lint()

    def __str__(self) -> str:
        code = self._graph_module.print_readable(print_output=False)
        code = code.replace("\n", "\n    ").rstrip()
        signature = str(self._graph_signature).replace("\n", "\n    ")
        ranges = ", ".join(f"{name}: {r}" for name, r in self.range_constraints.items())
        return (
            f"ExportedProgram:\n    {code}\n    \nGraph signature: {signature.rstrip()}\n    \n"
            f"Range constraints: {{{ranges}}}\n"
        )

    # ---- Calls -----------------------------------------------------------------------------------

    def _leaves(self, args: tuple, kwargs: dict) -> list:
        expected = self._example_inputs[1]
        if list(kwargs) != list(expected) and set(kwargs) == set(expected):
            kwargs = {name: kwargs[name] for name in expected}
        leaves, spec = tree_flatten((args, kwargs))
        if spec != self._call_spec.in_spec:
            raise ValueError(
                "Trying to flatten user inputs with exported input tree spec: \n"
                f"{self._call_spec.in_spec}\nbut actually got inputs with tree spec of: \n{spec}.\n"
                "Please check that the inputs have the same number and type of args and kwargs as "
                "the ones you used when tracing."
            )
        return leaves

    def _check(self, leaves: list) -> None:
        """AssertionError where the graph is not of these sizes and numbers."""
        opened: dict[str, tuple[int, str]] = {}  # the size, and where it was read
        at = {(size.leaf, size.dim): size for size in self._open_sizes}
        examples = tree_flatten(self._example_inputs)[0]
        for number, (leaf, example) in enumerate(zip(leaves, examples)):
            name = self._argument_names[number]
            if not isinstance(example, Tensor):
                if type(leaf) is not type(example) or leaf != example:
                    raise AssertionError(f"Guard failed: {name} == {example!r}")
                continue
            if not isinstance(leaf, Tensor) or leaf.dim() != example.dim():
                raise AssertionError(f"Guard failed: {name} is a {example.dim()}-D tensor")
            for dim, size in enumerate(example.shape):
                given, opening = leaf.shape[dim], at.get((number, dim))
                text = f"{name}.size()[{dim}]"
                if opening is None:
                    if given != size:
                        raise AssertionError(f"Guard failed: {text} == {size}")
                    continue
                self._check_open(opening, given, text, opened)

    def _check_open(self, size: OpenSize, given: int, text: str, opened: dict) -> None:
        bounds = self.range_constraints[size.expression]
        if given < bounds.min:
            raise AssertionError(f"Guard failed: {text} >= {bounds.min}")
        if bounds.max is not None and given > bounds.max:
            raise AssertionError(f"Guard failed: {text} <= {bounds.max}")
        root = size.root(given)
        if root is None:
            raise AssertionError(f"Guard failed: {text} % {size.slope} == {size.offset}")
        known, where = opened.setdefault(size.name, (root, text))
        if known != root:
            raise AssertionError(
                f"Guard failed: {text} == {size.expression} = {size.of(known)}, by {where}; got "
                f"{given}"
            )
