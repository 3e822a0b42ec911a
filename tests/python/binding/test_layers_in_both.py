"""Layers, optimizers and initial values have the same names, options and defaults in C++."""

from __future__ import annotations

import inspect
import re

import pytest
import rushlight as torch
from rushlight import nn

from . import cpp_headers

if not cpp_headers.SOURCE.exists():
    pytest.skip(f"no C++ headers in {cpp_headers.SOURCE}", allow_module_level=True)

LAYERS = cpp_headers.layers()
OPTIMIZERS = cpp_headers.optimizers()
SCHEDULES = cpp_headers.schedules()
INITIALIZERS = cpp_headers.initializers()
UTILITIES = cpp_headers.utilities()

# Python's alone: where a tensor is placed, older spellings, and choices of how to compute.
PYTHON_ONLY = {"self", "device", "dtype", "size_average", "reduce", "min_value", "max_value"}
PYTHON_ONLY |= {"foreach", "differentiable", "fused", "capturable", "generator", "options"}
PYTHON_ONLY |= {"enable_nested_tensor", "mask_check"}
ADAM_ONLY = {"decoupled_weight_decay"}  # makes an Adam an AdamW, which C++ has as a class
PYTHON_ONLY |= {"return_indices"}  # C++ has forward_with_indices
# Containers and optimizers take these as the first argument of their constructor.
CONTENTS = {"args", "modules", "values", "parameters", "params", "kwargs"}


def python_options(function: object) -> list[tuple[str, object]]:
    return [
        (name, "required" if p.default is inspect.Parameter.empty else p.default)
        for name, p in inspect.signature(function).parameters.items()
        if name not in PYTHON_ONLY | CONTENTS and not name.startswith("_")
        # of RNN and GRU, which take it to say that they lack it
        if name != "proj_size" or p.default is not None
    ]


def value(text: str | None) -> object:
    """A default written in C++ as Python's value."""
    known = {None: "required", "": "required", "true": True, "false": False}
    known |= {"{}": None, "std::nullopt": None, "nullptr": None}
    known |= {f"Reduction::{name.capitalize()}": name for name in ("none", "mean", "sum")}
    if text in known:
        return known[text]
    if text == "1.0 / 3":
        return 1.0 / 3
    if text.startswith("{"):
        return tuple(value(item) for item in cpp_headers.split_top(text[1:-1]))
    if text.startswith('"'):
        return text.strip('"')
    dividend, _, divisor = text.partition(" / ")
    return float(dividend) / float(divisor or 1)


def same(given: list[cpp_headers.Parameter], function: object) -> None:
    ours = [(p.name, value(p.default)) for p in given]
    theirs = python_options(function)
    assert [name for name, _ in ours] == [name for name, _ in theirs]
    for (name, default), (_, wanted) in zip(ours, theirs, strict=True):
        empty = default is None and wanted == ()  # {} is no tensor or no elements
        named = callable(wanted) and default == wanted.__name__  # "relu" is that function
        assert empty or named or default == wanted, name


@pytest.mark.parametrize("name", sorted(LAYERS))
def test_layer(name: str) -> None:
    if name == "Identity":  # Python's takes anything and ignores it
        assert LAYERS[name] == []
        return
    same(LAYERS[name], getattr(nn, name).__init__)


@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
def test_optimizer(name: str) -> None:
    function = getattr(torch.optim, name).__init__
    without = ADAM_ONLY if name == "Adam" else set()
    # C++ has settings in one order; Python's keyword-only ones come after the others.
    wanted = [option for option in python_options(function) if option[0] not in without]
    assert [(p.name, value(p.default)) for p in OPTIMIZERS[name]] == wanted


@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_schedule(name: str) -> None:
    ours = [(p.name, value(p.default)) for p in SCHEDULES[name]]
    assert ours == python_options(getattr(torch.optim.lr_scheduler, name).__init__)


@pytest.mark.parametrize("name", sorted(INITIALIZERS))
def test_initializer(name: str) -> None:
    function = getattr(nn.init, name)
    ours = [(p.name, value(p.default)) for p in INITIALIZERS[name]]
    theirs = python_options(function)
    if name == "calculate_gain":  # None stands for 0.01 in Python
        theirs[1] = ("param", 0.01)
    assert ours == theirs


@pytest.mark.parametrize("name", sorted(UTILITIES))
def test_utility(name: str) -> None:
    function = getattr(nn.utils, name, None) or getattr(nn.utils.rnn, name)
    ours = [(p.name, value(p.default)) for p in UTILITIES[name]]
    theirs = [
        (p.name, "required" if p.default is inspect.Parameter.empty else p.default)
        for p in inspect.signature(function).parameters.values()
        if p.name != "foreach"
    ]
    assert ours == theirs


def test_the_headers_were_read() -> None:
    assert {"Linear", "Embedding", "LayerNorm", "RMSNorm", "Dropout", "GELU"} <= set(LAYERS)
    assert {"Sequential", "ModuleList", "ModuleDict", "CrossEntropyLoss"} <= set(LAYERS)
    # Gradients are dense in C++.
    assert set(OPTIMIZERS) == set(torch.optim.__all__) - {
        "Optimizer",
        "SparseAdam",
        "swap_in_optimizer_params_and_state",
    }
    assert set(SCHEDULES) == set(torch.optim.lr_scheduler.__all__) - {"LRScheduler"}
    assert {"normal_", "kaiming_uniform_", "trunc_normal_"} <= set(INITIALIZERS)
    assert {"clip_grad_norm_", "vector_to_parameters", "pad_packed_sequence"} <= set(UTILITIES)


def methods_of(text: str, class_name: str) -> set[str]:
    body = re.search(rf"^class RUSHLIGHT_API {class_name} .*?^}};", text, re.M | re.S)[0]
    return set(re.findall(r"\b([a-z]\w+)\(", body.split(" private:")[0]))


def test_module_protocol() -> None:
    text = (cpp_headers.SOURCE / "nn" / "module.h").read_text()
    ours = methods_of(text, "Module")
    wanted = {"parameters", "named_parameters", "buffers", "named_buffers", "children", "modules"}
    wanted |= {"named_children", "named_modules", "state_dict", "load_state_dict", "train", "eval"}
    wanted |= {"register_parameter", "register_buffer", "register_module", "get_submodule"}
    wanted |= {"get_parameter", "get_buffer", "zero_grad", "requires_grad_", "to", "apply"}
    wanted |= {"extra_repr"}
    assert wanted <= ours
    assert wanted <= set(dir(nn.Module))
