"""Replicas of a module on several devices, whose gradients reach the module."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from rushlight import Tensor
from rushlight.nn.modules.module import Module
from rushlight.nn.parallel.scatter_gather import _device

__all__ = ["replicate"]


def replicate(network: Module, devices: Sequence[Any], detach: bool = False) -> list[Module]:
    """A copy of the module for each device, with copies of its parameters there: gradients pass
    through them to the module's own, unless detach.
    """
    return [_replica(network, _device(device), detach) for device in devices]


def _replica(network: Module, device: Any, detach: bool) -> Module:
    moved: dict[int, Tensor] = {}
    made: dict[int, Module] = {}

    def move(tensor: Tensor | None, tracked: bool) -> Tensor | None:
        if tensor is None:
            return None
        if id(tensor) not in moved:
            source = tensor if tracked and not detach else tensor.detach()
            copied = source.to(device)
            moved[id(tensor)] = copied.view_as(copied) if copied is tensor else copied
        return moved[id(tensor)]

    def build(module: Module) -> Module:
        if id(module) not in made:
            replica = copy.copy(module)
            made[id(module)] = replica
            replica.__dict__ = dict(module.__dict__)
            replica._modules = {name: child and build(child) for name, child in _children(module)}
            replica._buffers = {n: move(b, False) for n, b in module._buffers.items()}
            replica._parameters = {n: move(p, True) for n, p in module._parameters.items()}
        return made[id(module)]

    return build(network)


def _children(module: Module) -> list:
    return list(module._modules.items())
