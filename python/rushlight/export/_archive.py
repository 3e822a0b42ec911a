"""Exported programs in files.

A zip of program.json, the graph as data; state.pt, tensors as torch.save writes them; and the extra
files that a program gives, under extra/. The format is Rushlight's own.
"""

from __future__ import annotations

import io
import json
import math
import operator
import os
import zipfile
from typing import Any

import rushlight as torch
from rushlight import fx
from rushlight._subclasses.fake_tensor import FakeTensorMode
from rushlight.export.dynamic_shapes import OpenSize, Range
from rushlight.export.exported_program import CallSpec, ExportedProgram
from rushlight.export.graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)
from rushlight.export.module_call import ModuleCallEntry, ModuleCallSignature
from rushlight.utils._pytree import treespec_dumps, treespec_loads

_FORMAT = "rushlight.export"
_VERSION = 1
_ARGUMENTS = {kind.__name__: kind for kind in (TensorArgument, SymIntArgument, ConstantArgument)}
_OPERATORS = (operator.getitem, operator.mul, operator.add, operator.floordiv)


# ---- Values as JSON ------------------------------------------------------------------------------


def _encoded(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, fx.Node):
        return {"node": value.name}
    if isinstance(value, list):
        return [_encoded(item) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [_encoded(item) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[_encoded(k), _encoded(v)] for k, v in value.items()]}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return {"torch": str(value).removeprefix("torch.")}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    if isinstance(value, slice):
        return {"slice": [_encoded(part) for part in (value.start, value.stop, value.step)]}
    if value is Ellipsis:
        return {"ellipsis": None}
    raise NotImplementedError(
        f"torch.export.save: a program with a value of type {type(value).__name__} cannot be saved"
    )


def _decoded(value: Any, nodes: dict[str, fx.Node]) -> Any:
    if isinstance(value, list):
        return [_decoded(item, nodes) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, what),) = value.items()
    if kind == "node":
        return nodes[what]
    if kind == "tuple":
        return tuple(_decoded(item, nodes) for item in what)
    if kind == "dict":
        return {_decoded(k, nodes): _decoded(v, nodes) for k, v in what}
    if kind == "slice":
        return slice(*(_decoded(item, nodes) for item in what))
    if kind == "ellipsis":
        return ...
    if kind == "torch":
        return getattr(torch, what)
    return {"float": float, "device": torch.device, "complex": lambda w: complex(*w)}[kind](what)


# ---- Graphs --------------------------------------------------------------------------------------


def _target_name(node: fx.Node) -> str:
    if node.op != "call_function":
        return str(node.target)
    if node.target in _OPERATORS:
        return f"operator.{node.target.__name__}"
    if type(node.target).__name__ != "OpOverload":
        raise NotImplementedError(f"torch.export.save: {node.target} is no operator of torch.ops")
    return str(node.target)


def _target(op: str, name: str) -> Any:
    if op != "call_function":
        return name
    space, _, rest = name.partition(".")
    if space == "operator":
        return next(f for f in _OPERATORS if f.__name__ == rest)
    found = getattr(torch.ops, space)
    try:
        for part in rest.split("."):
            found = getattr(found, part)
    except AttributeError:
        raise RuntimeError(
            f"torch.export.load: the program calls {name}, which is not defined here: import the "
            "library that defines it first"
        ) from None
    return found


def _node_data(node: fx.Node) -> dict:
    data = {"op": node.op, "name": node.name, "target": _target_name(node)}
    data.update(args=_encoded(tuple(node.args)), kwargs=_encoded(dict(node.kwargs)))
    meta = node.meta.get("tensor_meta")
    if meta is not None:
        data["meta"] = _encoded([tuple(meta.shape), meta.dtype, tuple(meta.stride)])
    elif isinstance(node.meta.get("val"), int):
        data["val"] = node.meta["val"]
    if "nn_module_stack" in node.meta:
        data["trace"] = node.stack_trace
        data["stack"] = [[key, *frame] for key, frame in node.meta["nn_module_stack"].items()]
    return data


def _graph(data: list[dict]) -> fx.Graph:
    graph, nodes, mode = fx.Graph(), {}, FakeTensorMode(allow_non_fake_inputs=True)
    for item in data:
        args, kwargs = _decoded(item["args"], nodes), _decoded(item["kwargs"], nodes)
        target = _target(item["op"], item["target"])
        node = graph.create_node(item["op"], target, args, kwargs, name=item["name"])
        if "meta" in item:
            shape, dtype, stride = _decoded(item["meta"], nodes)
            node.meta["tensor_meta"] = fx.TensorMetadata(
                torch.Size(shape), dtype, False, stride, None
            )
            node.meta["val"] = mode.of_layout(shape, stride, dtype)
        elif "val" in item:
            node.meta["val"] = item["val"]
        if "stack" in item:
            stack = {key: (path, kind) for key, path, kind in item["stack"]}
            node.meta["nn_module_stack"] = stack
            node.stack_trace = item.get("trace")
        nodes[item["name"]] = node
    return graph


