"""Every operator has the same names, arguments and defaults in C++ and in Python."""

from __future__ import annotations

import re

import pytest
import rushlight as torch

from . import cpp_headers

if not cpp_headers.GENERATED.exists():
    pytest.skip(f"no C++ headers in {cpp_headers.GENERATED}", allow_module_level=True)

TABLE = torch._C._operator_table()
PUBLIC = [row for row in TABLE if "internal" not in row["faces"]]
FUNCTIONS = cpp_headers.functions()
METHODS = cpp_headers.methods()
# The four arguments of factories are one TensorOptions in C++, where requires_grad is too.
OPTIONS = {"dtype", "layout", "device", "pin_memory"}
# Where Python has x_ alone, C++ has x and x_out too, as PyTorch's C++ has.
INPLACE_ALONE = {r["name"] for r in PUBLIC if not {"function", "method", "nn"} & set(r["faces"])}
# C++ keywords get an underscore.
RENAMED = {"and", "or", "xor", "not"}


def rows(face: str) -> list:
    return [
        pytest.param(row, id=f"{row['name']}.{row['overload']}".rstrip("."))
        for row in PUBLIC
        if face in row["faces"]
    ]


def cpp_name(name: str) -> str:
    return name + "_" if name in RENAMED else name


def python_function(row: dict, suffix: str = "") -> object:
    space = torch._C._nn if "nn" in row["faces"] else torch._C._VariableFunctions
    return getattr(space, row["name"] + suffix)


def python_signatures(function: object, name: str) -> list[list[tuple[str, str | None]]]:
    """(name, default) of each parameter of each overload, from the callable's own text."""
    found = []
    name = re.sub("^(special|linalg|fft)_", "", name)
    for text in re.findall(rf"^{re.escape(name)}\((.*)\) -> .*$", function.__doc__, re.M):
        signature = []
        for part in cpp_headers.split_top(text):
            if part != "*":
                declared, _, default = part.partition("=")
                signature.append((declared, default or None))
        found.append(signature)
    return found


def value(default: str | None) -> object:
    """A default of either language as a Python value."""
    if default is None:
        return "required"
    default = re.sub(r"^Scalar\(int64_t\{(.*)\}\)$", r"\1", default.strip())
    default = default.removeprefix("MemoryFormat::")
    known = {"{}": None, "None": None, "true": True, "True": True, "false": False, "False": False}
    known |= {"Contiguous": "contiguous_format", "Preserve": "preserve_format"}
    if default in known:
        return known[default]
    if default[0] in "{[(":
        items = [value(item) for item in cpp_headers.split_top(default[1:-1])]
        # Python's int[2]=1 is {1, 1} in C++; an empty list that may be left out is {}, as None is.
        return None if not items else items[0] if len(set(items)) == 1 else items
    try:
        return float(default)
    except ValueError:
        return default.strip("\"'")


def without_options(signature: list[tuple[str, str | None]]) -> list[tuple[str, str | None]]:
    names = [name for name, _ in signature]
    if OPTIONS <= set(names):
        return [(name, default) for name, default in signature if name not in OPTIONS]
    return signature


def matches(declared: cpp_headers.Declaration, wanted: list, others: int) -> bool:
    """Whether a C++ declaration has these names and defaults."""
    got = [p for p in declared.parameters if p.name != "options"]
    if len(got) != len(wanted):
        return False
    for parameter, (name, default) in zip(got, wanted, strict=True):
        # Python's functions call `self` of the schema `input`; Tensor.copy_ calls `src` `other`.
        renamed = (parameter.name, name) in (("self", "input"), ("src", "other"))
        if parameter.name.rstrip("_") != name and not renamed:
            return False
        # A default may be missing in C++ where another overload could not be told apart.
        if parameter.default is None and others > 0:
            continue
        if value(parameter.default) != value(default):
            return False
    return True


def check(name: str, signatures: list, candidates: list) -> None:
    assert signatures, f"{name}: the Python face has no signature"
    for signature in signatures:
        wanted = [
            (parameter, default)
            for parameter, default in without_options(signature)
            if parameter not in ("out", "requires_grad")
        ]
        fits = [d for d in candidates if matches(d, wanted, len(candidates) - 1)]
        assert fits, f"C++ has no {name}{wanted}; it has {candidates}"


@pytest.mark.parametrize("row", rows("function") + rows("nn"))
def test_function(row: dict) -> None:
    signatures = python_signatures(python_function(row), row["name"])
    check(row["name"], signatures, FUNCTIONS.get(cpp_name(row["name"]), []))


@pytest.mark.parametrize("row", rows("method"))
def test_method(row: dict) -> None:
    function = getattr(torch.Tensor, row["name"])
    signatures = python_signatures(function, row["name"])
    if not signatures:
        pytest.skip("written by hand in Python, over the operator of the same name")
    check(row["name"], signatures, METHODS.get(cpp_name(row["name"]), []))


@pytest.mark.parametrize("row", rows("inplace"))
def test_inplace(row: dict) -> None:
    name = row["name"] + "_"
    if "nn" in row["faces"] and "method" not in row["faces"]:
        check(name, python_signatures(python_function(row, "_"), name), FUNCTIONS[name])
    else:
        check(name, python_signatures(getattr(torch.Tensor, name), name), METHODS[name])


@pytest.mark.parametrize("row", rows("out"))
def test_out(row: dict) -> None:
    if row["name"] in INPLACE_ALONE:
        pytest.skip("an in-place operator: its other forms are C++'s alone")
    names = [name for s in python_signatures(python_function(row), row["name"]) for name, _ in s]
    assert "out" in names
    declared = FUNCTIONS.get(row["name"] + "_out", [])
    assert declared
    assert all(d.parameters[0].name in ("out", "out0") for d in declared)


def test_cpp_has_nothing_that_python_lacks() -> None:
    internal = {row["name"] for row in TABLE if "internal" in row["faces"]}
    known = set(dir(torch._C._VariableFunctions)) | set(dir(torch._C._nn)) | set(dir(torch.Tensor))
    extra = []
    for name in FUNCTIONS:
        plain = name.removesuffix("_out")
        if not {plain, plain.removesuffix("_")} & (known | internal | INPLACE_ALONE):
            extra.append(name)
    assert extra == []


def test_the_headers_were_read() -> None:
    assert sum(len(overloads) for overloads in FUNCTIONS.values()) > len(PUBLIC)
    assert len(METHODS) > 200
