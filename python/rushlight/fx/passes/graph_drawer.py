"""Drawings of fx graphs, by Graphviz where its `dot` is installed."""

from __future__ import annotations

import inspect
import os
import shutil
import subprocess
import textwrap
import zlib
from collections.abc import Callable

import rushlight
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node, TensorMetadata, map_aggregate

__all__ = ["Dot", "FxGraphDrawer"]

_COLORS = {
    "placeholder": "AliceBlue",
    "get_attr": "LightGrey",
    "call_module": "LemonChiffon1",
    "output": "PowderBlue",
}
_PALETTE = ("CadetBlue1", "DarkOliveGreen1", "Gold1", "LightSalmon", "MistyRose1", "Plum1")
_WIDTH = 80


def _quoted(text: str) -> str:
    """Within double quotes; a line break sets the line before it to the left."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\l") + '"'


def _fields(**attributes: str) -> str:
    return ", ".join(f"{name}={_quoted(value)}" for name, value in attributes.items())


class Dot:
    """A drawing: text of the DOT language, and what Graphviz makes of it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: list[str] = []

    def to_string(self) -> str:
        """The drawing in the DOT language."""
        body = "".join(f"  {line}\n" for line in self.lines)
        return f"digraph {_quoted(self.name)} {{\n  rankdir=TB;\n{body}}}\n"

    def __str__(self) -> str:
        return self.to_string()

    def create(self, prog: str = "dot", format: str = "svg") -> bytes:
        """The drawing as a file of this format: svg, png, pdf and so on.

        FileNotFoundError where Graphviz is not installed, RuntimeError where it fails.
        """
        program = shutil.which(prog)
        if program is None:
            raise FileNotFoundError(
                f'"{prog}" not found in path: drawings need Graphviz '
                "(apt-get install graphviz, brew install graphviz); to_string() and write_dot() "
                "give the text that it draws"
            )
        made = subprocess.run(
            [program, f"-T{format}"], input=self.to_string().encode(), capture_output=True
        )
        if made.returncode != 0:
            raise RuntimeError(f"{prog} -T{format} failed: {made.stderr.decode().strip()}")
        return made.stdout

    def create_svg(self, prog: str = "dot") -> bytes:
        """The drawing as SVG."""
        return self.create(prog, "svg")

    def write(self, path: str | os.PathLike, prog: str = "dot", format: str = "raw") -> bool:
        """Writes the drawing to a file; as text for "raw" and "dot"."""
        raw = format in ("raw", "dot")
        content = self.to_string().encode() if raw else self.create(prog, format)
        with open(path, "wb") as file:
            file.write(content)
        return True

    def __getattr__(self, name: str) -> Callable:
        # write_svg(path), write_png(path), create_pdf(), ...: one for each format.
        kind, _, format = name.partition("_")
        if kind == "write" and format:
            return lambda path, prog="dot": self.write(path, prog, format)
        if kind == "create" and format:
            return lambda prog="dot": self.create(prog, format)
        raise AttributeError(f"'Dot' object has no attribute '{name}'")


