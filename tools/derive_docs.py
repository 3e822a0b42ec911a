"""Writes what is derived from the live operator table for readers: stubs and reference pages.

    derive_docs.py --package build/python --stubs build/python/rushlight \\
        --pages build/docs/operators

The table is read from the built extension, so stubs and pages cannot fall behind it. A file is
written only where its text changed.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import re
import sys
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path

HEAD = "# Written by tools/derive_docs.py from the operator table. Do not edit.\n"
SCHEMA = re.compile(r"^([\w.]+)\((.*)\)\s*->\s*(.+)$", re.S)
ARGUMENT = re.compile(
    r"^(\w+)(?:\((\w+!?)\))?(\?)?(?:\[(\d*)\](\?)?)?\s+(\w+)(?:\s*=\s*(.+))?$", re.S
)
RESULT = re.compile(r"^(\w+)(?:\((\w+!?)\))?(\[\])?(?:\s+(\w+))?$")
TYPES = {
    "Tensor": "Tensor", "Scalar": "Number", "int": "_int", "SymInt": "_int", "float": "_float",
    "bool": "_bool", "str": "str", "ScalarType": "_dtype", "Device": "DeviceLike",
    "Layout": "_layout", "MemoryFormat": "_memory_format", "Generator": "Generator",
}  # fmt: skip
PREFIXES = {"special_": "special", "linalg_": "linalg", "fft_": "fft"}
KEYWORDS = {"from", "lambda", "in", "is", "not", "or", "and", "for", "if", "import"}


@dataclass
class Parameter:
    name: str
    type: str
    default: str | None
    keyword_only: bool
    varargs: bool  # int[] of any length: may be given one by one where it comes last


@dataclass
class Operator:
    name: str
    overload: str
    schema: str
    family: str
    doc: str
    faces: set[str]
    parameters: list[Parameter]
    result: str


def split_top(text: str) -> list[str]:
    """Splits at commas outside brackets and quotes."""
    parts, depth, quote, current = [], 0, "", ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "([":
            depth += 1
        elif letter in ")]":
            depth -= 1
        if letter == "," and depth == 0 and not quote:
            parts.append(current.strip())
            current = ""
        else:
            current += letter
    return [*parts, current.strip()] if current.strip() else parts


def parse(row: dict) -> Operator:
    matched = SCHEMA.match(row["schema"])
    assert matched, row["schema"]
    parameters, keyword_only = [], False
    for part in split_top(matched[2]):
        if part == "*":
            keyword_only = True
            continue
        found = ARGUMENT.match(part)
        assert found, f"{row['schema']}: {part}"
        kind, _, optional, size, optional_list, name, default = found.groups()
        text = TYPES[kind]
        if size is not None:
            text = f"Sequence[{text} | None]" if optional else f"Sequence[{text}]"
            text = f"{text} | {TYPES[kind]}" if size else text
            optional = optional_list
        if kind == "Tensor" and size is None and "numbers" in row["faces"] and parameters:
            text += " | Number"
        text += " | None" if optional else ""
        varargs = kind in ("int", "SymInt") and size == ""
        parameters.append(Parameter(name, text, default, keyword_only, varargs))
    return Operator(
        row["name"], row["overload"], row["schema"], row["family"], row["doc"],
        set(row["faces"]), parameters, result_type(matched[3].strip()),
    )  # fmt: skip


def result_type(text: str) -> str:
    parts = split_top(text[1:-1]) if text.startswith("(") else [text]
    types = []
    for part in parts:
        found = RESULT.match(part)
        assert found, text
        types.append(f"tuple[{TYPES[found[1]]}, ...]" if found[3] else TYPES[found[1]])
    if not types:
        return "None"
    return types[0] if len(types) == 1 else f"tuple[{', '.join(types)}]"


def stub(operator: Operator, name: str, method: bool, overloaded: bool, inplace: bool) -> list[str]:
    """The stub of one overload in one face, with the form that takes sizes one by one."""
    parameters = list(operator.parameters)
    lines = []
    texts = []
    if method:
        at = next((i for i, p in enumerate(parameters) if p.name == "self"), 0)
        parameters = parameters[:at] + parameters[at + 1 :]
        if operator.name == "copy":  # as in bindings/signature.cpp
            parameters = [replace(p, name="other") if p.name == "src" else p for p in parameters]
        texts.append("self")
    positional = [p for p in parameters if not p.keyword_only]
    rest = [p for p in parameters if p.keyword_only]
    out = "out" in operator.faces and not method and not inplace
    several = operator.result.startswith("tuple[") and not operator.result.endswith("...]")
    result = "Tensor" if inplace else operator.result
    many = overloaded or (len(positional) == 1 and positional[0].varargs)

    def write(first: list[str], star: bool) -> None:
        words = [spelled(p) for p in rest]
        if out:
            words.append(f"out: {'Sequence[Tensor]' if several else 'Tensor'} | None = None")
        if any(p.name == "pin_memory" for p in rest):
            words.append("requires_grad: _bool = False")
        marker = ["*"] if words and not star else []
        if many:
            lines.append("@overload")
        arguments = ", ".join([*texts, *first, *marker, *words])
        lines.append(f"def {name}({arguments}) -> {result}: ...")

    write([spelled(p, method) for p in positional], False)
    if len(positional) == 1 and positional[0].varargs:
        write([f"*{positional[0].name}: _int"], True)
    return lines


def spelled(parameter: Parameter, method: bool = True) -> str:
    name = "input" if parameter.name == "self" else parameter.name
    name += "_" if name in KEYWORDS else ""
    if parameter.default is None:
        return f"{name}: {parameter.type}"
    return f"{name}: {parameter.type} = {default_of(parameter)}"


def default_of(parameter: Parameter) -> str:
    """The schema's default as Python says it."""
    text = parameter.default or ""
    if parameter.type.startswith("_dtype"):
        return "None"  # which stands for the default that the schema names
    if parameter.name == "pin_memory":
        return "False"  # None, in the schema: the same
    if text.startswith("["):
        items = split_top(text[1:-1])
        if len(items) == 1 and "| _int" in parameter.type:
            return items[0]  # int[1], which one number stands for
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    try:
        ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return "..."  # names, of dtypes and the like
    return text


