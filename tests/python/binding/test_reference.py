"""Stubs and reference pages follow from the operator table and cover it."""

import ast
import importlib.util
import inspect
import sys
from pathlib import Path

import pytest
import rushlight as torch

TOOL = Path(__file__).parents[3] / "tools" / "derive_docs.py"
TABLE = torch._C._operator_table()
ROWS = [row for row in TABLE if "internal" not in row["faces"]]


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("derive_docs", TOOL)
    module = importlib.util.module_from_spec(spec)
    sys.modules["derive_docs"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def operators(tool):
    return [tool.parse(row) for row in TABLE]


def test_every_operator_is_documented():
    bare = [row["name"] for row in TABLE if not row["doc"].strip()]
    assert bare == []


def test_the_stub_is_python_and_names_every_function_and_method(tool, operators):
    tree = ast.parse(tool.package_stub(torch, operators))
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    imported = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    tensor = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Tensor")
    methods = {node.name for node in tensor.body if isinstance(node, ast.FunctionDef)}
    for row in ROWS:
        name = row["name"]
        if "function" in row["faces"] and not name.startswith(tuple(tool.PREFIXES)):
            assert name in functions | imported, name
        if "method" in row["faces"]:
            assert name in methods, name


def test_stubs_of_namespaces_are_python(tool, operators):
    for prefix in tool.PREFIXES:
        ast.parse(tool.prefix_stub(operators, prefix))


def test_pages_hold_schema_and_doc(tool, operators):
    for operator in operators:
        text = tool.page(operator.family, [operator])
        assert operator.schema in text and operator.doc in text


def test_functions_explain_themselves():
    assert torch.add.__name__ == "add" and torch.Tensor.add.__qualname__ == "Tensor.add"
    assert torch.add.__doc__.startswith("add(input, other, *, alpha=1, out=None) -> Tensor\n\nself")
    assert torch.special.erf.__doc__.startswith("erf(input, *, out=None) -> Tensor\n")
    assert inspect.getdoc(torch.Tensor.exp)


def test_methods_have_signatures():
    assert list(inspect.signature(torch.Tensor.backward).parameters)[:3] == [
        "self",
        "gradient",
        "retain_graph",
    ]
    assert "\n--\n" not in torch.Tensor.backward.__doc__
    assert str(inspect.signature(torch.Tensor.numel)) == "(self, /)"


def test_stubs_have_defaults_and_aliases():
    text = Path(torch.__file__).with_name("__init__.pyi").read_text()
    assert "def argsort(self, dim: _int = -1, descending: _bool = False) -> Tensor: ..." in text
    assert "def arccos(input: Tensor, *, out: Tensor | None = None) -> Tensor: ..." in text


def test_every_table_function_is_reachable(tool):
    for row in ROWS:
        name = row["name"]
        if "function" in row["faces"]:
            prefix = next((p for p in tool.PREFIXES if name.startswith(p)), None)
            space = getattr(torch, tool.PREFIXES[prefix]) if prefix else torch
            assert callable(getattr(space, name.removeprefix(prefix or ""))), name
        if "method" in row["faces"]:
            assert callable(getattr(torch.Tensor, name)), name
        if "nn" in row["faces"]:
            assert callable(getattr(torch._C._nn, name)), name