class FxGraphDrawer:
    """Draws the graph of a module: a box a node, an arrow a use.

    `get_dot_graph().write_svg("graph.svg")` draws it with Graphviz. Graph modules that it calls get
    drawings of their own. ignore_getattr: leaves attributes out. ignore_parameters_and_buffers:
    leaves the parameters of called modules out. skip_node_names_in_args: arguments that are nodes
    are shown by arrows alone. parse_stack_trace: with the line of the program of each node.
    dot_graph_shape: Graphviz's name of the boxes' shape. normalize_args: arguments by name.
    """

    def __init__(
        self,
        graph_module: GraphModule,
        name: str,
        ignore_getattr: bool = False,
        ignore_parameters_and_buffers: bool = False,
        skip_node_names_in_args: bool = True,
        parse_stack_trace: bool = False,
        dot_graph_shape: str | None = None,
        normalize_args: bool = False,
    ) -> None:
        self._name = name
        self._ignore_getattr = ignore_getattr
        self._ignore_state = ignore_parameters_and_buffers
        self._skip_names = skip_node_names_in_args
        self._with_lines = parse_stack_trace
        self._shape = dot_graph_shape or "box"
        self._normalize = normalize_args
        self._drawings = {name: self._draw(graph_module, name)}
        self._draw_submodules(graph_module, name)

    def get_dot_graph(self, submod_name: str | None = None) -> Dot:
        """The drawing of the module, or of a graph module that it calls."""
        return self.get_main_dot_graph() if submod_name is None else self._drawings[submod_name]

    def get_main_dot_graph(self) -> Dot:
        """The drawing of the module."""
        return self._drawings[self._name]

    def get_submod_dot_graph(self, submod_name: str) -> Dot:
        """The drawing of a graph module that it calls: of `<name>_<path>`."""
        return self._drawings[f"{self._name}_{submod_name}"]

    def get_all_dot_graphs(self) -> dict[str, Dot]:
        """All drawings, by name."""
        return self._drawings

    # ---- Drawing -------------------------------------------------------------------------------

    def _draw_submodules(self, module: GraphModule, name: str) -> None:
        for node in module.graph.nodes:
            if node.op != "call_module":
                continue
            inner = module.get_submodule(node.target)
            if isinstance(inner, GraphModule):
                own = f"{name}_{node.target}"
                self._drawings[own] = self._draw(inner, own)
                self._draw_submodules(inner, own)

    def _draw(self, module: GraphModule, name: str) -> Dot:
        drawing = Dot(name)
        for node in module.graph.nodes:
            if self._ignore_getattr and node.op == "get_attr":
                continue
            drawing.lines.append(f"{node.name} [{_fields(**self._look(module, node))}];")
            if node.op == "call_module" and not self._ignore_state:
                drawing.lines += self._state(module, node)
        for node in module.graph.nodes:
            for source in node.all_input_nodes:
                if not (self._ignore_getattr and source.op == "get_attr"):
                    drawing.lines.append(f"{source.name} -> {node.name};")
        return drawing

    def _look(self, module: GraphModule, node: Node) -> dict[str, str]:
        if node.op in _COLORS:
            color = _COLORS[node.op]
        else:
            number = zlib.crc32(node._pretty_print_target(node.target).encode())
            color = _PALETTE[number % len(_PALETTE)]
        return {
            "label": self._label(module, node),
            "shape": self._shape,
            "style": "filled,rounded",
            "fillcolor": color,
            "fontcolor": "#000000",
        }

    def _label(self, module: GraphModule, node: Node) -> str:
        rows = [f"name=%{node.name}", f"op_code={node.op}"]
        target = node._pretty_print_target(node.target)
        if node.op == "call_module":
            rows.append(f"target={target}: {type(module.get_submodule(node.target)).__name__}")
        elif node.op != "output":
            rows.append(f"target={target}")
        if node.op in ("call_function", "call_method", "call_module"):
            rows += self._argument_rows(module, node)
        rows.append(f"num_users={len(node.users)}")
        rows += _meta_rows(node.meta.get("tensor_meta"))
        if self._with_lines and node.stack_trace:
            rows += textwrap.wrap(node.stack_trace.strip().splitlines()[-1].strip(), _WIDTH)
        return "".join(f"{row}\n" for row in rows)

    def _argument_rows(self, module: GraphModule, node: Node) -> list[str]:
        args, kwargs = node.args, dict(node.kwargs)
        if self._normalize:
            args, kwargs = _by_name(module, node)

        def shown(item: object) -> object:
            if isinstance(item, Node):
                return _Text("" if self._skip_names else f"%{item.name}")
            return item

        rows = []
        for label, value in (("args", args), ("kwargs", kwargs)):
            if value:
                text = f"{label}={map_aggregate(value, shown)}"
                rows += textwrap.wrap(text, _WIDTH) or [text]
        return rows

    def _state(self, module: GraphModule, node: Node) -> list[str]:
        """The parameters and buffers of a called module, each with an arrow."""
        inner = module.get_submodule(node.target)
        if isinstance(inner, GraphModule):
            return []
        lines = []
        for kind, found in (("buffer", inner.named_buffers()), ("param", inner.named_parameters())):
            for name, value in found:
                own = _quoted(f"{node.target}.{name}")
                rows = [f"name={name}", f"op_code=get_{kind}", f"{value.dtype}{list(value.shape)}"]
                label = "".join(f"{row}\n" for row in rows)
                look = _fields(
                    label=label, shape=self._shape, style="filled", fillcolor="LightGrey"
                )
                lines += [f"{own} [{look}];", f"{own} -> {node.name};"]
        return lines


class _Text:
    """Shows as it is, without quotes."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _meta_rows(meta: object) -> list[str]:
    """What is known of a node's tensor, or tensors."""
    if isinstance(meta, TensorMetadata):
        return [f"dtype={meta.dtype}", f"shape={tuple(meta.shape)}", f"stride={tuple(meta.stride)}"]
    if isinstance(meta, (list, tuple)):
        return [row for item in meta for row in _meta_rows(item)]
    return []


def _by_name(module: GraphModule, node: Node) -> tuple[tuple, dict]:
    """The arguments by the names that the callee has for them, as far as it can be asked."""
    if node.op == "call_module":
        callee = module.get_submodule(node.target).forward
    elif node.op == "call_method":
        callee = getattr(rushlight.Tensor, node.target, None)
    else:
        callee = node.target
    try:
        bound = inspect.signature(callee).bind(*node.args, **node.kwargs)
    except (TypeError, ValueError):
        return node.args, dict(node.kwargs)
    return (), dict(bound.arguments)