def group(operators: list[Operator], face: str) -> dict[str, list[tuple[Operator, bool]]]:
    """Python name -> overloads, in-place forms under their own names."""
    found: dict[str, list[tuple[Operator, bool]]] = defaultdict(list)
    for operator in operators:
        if "internal" in operator.faces:
            continue
        if face in operator.faces:
            found[operator.name].append((operator, False))
        if "inplace" in operator.faces and ("nn" in operator.faces) == (face == "nn"):
            if face in operator.faces or face == "method":
                found[operator.name + "_"].append((operator, True))
    return found


def merged(overloads: list[tuple[Operator, bool]]) -> list[tuple[Operator, bool]]:
    """One overload for two where the second adds keywords that None stands for (rounding_mode)."""
    kept = list(overloads)
    for base, inplace in overloads:
        for operator, other_inplace in overloads:
            if inplace == other_inplace and extends(operator, base):
                words = [
                    replace(p, default="None", type=p.type + " | None" * ("None" not in p.type))
                    if p.keyword_only and p.default is None
                    else p
                    for p in operator.parameters
                ]
                joined = replace(operator, parameters=words, result=base.result)
                kept = [entry for entry in kept if entry[0] not in (base, operator)]
                kept.append((joined, inplace))
    return kept


def extends(operator: Operator, base: Operator) -> bool:
    """As `extends` in bindings/signature.cpp."""
    count = len(base.parameters)
    added = operator.parameters[count:]
    shared = zip(operator.parameters[:count], base.parameters, strict=True)
    return (
        bool(added)
        and all(
            (p.name, p.default, p.keyword_only) == (q.name, q.default, q.keyword_only)
            for p, q in shared
        )
        and all(
            p.keyword_only and p.default is None and ("None" in p.type or p.name == "out")
            for p in added
        )
    )


