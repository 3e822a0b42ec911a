"""Writes the C++ face of the operator table from the schema strings in src/ops/*.cpp.

    opgen.py --sources src/ops --output build/generated

For each family `f` (a source file with RUSHLIGHT_OPERATORS(f)): rushlight/generated/f.h and f.cpp,
the free functions; for all of them: rushlight/generated/functions.h and tensor_methods.inc, the
methods of Tensor; namespaces.h: rushlight::fft and its like. A file is written only where its text
changed, so that an edit rebuilds little.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass, field
from pathlib import Path

FAMILY = re.compile(r"^RUSHLIGHT_OPERATORS\((\w+)\)", re.M)
ENTRY = re.compile(r"\bop\(\s*((?:\"(?:[^\"\\]|\\.)*\"\s*)+),\s*([\w\s|]+?)\)")
LITERAL = re.compile(r"\"((?:[^\"\\]|\\.)*)\"")
SCHEMA = re.compile(r"^([\w.]+)\((.*)\)\s*->\s*(.+)$", re.S)
ARGUMENT = re.compile(
    r"^(\w+)(?:\((\w+!?)\))?(\?)?(?:\[(\d*)\](\?)?)?\s+(\w+)(?:\s*=\s*(.+))?$", re.S
)
RESULT = re.compile(r"^(\w+)(?:\((\w+!?)\))?(\[\])?(?:\s+\w+)?$")

VALUE_TYPES = {
    "Tensor": "Tensor", "Scalar": "Scalar", "int": "int64_t", "SymInt": "int64_t",
    "float": "double", "bool": "bool", "str": "std::string_view", "ScalarType": "DType",
    "Device": "Device", "Layout": "LayoutKind", "MemoryFormat": "MemoryFormat",
    "Generator": "Generator",
}  # fmt: skip
LIST_TYPES = {
    "Tensor": "const TensorList&", "Scalar": "const std::vector<Scalar>&",
    "int": "IntArrayRef", "SymInt": "IntArrayRef", "float": "const std::vector<double>&",
    "bool": "const std::vector<bool>&",
}  # fmt: skip
OPTIONS = ["dtype", "layout", "device", "pin_memory"]
OPTIONS_TYPE = "const TensorOptions&"
MEMORY_FORMATS = {
    "contiguous_format": "MemoryFormat::Contiguous", "preserve_format": "MemoryFormat::Preserve",
}  # fmt: skip
KEYWORDS = {"and", "or", "xor", "not", "bool", "float", "double", "int", "short", "char", "long"}
KEYWORDS |= {"union", "default", "register", "auto", "new", "delete", "operator", "template"}
# Names that the Tensor class itself defines.
OWN_METHODS = {
    "item", "data", "size", "stride", "detach", "backward", "requires_grad_", "retain_grad",
    "is_floating_point", "is_complex", "numel", "dim", "storage_offset", "is_contiguous",
    "element_size", "grad", "to_string", "is_leaf", "set_data",
}  # fmt: skip


@dataclass
class Argument:
    type: str
    name: str
    list_size: str | None  # None: no list; "": any length
    optional: bool
    default: str | None

    def is_tensor(self) -> bool:
        return self.type == "Tensor" and self.list_size is None

    def parameter(self) -> str:
        if self.list_size is not None:
            kind = LIST_TYPES[self.type]
            if self.optional and self.type in ("int", "SymInt"):
                return "OptionalIntArrayRef"
            if self.optional and self.type != "Tensor":
                return f"std::optional<{kind.removeprefix('const ').removesuffix('&')}>"
            return kind
        kind = VALUE_TYPES[self.type]
        if kind == "Tensor":
            return "const Tensor&"
        if self.optional:
            return f"const std::optional<{kind}>&" if kind == "Scalar" else f"std::optional<{kind}>"
        return "const Scalar&" if kind == "Scalar" else kind

    def default_cpp(self) -> str | None:
        if self.default is None:
            return None
        text = self.default
        if text == "None":
            return "{}"
        if text in ("True", "False"):
            return text.lower()
        if text.startswith("["):
            return "{" + text[1:-1] + "}"
        if self.type == "MemoryFormat":
            return MEMORY_FORMATS[text]
        if text[0] in "'\"":
            return '"' + text[1:-1] + '"'
        if self.list_size is not None and self.type in ("int", "SymInt"):
            return "{" + ", ".join([text] * int(self.list_size or 1)) + "}"
        if self.type == "Scalar" and re.fullmatch(r"-?\d+", text):
            return f"Scalar(int64_t{{{text}}})"
        return text

    def boxed(self) -> str:
        name = cpp_name(self.name)
        if self.is_tensor():
            return f"Value::borrow({name})"
        if self.list_size is not None:
            if self.optional and self.type in ("int", "SymInt"):
                return f"{name} ? Value::borrow(*{name}) : Value()"
            if self.type in ("Tensor", "int", "SymInt"):
                return f"Value::borrow({name})"
            return f"Value({name})"
        if self.type == "str" and not self.optional:
            return f"Value::borrow({name})"
        if self.type == "str":
            return f"{name} ? Value::borrow(*{name}) : Value()"
        return f"Value({name})"


@dataclass
class Operator:
    full_name: str
    arguments: list[Argument]
    results: list[str]  # "Tensor", "Tensor[]", "Scalar", ...
    variants: set[str]
    family: str = ""
    options_at: int | None = field(default=None)

    def name(self) -> str:
        return self.full_name.split(".")[0]

    def return_type(self) -> str:
        kinds = {"Tensor": "Tensor", "Tensor[]": "TensorList", "Scalar": "Scalar"}
        kinds |= {"int": "int64_t", "SymInt": "int64_t", "float": "double", "bool": "bool"}
        if not self.results:
            return "void"
        if len(self.results) == 1:
            return kinds[self.results[0]]
        return f"std::tuple<{', '.join(kinds[result] for result in self.results)}>"

    def parameters(self) -> list[tuple[str, str, str | None]]:
        """(type, name, default) for each C++ parameter: the four factory options become one."""
        found: list[tuple[str, str, str | None]] = []
        for position, argument in enumerate(self.arguments):
            if self.options_at is not None and 0 <= position - self.options_at < 4:
                if position == self.options_at:
                    found.append(("const TensorOptions&", "options", "{}"))
                continue
            found.append((argument.parameter(), cpp_name(argument.name), argument.default_cpp()))
        return found

    def boxed(self) -> list[str]:
        found = []
        for position, argument in enumerate(self.arguments):
            if self.options_at is not None and 0 <= position - self.options_at < 4:
                found.append(
                    ["Value(options.dtype_)", "Value(options.layout_)", "Value(options.device_)",
                     "Value()"][position - self.options_at]
                )  # fmt: skip
            else:
                found.append(argument.boxed())
        return found


def cpp_name(name: str) -> str:
    return name + "_" if name in KEYWORDS else name


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
    return parts + [current.strip()] if current.strip() else parts


def parse_schema(text: str, variants: str, where: str) -> Operator:
    matched = SCHEMA.match(text)
    if matched is None:
        raise SystemExit(f"opgen: {where}: not a schema: {text}")
    arguments = []
    for part in split_top(matched[2]):
        if part == "*":
            continue
        found = ARGUMENT.match(part)
        if found is None:
            raise SystemExit(f"opgen: {where}: cannot read the argument {part!r} of {text}")
        kind, _, optional, size, optional_list, name, default = found.groups()
        optional_flag = bool(optional_list) if size is not None else bool(optional)
        arguments.append(Argument(kind, name, size, optional_flag, default))
    body = matched[3].strip()
    parts = split_top(body[1:-1]) if body.startswith("(") else [body]
    results = []
    for part in parts:
        found = RESULT.match(part)
        if found is None:
            raise SystemExit(f"opgen: {where}: cannot read the result {part!r} of {text}")
        results.append(found[1] + (found[3] or ""))
    operator = Operator(matched[1], arguments, results, set(re.findall(r"k\w+", variants)))
    if "kUnary" in operator.variants:
        operator.variants |= {"kFunction", "kMethod", "kInplace", "kOut"}
    if {"kBinary", "kBinaryEither", "kArithmetic"} & operator.variants:
        operator.variants |= {"kFunction", "kMethod", "kInplace", "kOut", "kNumbers"}
    names = [argument.name for argument in arguments]
    for start in range(len(names) - 3):
        if names[start : start + 4] == OPTIONS:
            operator.options_at = start
    return operator


def read_families(folder: Path) -> dict[str, list[Operator]]:
    families: dict[str, list[Operator]] = {}
    for path in sorted(folder.glob("*.cpp")):
        text = path.read_text()
        family = FAMILY.search(text)
        if family is None:
            continue
        entries = families.setdefault(family[1], [])
        for found in ENTRY.finditer(text, family.start()):
            schema = "".join(LITERAL.findall(found[1])).replace('\\"', '"')
            operator = parse_schema(schema, found[2], path.name)
            operator.family = family[1]
            entries.append(operator)
    return families


def declare(parameters: list[tuple[str, str, str | None]], defaults: bool) -> str:
    texts = []
    for kind, name, default in parameters:
        texts.append(f"{kind} {name}" + (f" = {default}" if defaults and default else ""))
    return ", ".join(texts)


def forms(operator: Operator) -> list[tuple[str, str, list[tuple[str, str, str | None]], str]]:
    """(return type, name, parameters, body) for each C++ function of the operator."""
    handle = f'static const Operator& op = find_operator("{operator.full_name}");'
    values = ", ".join(operator.boxed())
    parameters = operator.parameters()
    name = cpp_name(operator.name())
    kind = operator.return_type()
    if kind == "Tensor" and operator.options_at is not None:
        body = (
            f"{handle}\n  Tensor result = call(op, {{{values}}});\n"
            "  if (options.requires_grad_) {\n    result.requires_grad_();\n  }\n  return result;"
        )
    elif kind == "Tensor":
        body = f"{handle}\n  return call(op, {{{values}}});"
    elif kind == "void":
        body = f"{handle}\n  call_many(op, {{{values}}}, nullptr, 0);"
    else:
        count = len(operator.results)
        take = {"TensorList": ".tensors()", "Scalar": ".to_scalar()", "int64_t": ".to_int()"}
        take |= {"double": ".to_double()", "bool": ".to_bool()"}
        if count == 1:
            taken = f"results[0]{take[kind]}"
        else:
            parts = []
            for position, result in enumerate(operator.results):
                end = ".take_tensor()" if result == "Tensor" else ".tensors()"
                parts.append(f"results[{position}]{end}")
            taken = f"{{{', '.join(parts)}}}"
        body = (
            f"{handle}\n  Value results[{count}];\n"
            f"  call_many(op, {{{values}}}, results, {count});\n  return {taken};"
        )
    found = [(kind, name, parameters, body)]
    if "kInplace" in operator.variants:
        target = parameters[0][1]
        body = f"{handle}\n  call_inplace(op, {{{values}}});\n  return {target};"
        found.append(("const Tensor&", operator.name() + "_", parameters, body))
    if "kOut" in operator.variants:
        count = len(operator.results)
        outs = ["out"] if count == 1 else [f"out{i}" for i in range(count)]
        body = f"{handle}\n  call_out(op, {{{values}}}, {{{', '.join(outs)}}});"
        out_parameters = [("const Tensor&", out, None) for out in outs] + parameters
        found.append(("void", operator.name() + "_out", out_parameters, body))
    if "kNumbers" in operator.variants:
        found += number_forms(operator, found)
    return found


def number_forms(operator: Operator, found: list) -> list:
    """The same functions with numbers for one or all of the tensor arguments after the first."""
    tensors = [cpp_name(argument.name) for argument in operator.arguments if argument.is_tensor()]
    choices = [[name] for name in tensors[1:]] + ([tensors[1:]] if len(tensors) > 2 else [])
    extra = []
    for targets in choices:
        for kind, name, parameters, body in found:
            changed = [
                ("const Scalar&", n, d) if n in targets and k == "const Tensor&" else (k, n, d)
                for k, n, d in parameters
            ]
            for target in targets:
                body = body.replace(f"Value::borrow({target})", f"Value({target})")
            extra.append((kind, name, changed, body))
    return extra


HEADER = "// Written by tools/opgen.py from the operator table. Do not edit.\n"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def without_ambiguity(found: list, everything: list) -> list:
    """Drops the default of the first argument that a shorter overload lacks.

    C++ could not choose between all(x) and all(x, dim=None): the second must then name its dim.
    """
    shapes: dict[str, list[list[str]]] = {}
    for _, name, parameters, _ in everything:
        shapes.setdefault(name, []).append([kind for kind, _, _ in parameters])
    changed = []
    for kind, name, parameters, body in found:
        # With the trailing factory options aside, which may always be left out.
        kinds = [k for k, _, _ in parameters]
        required = sum(default is None for _, _, default in parameters)
        shorter = [s for s in shapes[name] if len(s) < len(kinds) and s == kinds[: len(s)]]
        bare = kinds[:-1] if kinds[-1:] == [OPTIONS_TYPE] else kinds
        shorter += [
            s[:-1]
            for s in shapes[name]
            if s[-1:] == [OPTIONS_TYPE] and len(s) - 1 < len(bare) and s[:-1] == bare[: len(s) - 1]
        ]
        for shape in shorter:
            if required <= len(shape):
                parameters = [
                    (k, n, None if i <= len(shape) else d) for i, (k, n, d) in enumerate(parameters)
                ]
        changed.append((kind, name, parameters, body))
    return changed


def family_files(family: str, operators: list[Operator], everything: list) -> tuple[str, str]:
    header = [HEADER + "#pragma once\n", "#include <rushlight/generated/prelude.h>\n"]
    header.append("namespace rushlight {\n")
    source = [HEADER, f"#include <rushlight/generated/{family}.h>\n", '#include "ops/operator.h"\n']
    source.append("namespace rushlight {\n")
    seen: set[str] = set()
    for operator in operators:
        for kind, name, parameters, body in without_ambiguity(forms(operator), everything):
            signature = f"{kind} {name}({declare(parameters, False)})"
            if signature in seen:
                continue
            seen.add(signature)
            header.append(f"RUSHLIGHT_API {kind} {name}({declare(parameters, True)});")
            source.append(f"{signature} {{\n  {body}\n}}\n")
    header.append("\n}  // namespace rushlight\n")
    source.append("}  // namespace rushlight\n")
    return "\n".join(header), "\n".join(source)


def method_lines(operators: list[Operator], everything: list) -> tuple[list[str], list[str]]:
    """Declarations inside Tensor, and definitions."""
    declarations, definitions = [], []
    seen: set[str] = set()
    for operator in operators:
        tensors = [i for i, a in enumerate(operator.arguments) if a.is_tensor()]
        if not {"kMethod", "kInplace"} & operator.variants or not tensors:
            continue
        for kind, name, parameters, _ in without_ambiguity(forms(operator), everything):
            if name in OWN_METHODS or name.endswith("_out"):
                continue
            if "kMethod" not in operator.variants and name == cpp_name(operator.name()):
                continue
            at = next((i for i, (k, n, _) in enumerate(parameters) if n == "self"), None)
            if at is None:
                continue
            rest = parameters[:at] + parameters[at + 1 :]
            signature = f"{name}({declare(rest, False)}) const"
            if signature in seen:
                continue
            seen.add(signature)
            declarations.append(f"  {kind} {name}({declare(rest, True)}) const;")
            arguments = ", ".join("*this" if n == "self" else n for _, n, _ in parameters)
            definitions.append(
                f"{kind} Tensor::{signature} {{\n  return rushlight::{name}({arguments});\n}}\n"
            )
    return declarations, definitions


PRELUDE = """#pragma once

