"""torch.export.export: a module's call as an ExportedProgram."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from rushlight import fx
from rushlight._dynamo.exc import UserError, UserErrorType
from rushlight._subclasses.fake_tensor import fake_meta
from rushlight.export import _unify
from rushlight.export._trace import TracedCall
from rushlight.export.decomp_utils import CustomDecompTable, default_decompositions
from rushlight.export.dynamic_shapes import (
    AdditionalInputs,
    OpenSize,
    Range,
    ShapesCollection,
    open_sizes,
)
from rushlight.export.exported_program import CallSpec, ExportedProgram
from rushlight.export.graph_signature import TensorArgument
from rushlight.export.module_call import ModuleCallEntry, ModuleCallSignature
from rushlight.nn.modules.module import Module
from rushlight.utils._pytree import tree_flatten, tree_flatten_with_path, tree_unflatten


def _in_order(forward: Any, args: tuple, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments in the order of the definition; TypeError where the call does not fit."""
    signature = inspect.signature(forward)
    signature.bind(*args, **kwargs)
    known = [name for name in signature.parameters if name in kwargs]
    return {name: kwargs[name] for name in [*known, *(k for k in kwargs if k not in known)]}


def _names(forward: Any, args: tuple, kwargs: dict) -> list[str]:
    """A name for each leaf of the arguments: x, or x_key, x_0 within a structure."""
    signature = inspect.signature(forward)
    names = []
    for name, value in signature.bind(*args, **kwargs).arguments.items():
        keyed = signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD
        for path, _ in tree_flatten_with_path(value)[0]:
            keys = [str(next(iter(vars(key).values()))) for key in path]
            names.append("_".join(keys if keyed else [name, *keys]))
    return names


class _Exporter:
    """A call that is traced, once or with several sizes."""

    def __init__(
        self,
        root: Module,
        args: tuple,
        kwargs: dict,
        names: list[str],
        table: Any,
        whole: bool | Callable[[Any], bool],
        preserved: tuple[str, ...] = (),
    ) -> None:
        self.root, self.names, self.table, self.whole = root, names, table, whole
        self.preserved = preserved
        self.on_value: Callable | None = None  # of the mode that traces
        self.leaves, self.in_spec = tree_flatten((args, kwargs))

    def _traced(self, leaves: list) -> TracedCall:
        args, kwargs = tree_unflatten(leaves, self.in_spec)
        traced = TracedCall(self.root, self.names, self.table, self.whole, self.preserved)
        traced.on_value(self.on_value)
        return traced.run(self.root, args, kwargs)

    def _of_all_sizes(self, sizes: list[OpenSize], ranges: dict, spread: bool) -> TracedCall:
        given = {size.name: size.root(self.leaves[size.leaf].shape[size.dim]) for size in sizes}
        chosen = _unify.choices(given, ranges, spread)
        traces = []
        for choice in chosen:
            try:
                traces.append(self._traced(_unify.resized(self.leaves, sizes, choice)))
            except (RuntimeError, ValueError, IndexError) as error:
                if choice == chosen[0]:
                    raise
                raise UserError(
                    UserErrorType.CONSTRAINT_VIOLATION,
                    f"Constraints violated ({', '.join(given)})! The program runs with the sizes "
                    f"{chosen[0]}, but not with {choice}: {error}",
                ) from error
        codes = [{name: inner.code for name, inner in t.modules.items()} for t in traces]
        if any(code != codes[0] for code in codes):
            raise UserError(
                UserErrorType.DYNAMIC_CONTROL_FLOW,
                "export: the functions of torch.cond depend on open sizes, but their graphs are of "
                "one call; give these sizes without dynamic_shapes",
            )
        _unify.Unifier(traces, chosen, sizes).run()
        return traces[0]

    def run(self, sizes: list[OpenSize], ranges: dict[str, Range]) -> ExportedProgram:
        """The program."""
        if not sizes:
            traced = self._traced(self.leaves)
        else:
            try:
                traced = self._of_all_sizes(sizes, ranges, spread=False)
            except UserError:
                # Code such as x.view(b, t // 4, 4) needs sizes with the same divisors.
                traced = self._of_all_sizes(sizes, ranges, spread=True)
        fake_meta(traced.graph.nodes)
        graph_module = fx.GraphModule(traced.modules, traced.graph)
        graph_module.graph.lint()
        return ExportedProgram(
            graph_module,
            traced.signature(),
            traced.state,
            traced.constants,
            CallSpec(self.in_spec, traced.result_spec),
            tree_unflatten(self.leaves, self.in_spec),
            sizes,
            ranges,
            self.names,
            self._entries(traced),
            _aliases(self.root),
        )

    def _entries(self, traced: TracedCall) -> list[ModuleCallEntry]:
        """The modules by path, with how they were called where that is kept."""
        names = [*self._parameters()]
        whole = ModuleCallSignature([], [], self.in_spec, traced.result_spec, names)
        kept = traced.calls.signatures
        paths = [name for name, _ in self.root.named_modules() if name]
        again = [name for name in kept if name not in paths]  # a@1: a second call
        inner = [ModuleCallEntry(name, kept.get(name)) for name in [*paths, *again]]
        return [ModuleCallEntry("", whole), *inner]

    def _parameters(self) -> list[str]:
        """The names of the arguments of forward that the call gives."""
        args, kwargs = tree_unflatten(self.leaves, self.in_spec)
        try:
            bound = inspect.signature(self.root.forward).bind(*args, **kwargs)
        except TypeError:  # an exported module, which takes leaves
            return []
        return list(bound.arguments)


