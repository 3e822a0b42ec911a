"""Which modules are running: by their names, forward and backward."""

from __future__ import annotations

import warnings
import weakref
from typing import Any

import rushlight as torch
from rushlight import Tensor
from rushlight.nn.modules.module import (
    Module,
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from rushlight.utils._pytree import tree_leaves

__all__ = ["ModuleTracker"]


def _differentiable(values: Any) -> list[Tensor]:
    return [v for v in tree_leaves(values) if isinstance(v, Tensor) and v.requires_grad]


class ModuleTracker:
    """A block in which `parents` has the names of the modules that run, and "Global".

    A module is called by its class where it is called first, and those in it by its name and
    their attributes: `Net`, `Net.layers.0`. `is_bw` tells whether it is their backward that runs;
    modules whose arguments need no gradient leave the names only when the next forward begins.
    """

    parents: set[str]

    def __init__(self) -> None:
        self.parents = {"Global"}
        self._names: weakref.WeakKeyDictionary[Module, str] = weakref.WeakKeyDictionary()
        self._named: weakref.WeakSet[Module] = weakref.WeakSet()
        self._handles: list = []

    @property
    def is_bw(self) -> bool:
        """Whether backward is running."""
        return torch._C._current_autograd_node() is not None

    def __enter__(self) -> ModuleTracker:
        self._handles = [
            register_module_forward_pre_hook(self._before),
            register_module_forward_hook(self._after, always_call=True),
        ]
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()

    def _name(self, module: Module) -> str:
        if module not in self._named:
            name = self._names.setdefault(module, type(module).__name__)
            self._named.add(module)
            for attribute, child in module.named_children():
                self._names[child] = f"{name}.{attribute}"
                self._name(child)
        return self._names[module]

    def _enter(self, name: str, backward: bool) -> None:
        if name in self.parents:
            what = "backward" if backward else "forward"
            warnings.warn(f"The module {name} is entered again in its own {what}", stacklevel=3)
        self.parents.add(name)

    def _before(self, module: Module, args: Any) -> None:
        name = self._name(module)
        self._enter(name, backward=False)
        given = _differentiable(args)
        if given and torch.is_grad_enabled():
            torch.autograd.graph.register_multi_grad_hook(
                given, lambda _: self.parents.discard(name)
            )

    def _after(self, module: Module, args: Any, output: Any) -> None:
        name = self._name(module)
        self.parents.discard(name)
        made = _differentiable(output)
        if made and torch.is_grad_enabled():
            torch.autograd.graph.register_multi_grad_hook(
                made, lambda _: self._enter(name, backward=True)
            )