def stubs_of(
    found: dict[str, list[tuple[Operator, bool]]], method: bool, cut: str = ""
) -> list[str]:
    lines: list[str] = []
    for name in sorted(found):
        shown = name.removeprefix(cut)
        if not shown.isidentifier() or shown in KEYWORDS:
            continue
        overloads = merged(found[name])
        for operator, inplace in overloads:
            lines += stub(operator, shown, method, len(overloads) > 1, inplace)
    return lines


IMPORTS = """
from collections.abc import Callable, Sequence
from typing import Any, Union, overload

"""
TYPE_NAMES = """
_int = int
_float = float
_bool = bool
Number = Union[_int, _float, _bool, complex]
DeviceLike = Union[device, str]
_dtype = dtype
_device = device
_layout = layout
_memory_format = memory_format
"""
CLASSES = """
class dtype:
    is_floating_point: _bool
    is_complex: _bool
    is_signed: _bool
    itemsize: _int
    def to_real(self) -> dtype: ...
    def to_complex(self) -> dtype: ...

class layout: ...
class memory_format: ...

class device:
    type: str
    index: _int | None
    @overload
    def __init__(self, device: str | device) -> None: ...
    @overload
    def __init__(self, type: str | device) -> None: ...
    @overload
    def __init__(self, type: str | device, index: _int | None) -> None: ...
    def __enter__(self) -> device: ...
    def __exit__(self, *exception: object) -> None: ...

class Size(tuple[_int, ...]):
    def numel(self) -> _int: ...

class Generator:
    device: device
    def __init__(self, device: DeviceLike | None = None) -> None: ...
    def manual_seed(self, seed: _int) -> Generator: ...
    def seed(self) -> _int: ...
    def initial_seed(self) -> _int: ...
    def get_state(self) -> Tensor: ...
    def set_state(self, new_state: Tensor) -> Generator: ...
    def clone_state(self) -> Generator: ...

class OutOfMemoryError(RuntimeError): ...
"""
PROPERTIES = {
    "shape": "Size", "dtype": "_dtype", "device": "_device", "layout": "_layout", "ndim": "_int",
    "itemsize": "_int", "nbytes": "_int", "T": "Tensor", "mT": "Tensor", "H": "Tensor",
    "mH": "Tensor", "requires_grad": "_bool", "data": "Tensor", "grad": "Tensor | None",
    "is_leaf": "_bool", "_version": "_int", "is_cpu": "_bool", "is_meta": "_bool",
    "is_cuda": "_bool",
}  # fmt: skip
METHODS = {
    "dim": "self) -> _int", "numel": "self) -> _int", "item": "self) -> Number",
    "stride": "self, dim: _int | None = None) -> Any",
    "size": "self, dim: _int | None = None) -> Any",
    "is_contiguous": "self, memory_format: _memory_format = contiguous_format) -> _bool",
    "data_ptr": "self) -> _int", "element_size": "self) -> _int",
    "requires_grad_": "self, requires_grad: _bool = True) -> Tensor",
    "is_same_size": "self, other: Tensor) -> _bool", "is_set_to": "self, tensor: Tensor) -> _bool",
    "type": "self, dtype: Any = None, non_blocking: _bool = False) -> Any",
    "dim_order": "self, *, ambiguity_check: Any = False) -> tuple[_int, ...]",
    "pin_memory": "self, device: DeviceLike | None = None) -> Tensor",
    "is_pinned": "self, device: DeviceLike | None = None) -> _bool",
    **{
        name: "self, device: DeviceLike | None = None, non_blocking: _bool = False, "
        "memory_format: _memory_format = preserve_format) -> Tensor"
        for name in ("cuda", "ipu", "mtia", "xpu")
    },
    **{
        name: "self, *, memory_format: _memory_format = preserve_format) -> Tensor"
        for name in "bool byte char short int long half bfloat16 float double cfloat cdouble cpu"
        .split()
    },
}  # fmt: skip
CONVERSIONS = [
    "device: DeviceLike | None = None, dtype: _dtype | None = None",
    "dtype: _dtype",
    "other: Tensor",
]
CONSTRUCTORS = [
    "*args: Any, device: DeviceLike | None = None",
    "storage: Any",
    "other: Tensor",
    "size: Sequence[_int], *, device: DeviceLike | None = None",
]
FUNCTIONS = {
    "set_rng_state": "new_state: Tensor) -> None",
    "set_anomaly_enabled": "enabled: _bool, check_nan: _bool = True) -> None",
    "set_num_threads": "num: _int) -> None",
    "set_default_dtype": "d: _dtype) -> None",
}
BINARY = (
    "add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow matmul and "
    "or xor lshift rshift lt le gt ge iadd isub imul itruediv"
).split()