def _aliases(root: Module) -> dict[str, str]:
    """The further names of parameters and buffers that have several, by each the first."""
    found, first = {}, {}
    for members in (root.named_parameters, root.named_buffers):
        for name, tensor in members(remove_duplicate=False):
            known = first.setdefault(id(tensor), name)
            if known != name:
                found[name] = known
    return found


def _merged(sizes: list[OpenSize], leaves: list) -> list[OpenSize]:
    """Hints' sizes that are equal in the call as one size."""
    first: dict[int, str] = {}
    return [
        size._replace(name=first.setdefault(leaves[size.leaf].shape[size.dim], size.name))
        for size in sizes
    ]


def export(
    mod: Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Mapping[str, Any]
    | tuple
    | list
    | ShapesCollection
    | AdditionalInputs
    | None = None,
    strict: bool = False,
    preserve_module_call_signature: tuple[str, ...] = (),
    prefer_deferred_runtime_asserts_over_guards: bool = False,
    _on_value: Callable | None = None,
) -> ExportedProgram:
    """The call mod(*args, **kwargs) as a graph of aten operators.

    dynamic_shapes: which sizes may differ later, as Dims: by argument name or in the order of
    arguments. The module runs once, and with three more choices of sizes where some are open; the
    numbers that differ are expressed by the sizes. UserError where they are no simple expression,
    where another size runs other operators, and where a value of a tensor decides what runs.
    """
    if not isinstance(mod, Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if not isinstance(args, tuple):
        raise UserError(
            UserErrorType.INVALID_INPUT,
            f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}",
        )
    known = dict(mod.named_modules())
    for path in preserve_module_call_signature:
        if path not in known:
            raise ValueError(f"export: preserve_module_call_signature: no module '{path}'")
    kwargs = _in_order(mod.forward, args, kwargs or {})
    further = dynamic_shapes if isinstance(dynamic_shapes, AdditionalInputs) else None
    if isinstance(dynamic_shapes, (AdditionalInputs, ShapesCollection)):
        dynamic_shapes = dynamic_shapes.dynamic_shapes(mod, args, kwargs)
    sizes, ranges, hinted = open_sizes(mod.forward, args, kwargs, dynamic_shapes)
    names = _names(mod.forward, args, kwargs)
    preserved = tuple(preserve_module_call_signature)
    exporter = _Exporter(mod, args, kwargs, names, None, True, preserved)
    exporter.on_value = _on_value
    program = _run(exporter, sizes, ranges, hinted)
    if further is not None:
        further.verify(program)
    return program


def _run(exporter: _Exporter, sizes: list[OpenSize], ranges: dict, hinted: bool) -> ExportedProgram:
    if not hinted:
        return exporter.run(sizes, ranges)
    try:
        return exporter.run(sizes, ranges)
    except UserError:
        merged = _merged(sizes, exporter.leaves)
        kept = {name: ranges[name] for name in {size.name for size in merged}}
        return exporter.run(merged, kept)


def decomposed(program: ExportedProgram, table: Mapping[Any, Any] | None) -> ExportedProgram:
    """The program in the operators that compositions call, and those that the table gives."""
    whole: bool | Callable[[Any], bool] = True
    table = default_decompositions() if table is None else table
    if isinstance(table, CustomDecompTable):
        whole, table = table.copy()._opens, table._functions()
    args, kwargs = program.example_inputs
    module = program.module()
    module.__dict__["_program"] = _Unchecked(program)
    replay = module.__dict__["_replay"] = fx.Interpreter(module, garbage_collect_values=False)
    exporter = _Exporter(module, args, kwargs, program._argument_names, dict(table or {}), whole)
    made = exporter.run(program._open_sizes, program._ranges)
    made._aliases = program._aliases
    made._module_call_graph = [_renamed(entry, replay) for entry in program.module_call_graph]
    return made


def _renamed(entry: ModuleCallEntry, replay: fx.Interpreter) -> ModuleCallEntry:
    """The entry with the names that nodes have in the program that was made by running again."""
    if entry.signature is None or not entry.fqn:
        return entry
    made = copy.deepcopy(entry.signature)
    values = {node.name: value for node, value in replay.env.items()}
    mode = replay.__dict__["mode"]
    for arg in (*made.inputs, *made.outputs):
        if isinstance(arg, TensorArgument):
            arg.name = mode.node(values[arg.name]).name
    return ModuleCallEntry(entry.fqn, made)


class _Unchecked:
    """A program of which calls of all sizes are let through."""

    def __init__(self, program: ExportedProgram) -> None:
        self._leaves = program._leaves
        self.call_spec = program.call_spec

    def _check(self, leaves: list) -> None:
        pass
