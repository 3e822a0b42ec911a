"""The Python code of a graph."""

from __future__ import annotations

import builtins
import operator
import re
from collections.abc import Callable
from typing import NamedTuple

import rushlight
from rushlight.fx.node import Node, TensorMetadata, qualified_name


class PythonCode(NamedTuple):
    """The source of a graph's `forward`, and the global names that it uses."""

    src: str
    globals: dict[str, object]


class Writer:
    """Writes a graph's code."""

    _OPERATORS = {
        "add": "{} + {}",
        "sub": "{} - {}",
        "mul": "{} * {}",
        "truediv": "{} / {}",
        "floordiv": "{} // {}",
        "mod": "{} % {}",
        "pow": "{} ** {}",
        "matmul": "{} @ {}",
        "and_": "{} & {}",
        "or_": "{} | {}",
        "xor": "{} ^ {}",
        "lt": "{} < {}",
        "le": "{} <= {}",
        "gt": "{} > {}",
        "ge": "{} >= {}",
        "eq": "{} == {}",
        "ne": "{} != {}",
        "getitem": "{}[{}]",
        "neg": "-{}",
        "invert": "~{}",
    }

    def __init__(
        self,
        graph,
        root: str,
        verbose: bool,
        *,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        additional_meta: list[str] | None = None,
    ) -> None:
        self._graph = graph
        self._root = root
        self._verbose = verbose
        self._include_stride = include_stride
        self._include_device = include_device
        self._colored = colored
        self._meta = additional_meta or []
        self._globals: dict[str, object] = {}
        self._inputs: list[str] = []
        self._lines: list[str] = []

    def write(self) -> PythonCode:
        """The code of the whole graph."""
        last_uses = self._last_uses()
        trace = None
        for node in self._graph.nodes:
            if self._verbose and node.stack_trace and node.stack_trace != trace:
                trace = node.stack_trace
                self._lines += ["", self._paint(f"# {_summary(trace)}", "2")]
            self._write_node(node, last_uses.get(node, []))
        if not self._lines:
            self._lines.append("pass")
        inputs = ", ".join([self._root, *self._inputs])
        body = "".join(f"    {line}\n" if line else "\n" for line in self._lines)
        return PythonCode(f"\n\n\ndef forward({inputs}):\n{body}    ", self._globals)

    def _last_uses(self) -> dict[Node, list[Node]]:
        """By node: what nobody uses after it."""
        seen: set[Node] = set()
        last: dict[Node, list[Node]] = {}
        for node in reversed(self._graph.nodes):
            for source in node.all_input_nodes:
                if source not in seen:
                    seen.add(source)
                    last.setdefault(node, []).append(source)
        return last

    def _write_node(self, node: Node, ended: list[Node]) -> None:
        if node.op == "placeholder":
            self._write_input(node)
            return
        if node.op == "output":
            self._lines.append(f"return {self._text(node.args[0])}")
            return
        line = f"{node.name}{self._annotation(node)} = {self._expression(node)}"
        names = [source.name for source in ended]
        if not node.users:
            names.append(node.name)
        if names:
            line += f";  {' = '.join(names)} = None"
        shown = [f"{key}: {node.meta[key]}" for key in self._meta if key in node.meta]
        if shown:
            line += self._paint(f"  # {', '.join(shown)}", "2")
        self._lines.append(line)

    def _write_input(self, node: Node) -> None:
        name = str(node.target)
        default = f" = {self._text(node.args[0])}" if node.args else ""
        self._inputs.append(f"{name}{self._annotation(node)}{default}")
        bare = name.lstrip("*")
        if bare != node.name:
            self._lines.append(f"{node.name} = {bare}")

    def _annotation(self, node: Node) -> str:
        meta = node.meta.get("tensor_meta")
        if not self._verbose or not isinstance(meta, TensorMetadata):
            return ""
        text = f"{_short(meta.dtype)}{list(meta.shape)}"
        if self._include_stride:
            text += str(list(meta.stride))
        if self._include_device:
            text += str(node.meta.get("device", "cpu"))
        return f': "{self._paint(text, "34")}"'

    def _paint(self, text: str, style: str) -> str:
        """The text in a colour of terminals, where colours are asked for."""
        return f"\x1b[{style}m{text}\x1b[0m" if self._colored else text

    def _expression(self, node: Node) -> str:
        if node.op == "get_attr":
            return self._path(node.target)
        if node.op == "call_module":
            return f"{self._path(node.target)}({self._arguments(node.args, node.kwargs)})"
        if node.op == "call_method":
            rest = self._arguments(node.args[1:], node.kwargs)
            return f"{self._text(node.args[0])}.{node.target}({rest})"
        operator_form = self._operator(node)
        if operator_form is not None:
            return operator_form
        if node.target is getattr and len(node.args) == 2 and node.args[1].isidentifier():
            return f"{self._text(node.args[0])}.{node.args[1]}"
        return f"{self._function(node.target)}({self._arguments(node.args, node.kwargs)})"

    def _operator(self, node: Node) -> str | None:
        if getattr(node.target, "__module__", "") != "_operator" or node.kwargs:
            return None
        form = self._OPERATORS.get(node.target.__name__)
        if form is None or form.count("{}") != len(node.args):
            return None
        return form.format(*(self._text(arg) for arg in node.args))

    def _path(self, target: str) -> str:
        text = self._root
        for part in target.split("."):
            text = f"{text}.{part}" if part.isidentifier() else f'getattr({text}, "{part}")'
        return text

    def _arguments(self, args: tuple, kwargs: dict) -> str:
        texts = [self._text(arg) for arg in args]
        texts += [f"{name} = {self._text(value)}" for name, value in kwargs.items()]
        return ", ".join(texts)

    def _function(self, target: Callable) -> str:
        name = qualified_name(target)
        if not all(part.isidentifier() for part in name.split(".")):
            return self._add_global(name.replace(".", "_"), target)
        if name.startswith("torch.") and _resolves(name, target):
            self._globals["torch"] = rushlight
            return name
        if name.startswith("operator.") and _resolves(name, target):
            self._globals["operator"] = operator
            return name
        if name.isidentifier() and target is getattr(builtins, name, None):
            return name
        return self._add_global(name.replace(".", "_"), target)

    def _add_global(self, name: str, value: object) -> str:
        name = re.sub(r"[^0-9a-zA-Z_]+", "_", name)
        if name[:1].isdigit():
            name = f"_{name}"
        base, number = name, 0
        while self._globals.get(name, value) is not value or name in self._graph._namespace._taken:
            number += 1
            name = f"{base}_{number}"
        self._globals[name] = value
        return name

    def _text(self, value: object) -> str:
        if isinstance(value, Node):
            return value.name
        if isinstance(value, tuple):
            items = ", ".join(self._text(item) for item in value)
            if hasattr(value, "_fields"):
                return f"{self._add_global(type(value).__name__, type(value))}({items})"
            return f"({items},)" if len(value) == 1 else f"({items})"
        if isinstance(value, list):
            return f"[{', '.join(self._text(item) for item in value)}]"
        if isinstance(value, dict):
            items = ", ".join(f"{self._text(k)}: {self._text(v)}" for k, v in value.items())
            return f"{{{items}}}"
        if isinstance(value, slice):
            parts = (value.start, value.stop, value.step)
            return f"slice({', '.join(self._text(part) for part in parts)})"
        return self._constant(value)

    def _constant(self, value: object) -> str:
        if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
            return f'float("{value}")'
        if value is None or value is Ellipsis or isinstance(value, (bool, int, float, str, bytes)):
            return repr(value)
        if isinstance(value, complex):
            return repr(value)
        shown = repr(value)
        if shown.startswith("torch.") and _resolves(shown, value):
            self._globals["torch"] = rushlight
            return shown
        if isinstance(value, type) and value.__module__ == "builtins":
            return value.__name__
        if type(value).__name__ == "device":
            self._globals["device"] = rushlight.device
            return f"device({str(value)!r})"
        return self._add_global(f"_{type(value).__name__}", value)


def _resolves(path: str, wanted: object) -> bool:
    root, _, rest = path.partition(".")
    found: object = {"torch": rushlight, "operator": operator}.get(root)
    for name in rest.split("."):
        try:
            found = getattr(found, name)
        except (AttributeError, ModuleNotFoundError):
            return False
    return found is wanted


def _short(dtype: object) -> str:
    name = str(dtype).removeprefix("torch.")
    for long, short in (("bfloat", "bf"), ("float", "f"), ("uint", "u"), ("int", "i")):
        if name.startswith(long) and name[len(long) :].isdigit():
            return short + name[len(long) :]
    return {"bool": "b8", "complex64": "c64", "complex128": "c128"}.get(name, name)


def _summary(trace: str) -> str:
    """The last line of a stack trace: file, line, function and code."""
    found = re.findall(r'File "(.+?)", line (\d+), in (.+?)\n\s*(.*)', trace)
    if not found:
        return trace.strip().splitlines()[-1]
    file, line, function, code = found[-1]
    return f"File: {file}:{line} in {function}, code: {code}"
