"""What is done with exported programs as a whole."""

from __future__ import annotations

from typing import Any

import rushlight as torch
from rushlight import Tensor
from rushlight._subclasses.fake_tensor import FakeTensor
from rushlight.export.exported_program import ExportedProgram
from rushlight.utils._pytree import tree_map_only

__all__ = ["move_to_device_pass"]


def move_to_device_pass(
    ep: ExportedProgram, location: torch.device | str | dict[str, str]
) -> ExportedProgram:
    """The program with its state, constants and calls of factories on another device.

    location: the device, or a device for each of some devices. The program itself changes.
    """

    def target(device: torch.device) -> torch.device:
        if not isinstance(location, dict):
            return torch.device(location)
        return torch.device(location.get(str(device), device))

    def moved(tensor: Tensor) -> Tensor:
        made = tensor.to(target(tensor.device))
        return torch.nn.Parameter(made, tensor.requires_grad) if _is_parameter(tensor) else made

    for state in (ep._state, ep._constants):
        state.update({name: moved(tensor) for name, tensor in state.items()})
    for node in ep.graph.nodes:
        if "device" in node.kwargs:
            kwargs = dict(node.kwargs)
            kwargs["device"] = target(torch.device(kwargs["device"] or "cpu"))
            node.kwargs = kwargs
        value = node.meta.get("val")
        if isinstance(value, FakeTensor):
            node.meta["val"] = FakeTensor(value.fake_mode, value.elem, target(value.device))
    ep._example_inputs = tree_map_only(Tensor, moved, ep._example_inputs)
    ep.graph_module.recompile()
    ep.validate()
    return ep


def _is_parameter(tensor: Any) -> bool:
    return isinstance(tensor, torch.nn.Parameter)