def told(function: object, name: str, first: str = "") -> list[str]:
    """The overloads that the lines at the head of a doc tell: "new(storage)"."""
    lines = (getattr(function, "__doc__", None) or "").split("\n\n")[0].splitlines()
    found = [re.fullmatch(rf"\s*{name}\((.*)\)", line) for line in lines]
    if not found or None in found:
        return []
    marker = ["@overload"] if len(found) > 1 else []
    made = []
    for match in found:
        made += [*marker, f"def {name}({', '.join(filter(None, (first, match[1])))}) -> Any: ..."]
    return made


def conversions() -> list[str]:
    """The overloads of Tensor.to."""
    lines = []
    for first in CONVERSIONS:
        lines += [
            "@overload",
            f"def to(self, {first}, non_blocking: _bool = False, copy: _bool = False, *, "
            "memory_format: _memory_format | None = None) -> Tensor: ...",
        ]
    return lines


def tensor_class(torch: object, operators: list[Operator]) -> list[str]:
    members = vars(torch.Tensor)
    # Methods that are no operators' take the place of those that are: to, type.
    found = {
        name: overloads
        for name, overloads in group(operators, "method").items()
        if type(members.get(name)).__name__ == "op_method"
    }
    lines = stubs_of(found, True)
    for name, member in sorted(members.items()):
        kind = type(member).__name__
        if name in found or (name.startswith("__") and name.endswith("__")):
            continue
        if kind == "tensor_property":
            text = PROPERTIES.get(name, "Any")
            lines += ["@property", f"def {name}(self) -> {text}: ..."]
            if name in ("requires_grad", "data", "grad"):
                lines += [f"@{name}.setter", f"def {name}(self, value: Any) -> None: ..."]
        elif callable(member) and kind != "staticmethod":
            if name == "to":
                lines += conversions()
                continue
            if overloads := told(member, name, "self"):
                lines += overloads
                continue
            bare = getattr(member, "__text_signature__", None) == "($self)"
            rest = "self) -> Any" if bare else "self, *args: Any, **kwargs: Any) -> Any"
            lines.append(f"def {name}({METHODS.get(name, rest)}: ...")
    lines += [f"def __{name}__(self, other: Any) -> Tensor: ..." for name in BINARY]
    lines += [f"def __{name}__(self) -> Tensor: ..." for name in ("neg", "abs", "invert", "pos")]
    lines += ["def __getitem__(self, index: Any) -> Tensor: ..."]
    lines += ["def __setitem__(self, index: Any, value: Any) -> None: ..."]
    lines += ["def __len__(self) -> _int: ...", "def __bool__(self) -> _bool: ..."]
    for parameters in CONSTRUCTORS:
        lines += ["@overload", f"def __init__(self, {parameters}) -> None: ..."]
    return ["class Tensor:", *(f"    {line}" for line in lines)]