def _argument_data(arg: Any) -> list:
    return [type(arg).__name__, *map(_encoded, vars(arg).values())]


def _argument(data: list) -> Any:
    return _ARGUMENTS[data[0]](*(_decoded(item, {}) for item in data[1:]))


def _entry_data(entry: ModuleCallEntry) -> list:
    signature = entry.signature
    if signature is None:
        return [entry.fqn, None]
    arguments = [[_argument_data(arg) for arg in s] for s in (signature.inputs, signature.outputs)]
    specs = [treespec_dumps(signature.in_spec), treespec_dumps(signature.out_spec)]
    return [entry.fqn, [*arguments, *specs, signature.forward_arg_names]]


def _entry(data: list) -> ModuleCallEntry:
    name, signature = data
    if signature is None:
        return ModuleCallEntry(name)
    inputs, outputs, in_spec, out_spec, names = signature
    arguments = [[_argument(arg) for arg in side] for side in (inputs, outputs)]
    made = ModuleCallSignature(*arguments, treespec_loads(in_spec), treespec_loads(out_spec), names)
    return ModuleCallEntry(name, made)


# ---- Files ---------------------------------------------------------------------------------------


def save(
    ep: ExportedProgram,
    f: str | os.PathLike[str] | Any,
    *,
    extra_files: dict[str, Any] | None = None,
    opset_version: dict[str, int] | None = None,
    pickle_protocol: int = 2,
) -> None:
    """Writes a program to a file or file-like object, in Rushlight's format (not PyTorch's).

    extra_files: texts or bytes by name, which `load` gives back.
    """
    if not isinstance(ep, ExportedProgram):
        raise TypeError(
            f"The 'ep' parameter must be an instance of 'ExportedProgram', got "
            f"'{type(ep).__name__}' instead."
        )
    if any(True for _ in ep.graph_module.children()):
        raise NotImplementedError("export.save: programs with torch.cond cannot be written yet")
    signature = ep.graph_signature
    program = {
        "format": _FORMAT,
        "version": _VERSION,
        "nodes": [_node_data(node) for node in ep.graph.nodes],
        "inputs": [
            [s.kind.name, _argument_data(s.arg), s.target, s.persistent]
            for s in signature.input_specs
        ],
        "outputs": [[s.kind.name, _argument_data(s.arg), s.target] for s in signature.output_specs],
        "in_spec": treespec_dumps(ep.call_spec.in_spec),
        "out_spec": treespec_dumps(ep.call_spec.out_spec),
        "open_sizes": [list(size) for size in ep._open_sizes],
        "ranges": {name: list(bounds) for name, bounds in ep._ranges.items()},
        "argument_names": ep._argument_names,
        "modules": [_entry_data(entry) for entry in ep.module_call_graph],
        "aliases": ep._aliases,
    }
    tensors = io.BytesIO()
    state = {"state": ep._state, "constants": ep._constants, "example": ep.example_inputs}
    torch.save(state, tensors)
    with zipfile.ZipFile(f, "w") as archive:
        archive.writestr("program.json", json.dumps(program))
        archive.writestr("state.pt", tensors.getvalue())
        for name, content in (extra_files or {}).items():
            archive.writestr(f"extra/{name}", content)


def load(
    f: str | os.PathLike[str] | Any,
    *,
    extra_files: dict[str, Any] | None = None,
    expected_opset_version: dict[str, int] | None = None,
) -> ExportedProgram:
    """Reads a program that `save` wrote; the names in extra_files get their texts."""
    try:
        archive = zipfile.ZipFile(f)
        program = json.loads(archive.read("program.json"))
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise RuntimeError(
            "torch.export.load: the file is no program that Rushlight's torch.export.save wrote "
            f"(PyTorch's have another format): {error}"
        ) from None
    if program["version"] > _VERSION:
        raise RuntimeError(
            f"torch.export.load: the program has format version {program['version']}, this "
            f"Rushlight reads up to {_VERSION}"
        )
    with archive:
        state = torch.load(io.BytesIO(archive.read("state.pt")), weights_only=True)
        for name in extra_files or {}:
            extra_files[name] = archive.read(f"extra/{name}").decode()
    inputs = [InputSpec(InputKind[k], _argument(a), t, p) for k, a, t, p in program["inputs"]]
    outputs = [OutputSpec(OutputKind[k], _argument(a), t) for k, a, t in program["outputs"]]
    return ExportedProgram(
        fx.GraphModule({}, _graph(program["nodes"])),
        ExportGraphSignature(inputs, outputs),
        state["state"],
        state["constants"],
        CallSpec(treespec_loads(program["in_spec"]), treespec_loads(program["out_spec"])),
        state["example"],
        [OpenSize(*size) for size in program["open_sizes"]],
        {name: Range(*bounds) for name, bounds in program["ranges"].items()},
        program["argument_names"],
        [_entry(data) for data in program.get("modules", ())],  # files of earlier versions: none
        program.get("aliases"),
    )
