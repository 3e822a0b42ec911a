"""Classes say that they are of the modules that programs, and files, know them from."""

import importlib

import pytest
import rushlight as torch

MODULES = (
    "rushlight.distributions",
    "rushlight.distributions.transforms",
    "rushlight.nn",
    "rushlight.nn.attention.flex_attention",
    "rushlight.optim",
    "rushlight.optim.lr_scheduler",
    "rushlight.optim.swa_utils",
    "rushlight.utils.checkpoint",
)


def classes() -> list[type]:
    found = {}
    for name in MODULES:
        module = importlib.import_module(name)
        for public in getattr(module, "__all__", None) or dir(module):
            value = getattr(module, public)
            if isinstance(value, type) and value.__module__.startswith("rushlight."):
                found[value] = None
    return list(found)


@pytest.mark.parametrize("kind", classes(), ids=lambda kind: kind.__qualname__)
def test_a_class_is_where_it_says(kind: type) -> None:
    module = importlib.import_module(kind.__module__)
    assert getattr(module, kind.__qualname__) is kind
    assert not any(part.startswith("_") for part in kind.__module__.split("."))


def test_text_of_a_schedule():
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)
    text = repr(torch.optim.lr_scheduler.StepLR(optimizer, 1))
    assert text.startswith("<rushlight.optim.lr_scheduler.StepLR object at ")


def test_top_level_classes():
    for kind in (torch.Event, torch.Stream, torch.SymInt, torch.finfo, torch.iinfo):
        assert kind.__module__ == "rushlight"


def test_gradients_of_convolutions_under_functional():
    assert torch.nn.functional.grad is importlib.import_module("rushlight.nn.grad")


@pytest.mark.parametrize("name", ["split", "norm", "unique", "nonzero", "share_memory_", "new"])
def test_methods_written_in_python_say_their_names(name: str) -> None:
    assert getattr(torch.Tensor, name).__name__ == name
