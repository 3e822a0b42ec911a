"""The Python code of a graph."""

from __future__ import annotations

import builtins
import enum
import math
import operator
import re
import types
import typing
from collections.abc import Callable

import rushlight
from rushlight.fx import _pytree as fx_pytree
from rushlight.fx.codegen import PythonCode
from rushlight.fx.node import Node, TensorMetadata, qualified_name, short_dtype, type_name
from rushlight.utils import _pytree as pytree

_DIM, _RED, _GREEN, _BLUE = "2", "31", "32", "34"  # colours of terminals
_ORIGINS = {
    list: typing.List, dict: typing.Dict, tuple: typing.Tuple, set: typing.Set,  # noqa: UP006
    frozenset: typing.FrozenSet, typing.Union: typing.Union, types.UnionType: typing.Union,  # noqa: UP006
}  # fmt: skip


# What code may call by these names without importing them.
_STANDARD = {
    "inf": math.inf, "nan": math.nan, "NoneType": type(None), "torch": rushlight,
    "device": rushlight.device, "fx_pytree": fx_pytree, "pytree": pytree,
}  # fmt: skip


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
        "lshift": "{} << {}",
        "rshift": "{} >> {}",
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
        "pos": "+{}",
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
        expanded_def: bool = False,
        record_func: bool = False,
        additional_meta: list[str] | None = None,
    ) -> None:
        self._graph = graph
        self._codegen = graph._codegen
        self._root = root
        self._verbose = verbose
        self._include_stride = include_stride
        self._include_device = include_device
        self._colored = colored
        self._expanded = expanded_def
        self._record = record_func
        self._meta = additional_meta or []
        self._globals: dict[str, object] = dict(_STANDARD)
        self._inputs: list[str] = []
        self._wrapped: dict[str, None] = {}
        self._returned = ""
        self._lines: list[str] = []
        self._node_of_line: dict[int, int] = {}
        self._trace: str | None = None

    def write(self) -> PythonCode:
        """The code of the whole graph."""
        for name, value in self._codegen.additional_globals():
            self._globals[name] = value
        last_uses = self._last_uses()
        for number, node in enumerate(self._graph.nodes):
            if self._verbose and node.op not in ("placeholder", "output"):
                self._comment(node)
            before = len(self._lines)
            self._write_node(node, last_uses.get(node, []))
            self._node_of_line.update(dict.fromkeys(range(before, len(self._lines)), number))
        if not self._lines:
            self._lines.append("pass")
        lines = [f"{line}\n" for line in self._lines]
        if self._codegen._body_transformer is not None:
            lines = self._codegen._body_transformer(lines)
        body = "".join(lines).lstrip("\n")
        first = self._codegen._definition(self._inputs, self._returned, self._expanded)
        wraps = "\n".join(f'torch.fx._symbolic_trace.wrap("{name}")' for name in self._wrapped)
        prologue = f"\n{wraps}\n\n{first}\n"
        code = "\n".join(f"    {line}" for line in body.split("\n"))
        start = prologue.count("\n")
        numbers = {start + 1 + at: node for at, node in self._node_of_line.items()}
        return PythonCode(prologue + code, self._globals, numbers, start)

    def _comment(self, node: Node) -> None:
        """Where the node came from, where that is another place than that of the one before."""
        notes = [f"{key}: {node.meta[key]}" for key in self._meta if key in node.meta]
        text = None
        if node.stack_trace and node.stack_trace != self._trace:
            self._trace = node.stack_trace
            text = _summary(node.stack_trace)
        elif not node.stack_trace and self._trace != "":
            self._trace = ""
            text = "No stacktrace found for following nodes"
        shown = [f"# {note}" for note in (", ".join(notes), text) if note]
        if shown:
            self._lines += ["", self._paint(" ".join(shown), _DIM)]

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
            self._write_input(node, ended)
            return
        if node.op == "output":
            if node.type is not None:
                self._returned = f" -> {self._type(node.type)}"
            self._lines.append(self._codegen._return(node.args[0], self._text))
            return
        line = f"{node.name}{self._annotation(node)} = {self._expression(node)}"
        if self._record:
            self._lines.append(
                f"_rf_{node.name} = torch.profiler.record_function('## {node.name} ##'); "
                f"_rf_{node.name}.__enter__()"
            )
            line += f"; _rf_{node.name}.__exit__(None, None, None)"
        names = [source.name for source in ended]
        if not node.users:
            names.append(node.name)
        self._lines.append(line + self._deletion(names))

    def _deletion(self, names: list[str]) -> str:
        return f";  {self._paint(' = '.join([*names, 'None']), _DIM)}" if names else ""

    def _write_input(self, node: Node, ended: list[Node]) -> None:
        name = str(node.target)
        default = f" = {self._text(node.args[0])}" if node.args else ""
        self._inputs.append(f"{name}{self._annotation(node)}{default}")
        bare = name.lstrip("*")
        if bare != node.name:
            self._lines.append(f"{node.name} = {bare}")

    def _annotation(self, node: Node) -> str:
        if self._verbose:
            text = self._tensor_type(node)
            if text:
                return f': "{text}"'
        return "" if node.type is None else f" : {self._type(node.type)}"

    def _tensor_type(self, node: Node) -> str:
        """How the node's tensor looks, as far as passes have noted it."""
        value = node.meta.get("val", node.meta.get("tensor_meta"))
        if not isinstance(value, (rushlight.Tensor, TensorMetadata)):
            return ""
        text = self._paint(short_dtype(value.dtype), _RED) + self._paint(
            str(list(value.shape)), _BLUE
        )
        stride = device = ""
        if isinstance(value, rushlight.Tensor):  # metadata knows no device
            stride = str(list(value.stride())) if self._include_stride else ""
            device = str(value.device) if self._include_device else ""
        return text + "".join(
            self._paint(self._paint(part, color), _DIM, ends=False)
            for part, color in ((stride, _BLUE), (device, _GREEN))
        )

    def _paint(self, text: str, style: str, ends: bool = True) -> str:
        """The text in a colour of terminals, where colours are asked for."""
        if not self._colored:
            return text
        return f"\x1b[{style}m{text}" + ("\x1b[0m" if ends else "")

    def _type(self, kind: object) -> str:
        """A type as code."""
        if kind == ():
            return "()"
        name = type_name(kind)
        args = getattr(kind, "__args__", None)
        origin = getattr(kind, "__origin__", None)
        if isinstance(kind, types.UnionType):
            origin = types.UnionType
        if origin is not None and args is not None:
            if not isinstance(kind, types.GenericAlias):
                origin = _ORIGINS.get(origin, origin)
            start = self._type_name(type_name(origin), origin)
            inside = ",".join(self._type(arg) for arg in args)
            return f"{start}[{inside}]" if args else start
        return self._type_name(name, kind)

    def _type_name(self, name: str, kind: object) -> str:
        if isinstance(kind, type) and kind.__module__ == "builtins":
            return kind.__name__
        if name.startswith("torch.") and _resolves(name, kind):
            return name
        return self._add_global("_" if kind is Ellipsis else name, kind)

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
        function = self._function(node.target)
        if node.meta.get("is_wrapped"):
            self._wrapped[function] = None
        return f"{function}({self._arguments(node.args, node.kwargs)})"

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
            return name
        if name.startswith("operator.") and _resolves(name, target):
            return self._add_global(f"_operator_{target.__name__}", target)
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
                return f"{self._function(type(value))}({items})"
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
            return str(value)
        plain = (bool, int, float, str, bytes, range)
        if value is None or value is Ellipsis or isinstance(value, plain):
            return repr(value)
        if isinstance(value, complex):
            return repr(value)
        if isinstance(value, enum.Enum):
            return f"{self._add_global(type(value).__name__, type(value))}.{value.name}"
        shown = repr(value)
        if shown.startswith("torch.") and _resolves(shown, value):
            return shown
        if isinstance(value, type) and value.__module__ == "builtins":
            return value.__name__
        if type(value).__name__ == "device":
            return repr(value)
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


def _summary(trace: str) -> str:
    """The last line of a stack trace: file, line, function and code."""
    found = re.findall(r'File "(.+?)", line (\d+), in (.+?)\n\s*(.*)', trace)
    if not found:
        return trace.strip().splitlines()[-1]
    file, line, function, code = found[-1]
    return f"File: {file}:{line} in {function}, code: {code}"