def package_stub(torch: object, operators: list[Operator]) -> str:
    lines = [HEAD, IMPORTS]
    for module, names in sorted(torch._LAZY.items()):
        known = (Path(torch.__file__).parent / f"{module.replace('.', '/')}.py").exists()
        if known:
            lines += [f"from rushlight.{module} import {name} as {name}" for name in names]
    lines += [CLASSES, TYPE_NAMES]
    lines += tensor_class(torch, operators)
    functions = group(operators, "function")
    lazy = {name for names in torch._LAZY.values() for name in names}
    functions = {
        name: overloads
        for name, overloads in functions.items()
        if name not in lazy and not name.startswith(tuple(PREFIXES))
    }
    lines += stubs_of(functions, False)
    for name, value in sorted(vars(torch).items()):
        if name.startswith("_") or name in functions:
            continue
        if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
            lines.append(f"{name}: {type(value).__name__}")
        elif isinstance(value, float):
            lines.append(f"{name}: _float")
        elif type(value).__name__ == "builtin_function_or_method":
            if overloads := told(value, name):
                lines += overloads
                continue
            bare = value.__text_signature__ == "($module)"
            rest = ") -> Any" if bare else "*args: Any, **kwargs: Any) -> Any"
            lines.append(f"def {name}({FUNCTIONS.get(name, rest)}: ...")
    lines.append("def __getattr__(name: str) -> Any: ...")
    return "\n".join(lines) + "\n"


def prefix_stub(operators: list[Operator], prefix: str) -> str:
    found = {n: o for n, o in group(operators, "function").items() if n.startswith(prefix)}
    names = "DeviceLike, Generator, Number, Tensor, _dtype, _layout, _memory_format"
    head = [HEAD, IMPORTS, f"from rushlight import {names}\n"]
    head += ["_int = int", "_float = float", "_bool = bool"]
    return "\n".join([*head, *stubs_of(found, False, prefix)]) + "\n"


def page(family: str, operators: list[Operator]) -> str:
    lines = [f"# {family}", "", "Written by tools/derive_docs.py from the operator table.", ""]
    for operator in operators:
        full = operator.name + (f".{operator.overload}" if operator.overload else "")
        lines += [f"## {full}", "", f"    {operator.schema}", "", operator.doc, ""]
        lines += [f"Faces: {', '.join(faces_text(operator))}.", ""]
    return "\n".join(lines)


def faces_text(operator: Operator) -> list[str]:
    name = operator.name
    shown = "rushlight." + name
    if "internal" in operator.faces:
        return ["none: for compositions and gradients"]
    for prefix, module in PREFIXES.items():
        if name.startswith(prefix):
            shown = f"rushlight.{module}.{name.removeprefix(prefix)}"
    faces = []
    if "function" in operator.faces:
        faces.append(f"`{shown}`")
    if "method" in operator.faces:
        faces.append(f"`Tensor.{name}`")
    if "inplace" in operator.faces:
        faces.append(f"`{name}_`")
    if "out" in operator.faces:
        faces.append("`out=`")
    if "nn" in operator.faces:
        faces.append("`rushlight.nn.functional`")
    return faces or ["none: for compositions and gradients"]


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", type=Path, required=True, help="folder that holds rushlight/")
    parser.add_argument("--stubs", type=Path, required=True)
    parser.add_argument("--pages", type=Path, required=True)
    options = parser.parse_args()
    sys.path.insert(0, str(options.package))
    torch = importlib.import_module("rushlight")
    operators = [parse(row) for row in torch._C._operator_table()]
    stubbed = operators + [
        replace(operator, name=alias)
        for alias, target in torch._C._operator_aliases()
        for operator in operators
        if operator.name == target
    ]
    write(options.stubs / "__init__.pyi", package_stub(torch, stubbed))
    for prefix, module in PREFIXES.items():
        write(options.stubs / f"{module}.pyi", prefix_stub(stubbed, prefix))
    families = defaultdict(list)
    for operator in operators:
        families[operator.family].append(operator)
    for family, members in families.items():
        write(options.pages / f"{family}.md", page(family, members))
    index = ["# Operators", ""]
    index += [f"- [{family}]({family}.md): {len(families[family])}" for family in sorted(families)]
    write(options.pages / "README.md", "\n".join(index) + "\n")


if __name__ == "__main__":
    main()
