"""DataParallel: a module's inputs split over devices, its results joined.

Where there is no accelerator, the module itself runs, as in PyTorch without one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight as torch
from rushlight.nn.modules.module import Module
from rushlight.nn.parallel.parallel_apply import parallel_apply
from rushlight.nn.parallel.replicate import replicate
from rushlight.nn.parallel.scatter_gather import gather, scatter_kwargs

__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """Runs a module on parts of its inputs, one a device, and joins what the parts give."""

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
    ) -> None:
        super().__init__()
        if not torch.accelerator.is_available():
            self.module = module
            self.device_ids: list = []
            return
        if device_ids is None:
            device_ids = list(range(torch.accelerator.device_count()))
        self.dim = dim
        self.module = module
        self.device_ids = list(device_ids)
        self.output_device = self.device_ids[0] if output_device is None else output_device

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """The module's results for the whole input."""
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        parts, keywords = self.scatter(inputs, kwargs, self.device_ids)
        if len(self.device_ids) == 1:
            return self.module(*parts[0], **keywords[0])
        replicas = self.replicate(self.module, self.device_ids[: len(parts)])
        return self.gather(self.parallel_apply(replicas, parts, keywords), self.output_device)

    def replicate(self, module: Module, device_ids: Sequence[Any]) -> list[Module]:
        """A replica of the module for each device."""
        return replicate(module, device_ids, not torch.is_grad_enabled())

    def scatter(self, inputs: tuple, kwargs: dict | None, device_ids: Sequence[Any]) -> Any:
        """The inputs in parts, one a device."""
        return scatter_kwargs(inputs, kwargs, device_ids, dim=self.dim)

    def parallel_apply(self, replicas: Sequence[Module], inputs: Sequence, kwargs: Any) -> list:
        """What each replica gives for its part."""
        return parallel_apply(replicas, inputs, kwargs, self.device_ids[: len(replicas)])

    def gather(self, outputs: Any, output_device: Any) -> Any:
        """The parts' results on one device, joined."""
        return gather(outputs, output_device, dim=self.dim)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[Any] | None = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: Any | None = None,
) -> Any:
    """Runs a module on parts of its inputs, one a device, and joins what the parts give."""
    if not isinstance(inputs, tuple):
        inputs = (inputs,) if inputs is not None else ()
    runner = DataParallel(module, device_ids, output_device, dim)
    return runner(*inputs, **(module_kwargs or {}))