#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include <rushlight/tensor.h>
"""


# Functions whose names begin so are also in a namespace, without it, as they are in a submodule.
NAMESPACES = {"special_": "special", "linalg_": "linalg", "fft_": "fft"}
ALIAS = re.compile(r"\{\"(\w+)\", \"(\w+)\"\}")


def namespace_lines(families: dict[str, list[Operator]], aliases: list, everything: list) -> list:
    """rushlight::fft::rfft and its like, over the functions that the families have."""
    lines = [HEADER + "#pragma once\n", "#include <rushlight/generated/functions.h>\n"]
    named: dict[str, list[Operator]] = {}
    for operator in (op for operators in families.values() for op in operators):
        if "kFunction" in operator.variants:
            named.setdefault(operator.name(), []).append(operator)
    for prefix, space in NAMESPACES.items():
        pairs = [(name, name) for name in named] + aliases
        lines.append(f"namespace rushlight::{space} {{\n")
        seen: set[str] = set()
        for alias, name in pairs:
            if not alias.startswith(prefix):
                continue
            for operator in named.get(name, []):
                for kind, full, parameters, _ in without_ambiguity(forms(operator), everything):
                    if full.endswith("_") and not name.endswith("_"):
                        continue  # in place
                    short = cpp_name(alias.removeprefix(prefix) + full.removeprefix(name))
                    signature = f"{kind} {short}({declare(parameters, False)})"
                    if signature in seen:
                        continue
                    seen.add(signature)
                    given = ", ".join(parameter for _, parameter, _ in parameters)
                    lines.append(f"inline {kind} {short}({declare(parameters, True)}) {{")
                    lines.append(f"  return rushlight::{full}({given});\n}}")
        lines.append(f"\n}}  // namespace rushlight::{space}\n")
    return lines


# What C++ spells differently from Python's __getitem__.
INDEXING = (
    "  // Entry `index` of the first dimension; negative indices count from the end.\n"
    "  Tensor operator[](int64_t index) const;\n"
    "  // Python's subscripts: see rushlight/indexing.h, which defines these.\n"
    "  class Subscript;\n"
    "  Tensor index(std::initializer_list<Subscript> items) const;\n"
    "  const Tensor& index_put_(std::initializer_list<Subscript> items, const Tensor& value) const;"
    "\n"
    "  const Tensor& index_put_(std::initializer_list<Subscript> items, const Scalar& value) "
    "const;",
    "Tensor Tensor::operator[](int64_t index) const {\n"
    "  return rushlight::select(*this, 0, index);\n}\n",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--list", action="store_true", help="print the generated sources and leave")
    options = parser.parse_args()
    families = read_families(options.sources)
    folder = options.output / "rushlight" / "generated"
    if options.list:
        print(";".join(str(folder / f"{name}.cpp") for name in [*families, "tensor_methods"]))
        return
    write(folder / "prelude.h", HEADER + PRELUDE)
    includes = [HEADER + "#pragma once\n"]
    declarations: list[str] = []
    definitions = [HEADER, "#include <rushlight/generated/functions.h>\n"]
    definitions.append("namespace rushlight {\n")
    everything = [form for ops in families.values() for op in ops for form in forms(op)]
    for family, operators in families.items():
        header, source = family_files(family, operators, everything)
        write(folder / f"{family}.h", header)
        write(folder / f"{family}.cpp", source)
        includes.append(f"#include <rushlight/generated/{family}.h>")
        lines, bodies = method_lines(operators, everything)
        declarations += lines
        definitions += bodies
    definitions.append("}  // namespace rushlight\n")
    declarations.append(INDEXING[0])
    definitions.insert(-1, INDEXING[1])
    write(folder / "functions.h", "\n".join(includes) + "\n")
    aliases = ALIAS.findall((options.sources / "aliases.cpp").read_text())
    write(folder / "namespaces.h", "\n".join(namespace_lines(families, aliases, everything)))
    write(folder / "tensor_methods.inc", HEADER + "\n".join(declarations) + "\n")
    write(folder / "tensor_methods.cpp", "\n".join(definitions))


if __name__ == "__main__":
    main()
