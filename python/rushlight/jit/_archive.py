"""torch.jit.save and load: what was traced or scripted, in files of Rushlight's own format.

A zip. Of traces: program.json, the graphs as data with functions by their names, and state.pt,
tensors as torch.save writes them; loading runs no code of the file. Of scripts, which are Python:
script.pt, a pickle of the module or function, whose source has to be importable where it is loaded.
"""

from __future__ import annotations

import io
import json
import operator
import os
import zipfile
from collections.abc import Mapping
from typing import Any

import rushlight as torch
from rushlight import fx
from rushlight.export import _archive as values
from rushlight.fx.node import qualified_name
from rushlight.jit import _trace

_FORMAT = "rushlight.jit"
_VERSION = 1
_ROOTS = {"torch": torch, "operator": operator}


# ---- Graphs --------------------------------------------------------------------------------------


def _find(path: str) -> Any:
    root, _, rest = path.partition(".")
    found: Any = _ROOTS.get(root)
    for name in rest.split("."):
        found = getattr(found, name, None)
    return found


def _target_data(node: fx.Node) -> str:
    if isinstance(node.target, str):
        return node.target
    if node.target is getattr:
        return "getattr"
    name = qualified_name(node.target)
    if _find(name) is not node.target:
        raise RuntimeError(
            f"torch.jit.save: the trace calls {name}, which is no function of the library and "
            "cannot be found again where the file is loaded"
        )
    return name


def _target(op: str, name: str) -> Any:
    if op != "call_function":
        return name
    if name == "getattr":
        return getattr
    found = _find(name)
    if not callable(found):
        raise RuntimeError(
            f"torch.jit.load: the file calls {name}, which is not defined here: import the library "
            "that defines it first"
        )
    return found


def _trace_data(trace: _trace._Trace) -> dict:
    nodes = [
        [node.op, node.name, _target_data(node), values._encoded(tuple(node.args)),
         values._encoded(dict(node.kwargs))]
        for node in trace.graph.nodes
    ]  # fmt: skip
    return {"nodes": nodes, "constants": list(trace.constants)}


def _restored(data: dict, constants: Mapping[str, torch.Tensor]) -> _trace._Trace:
    graph, nodes = fx.Graph(), {}
    for op, name, target, args, kwargs in data["nodes"]:
        nodes[name] = graph.create_node(
            op,
            _target(op, target),
            values._decoded(args, nodes),
            values._decoded(kwargs, nodes),
            name=name,
        )
    return _trace._Trace(graph, {name: constants[name] for name in data["constants"]})


# ---- Modules -------------------------------------------------------------------------------------


def _tree(module: torch.nn.Module, path: str, state: dict, known: dict[int, str]) -> dict:
    """A module as data; its tensors go into `state`."""
    if id(module) in known:
        return {"same": known[id(module)]}
    known[id(module)] = path
    prefix = f"{path}." if path else ""
    tensors = {**module._parameters, **module._buffers}
    state.update({prefix + name: value for name, value in tensors.items()})
    children = {
        name: None if child is None else _tree(child, prefix + name, state, known)
        for name, child in module._modules.items()
    }
    return {
        "name": module.original_name,
        "training": module.training,
        "parameters": list(module._parameters),
        "buffers": list(module._buffers),
        "hidden": sorted(module._non_persistent_buffers_set),
        "children": children,
    }


def _plant(data: dict, made: torch.nn.Module, path: str, state: dict, known: dict) -> None:
    known[path] = made
    prefix = f"{path}." if path else ""
    made.training = data["training"]
    for name in data["parameters"]:
        made.register_parameter(name, state[prefix + name])
    for name in data["buffers"]:
        made.register_buffer(name, state[prefix + name], persistent=name not in data["hidden"])
    for name, child in data["children"].items():
        if child is None:
            made.register_module(name, None)
        elif "same" in child:
            made.add_module(name, known[child["same"]])
        else:
            made.add_module(name, _trace.TracedPart(child["name"]))
            _plant(child, made._modules[name], prefix + name, state, known)


# ---- Files ---------------------------------------------------------------------------------------


