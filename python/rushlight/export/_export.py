"""torch.export.export: a module's call as an ExportedProgram."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from rushlight import fx
from rushlight._dynamo.exc import UserError, UserErrorType
from rushlight.export import _unify
from rushlight.export._trace import TracedCall
from rushlight.export.dynamic_shapes import (
    AdditionalInputs,
    OpenSize,
    Range,
    ShapesCollection,
    open_sizes,
)
from rushlight.export.exported_program import CallSpec, ExportedProgram
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
            keys = [str(vars(key).get("key", vars(key).get("idx", key))) for key in path]
            names.append("_".join(keys if keyed else [name, *keys]))
    return names


class _Exporter:
    """A call that is traced, once or with several sizes."""

    def __init__(
        self, root: Module, args: tuple, kwargs: dict, names: list[str], table: Any, whole: bool
    ) -> None:
        self.root, self.names, self.table, self.whole = root, names, table, whole
        self.leaves, self.in_spec = tree_flatten((args, kwargs))

    def _traced(self, leaves: list) -> TracedCall:
        args, kwargs = tree_unflatten(leaves, self.in_spec)
        traced = TracedCall(self.root, self.names, self.table, self.whole)
        return traced.run(self.root, args, kwargs)

    def _of_all_sizes(self, sizes: list[OpenSize], ranges: dict, spread: bool) -> TracedCall:
        given = {size.name: self.leaves[size.leaf].shape[size.dim] for size in sizes}
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
        graph_module = fx.GraphModule({}, traced.graph)
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
        )


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
    if preserve_module_call_signature:
        raise NotImplementedError(
            "export: preserve_module_call_signature is not supported: programs are flat"
        )
    kwargs = _in_order(mod.forward, args, kwargs or {})
    further = dynamic_shapes if isinstance(dynamic_shapes, AdditionalInputs) else None
    if isinstance(dynamic_shapes, (AdditionalInputs, ShapesCollection)):
        dynamic_shapes = dynamic_shapes.dynamic_shapes(mod, args, kwargs)
    sizes, ranges, hinted = open_sizes(mod.forward, args, kwargs, dynamic_shapes)
    names = _names(mod.forward, args, kwargs)
    exporter = _Exporter(mod, args, kwargs, names, None, whole=True)
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
    args, kwargs = program.example_inputs
    module = program.module()
    module.__dict__["_program"] = _Unchecked(program)
    exporter = _Exporter(module, args, kwargs, program._argument_names, dict(table or {}), False)
    return exporter.run(program._open_sizes, program._ranges)


class _Unchecked:
    """A program of which calls of all sizes are let through."""

    def __init__(self, program: ExportedProgram) -> None:
        self._leaves = program._leaves
        self.call_spec = program.call_spec

    def _check(self, leaves: list) -> None:
        pass
