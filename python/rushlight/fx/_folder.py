"""Graph modules as Python packages, and as what pickles have of them."""

from __future__ import annotations

import os
import sys
import textwrap
import types
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rushlight as torch
from rushlight import nn
from rushlight.nn.modules.module import Module

if TYPE_CHECKING:
    from rushlight.fx.graph_module import GraphModule

# Modules whose text is the call that makes them.
_BY_TEXT = (
    nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d,
)  # fmt: skip
_IMPORTS = """import rushlight as torch
from math import inf
from math import nan
NoneType = type(None)
import rushlight as torch
from rushlight import device
import rushlight.fx._pytree as fx_pytree
import rushlight.utils._pytree as pytree
"""
_STANDARD = {"torch", "inf", "nan", "NoneType", "device", "fx_pytree", "pytree"}


def import_block(names: dict[str, object]) -> str:
    """Statements that give code its global names. TypeError where one is of no module."""
    lines = []
    for name, value in names.items():
        if name in _STANDARD:
            continue
        if isinstance(value, types.ModuleType):
            lines.append(f"import {value.__name__} as {name}")
            continue
        module = getattr(value, "__module__", None)
        known = getattr(value, "__qualname__", getattr(value, "__name__", ""))
        first = str(known).partition(".")[0]
        if module is None or getattr(sys.modules.get(module), first, None) is None:
            raise TypeError(
                f"the code of a GraphModule uses {value!r}, which is no member of a module and "
                "cannot be imported from one"
            )
        if "." in known:
            lines += [f"from {module} import {first}", f"{name} = {known}"]
        else:
            lines.append(f"from {module} import {known} as {name}")
    return _IMPORTS + "".join(f"{line}\n" for line in lines)


def write(module: GraphModule, folder: str | os.PathLike[str], name: str) -> None:
    """A package with a class `name` that makes the module anew, with its state."""
    path = Path(folder)
    path.mkdir(exist_ok=True)
    torch.save(module.state_dict(), path / "state_dict.pt")
    lines, pickled = [], []
    for child, value in module.named_children():
        if type(value) in _BY_TEXT:
            text = repr(value)
        else:
            file = path / f"{child}.pt"
            torch.save(value, file)
            pickled.append(child)
            text = f"torch.load(r'{file}', weights_only=False)"
        remark = "" if type(value) in _BY_TEXT else f" # {' '.join(repr(value).splitlines())}"
        lines.append(f"setattr(self, '{child}', {text}){remark}")
    for key, value in module._buffers.items():
        if value is not None:
            empty = f"torch.empty({list(value.shape)}, dtype={value.dtype})"
            lines.append(f"self.register_buffer('{key}', {empty})")
    for key, value in module._parameters.items():
        if value is not None:
            empty = f"torch.empty({list(value.shape)}, dtype={value.dtype})"
            lines.append(f"setattr(self, '{key}', torch.nn.Parameter({empty}))")
    lines.append(f"self.load_state_dict(torch.load(r'{path / 'state_dict.pt'}'))")
    code = module.graph.python_code("self")
    body = "".join(f"        {line}\n" for line in lines)
    first, *rest = code.src.split("\n")
    method = "\n".join([first, *(f"    {line}" if line.strip() else "" for line in rest)])
    (path / "module.py").write_text(
        f"\n{import_block(code.globals)}\nfrom rushlight.nn import *\n"
        f"class {name}(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        f"{body}{method}\n"
    )
    (path / "__init__.py").write_text("from .module import *")
    if pickled:
        warnings.warn(
            "Was not able to save the following children modules as reprs -saved as pickled files "
            f"instead: {pickled}",
            stacklevel=3,
        )


def reduce_graph_module(body: dict[str, Any], import_block: str) -> Module:
    """The GraphModule of the members and the code (`_code`) of one, which is traced anew.

    import_block: statements that give the code its global names.
    """
    from rushlight.fx._symbolic_trace import Tracer
    from rushlight.fx.graph_module import GraphModule, _run_source

    names: dict[str, Any] = {}
    exec(textwrap.dedent(import_block), names)
    forward = _run_source(body["_code"], names)

    class CodeOnly(Module):
        """The members, with the code as forward."""

        def __init__(self) -> None:
            super().__init__()
            self.__dict__.update(body)

    CodeOnly.forward = forward

    class WholeModules(Tracer):
        """Traces no module that the code calls."""

        def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
            return True

    whole = CodeOnly()
    graph = WholeModules().trace(whole)
    return GraphModule(whole, graph, body.get("_graphmodule_cls_name", "GraphModule"))