def to_bytes(m: Any, extra_files: Mapping[str, Any] | None = None) -> bytes:
    """The file of something traced or scripted."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        program: dict[str, Any] = {"format": _FORMAT, "version": _VERSION}
        content = io.BytesIO()
        if isinstance(m, _trace.TracedFunction):
            program.update(kind="function", name=m.name, traces={"": _trace_data(m._trace)})
            torch.save({"constants": m._trace.constants, "state": {}}, content)
            archive.writestr("state.pt", content.getvalue())
        elif isinstance(m, torch.jit.TopLevelTracedModule):
            state: dict[str, Any] = {}
            program.update(kind="module", tree=_tree(m, "", state, {}))
            traces = m.__dict__["_traces"]
            program["traces"] = {name: _trace_data(trace) for name, trace in traces.items()}
            constants = {k: v for trace in traces.values() for k, v in trace.constants.items()}
            torch.save({"constants": constants, "state": state}, content)
            archive.writestr("state.pt", content.getvalue())
        elif isinstance(m, (torch.jit.ScriptModule, torch.jit.ScriptFunction)):
            program.update(kind="script")
            torch.save(m, content)
            archive.writestr("script.pt", content.getvalue())
        else:
            raise AttributeError(
                f"'{type(m).__name__}' object has no attribute 'save_to_buffer': torch.jit.save "
                "takes what torch.jit.trace and torch.jit.script made"
            )
        archive.writestr("program.json", json.dumps(program))
        for name, text in (extra_files or {}).items():
            archive.writestr(f"extra/{name}", text)
    return file.getvalue()


def save(m: Any, f: Any, _extra_files: Mapping[str, Any] | None = None) -> None:
    """Writes what was traced or scripted to a file or file-like object, in Rushlight's format.

    _extra_files: texts or bytes by name, which `load` gives back.
    """
    content = to_bytes(m, _extra_files)
    if isinstance(f, (str, os.PathLike)):
        with open(f, "wb") as file:
            file.write(content)
    else:
        f.write(content)


def load(
    f: Any,
    map_location: Any = None,
    _extra_files: dict[str, Any] | None = None,
    _restore_shapes: bool = False,
) -> Any:
    """Reads a file that `torch.jit.save` of Rushlight wrote; PyTorch's archives are not read.

    map_location: where tensors go. _extra_files: the names in it get their bytes. Files of scripts
    hold pickles, which can run code: read those that you trust. ValueError where there is no file.
    """
    if isinstance(f, (str, os.PathLike)):
        if not os.path.exists(f):
            raise ValueError(f"The provided filename {f} does not exist")
        if os.path.isdir(f):
            raise ValueError(f"The provided filename {f} is a directory")
    try:
        archive = zipfile.ZipFile(f)
    except zipfile.BadZipFile:
        raise RuntimeError("torch.jit.load: the file is no archive") from None
    with archive:
        names = archive.namelist()
        if "program.json" not in names:
            what = "an archive of TorchScript, which PyTorch wrote and Rushlight does not read"
            if not any(name.endswith("constants.pkl") for name in names):
                what = "no archive of torch.jit.save"
            raise RuntimeError(
                f"torch.jit.load: the file is {what}: save a state_dict with torch.save and load "
                "it into the module, or trace the module here"
            )
        program = json.loads(archive.read("program.json"))
        if program.get("format") != _FORMAT or program["version"] > _VERSION:
            raise RuntimeError(
                f"torch.jit.load: the file has format {program.get('format')} "
                f"{program.get('version')}, this Rushlight reads {_FORMAT} up to {_VERSION}"
            )
        for name in _extra_files or {}:
            _extra_files[name] = archive.read(f"extra/{name}")
        if program["kind"] == "script":
            content = io.BytesIO(archive.read("script.pt"))
            return torch.load(content, map_location, weights_only=False)
        tensors = torch.load(io.BytesIO(archive.read("state.pt")), map_location, weights_only=True)
    traces = {n: _restored(data, tensors["constants"]) for n, data in program["traces"].items()}
    if program["kind"] == "function":
        return _trace.TracedFunction(program["name"], traces[""])
    made = torch.jit.TopLevelTracedModule(program["tree"]["name"])
    _plant(program["tree"], made, "", tensors["state"], {})
    _trace.install(made, traces)
    return made
