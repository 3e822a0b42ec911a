"""Trees of tensors in parts, one a device, and joined again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight as torch
from rushlight import Tensor
from rushlight.utils._pytree import is_namedtuple_instance

__all__ = ["gather", "scatter", "scatter_kwargs"]


def _device(target: Any) -> torch.device:
    if isinstance(target, int):
        return torch.device(torch.accelerator.current_accelerator().type, target)
    return torch.device(target)


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """A tree for each device, with that device's part of every tensor; what is no tensor is the
    same in all.
    """
    devices = [_device(target) for target in target_gpus]

    def cut(value: Any) -> list:
        if isinstance(value, Tensor):
            parts = value.chunk(len(devices), dim)
            return [part.to(device) for part, device in zip(parts, devices, strict=False)]
        if is_namedtuple_instance(value):
            return [type(value)(*items) for items in zip(*map(cut, value), strict=False)]
        if isinstance(value, tuple) and value:
            return list(zip(*map(cut, value), strict=False))
        if isinstance(value, list) and value:
            return [list(items) for items in zip(*map(cut, value), strict=False)]
        if isinstance(value, dict) and value:
            columns = zip(*map(cut, value.items()), strict=False)
            return [type(value)(items) for items in columns]
        return [value for _ in devices]

    return cut(inputs)


def scatter_kwargs(
    inputs: tuple, kwargs: dict | None, target_gpus: Sequence[Any], dim: int = 0
) -> tuple[tuple, tuple]:
    """scatter of the arguments of a call: as many positional ones as keyword ones."""
    parts = scatter(inputs, target_gpus, dim) if inputs else []
    keywords = scatter(kwargs, target_gpus, dim) if kwargs else []
    count = max(len(parts), len(keywords))
    parts = list(parts) + [()] * (count - len(parts))
    keywords = list(keywords) + [{} for _ in range(count - len(keywords))]
    return tuple(parts), tuple(keywords)


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """The trees of several devices on one, tensors joined along a dimension; numbers in tensors
    become one tensor of them.
    """
    device = _device(target_device)

    def join(values: Sequence) -> Any:
        first = values[0]
        if isinstance(first, Tensor):
            if all(value.dim() == 0 for value in values) and dim == 0:
                return torch.stack([value.to(device) for value in values])
            return torch.cat([value.to(device) for value in values], dim)
        if first is None:
            return None
        if isinstance(first, dict):
            if any(len(value) != len(first) for value in values):
                raise ValueError("All dicts must have the same number of keys")
            return type(first)((key, join([value[key] for value in values])) for key in first)
        if is_namedtuple_instance(first):
            return type(first)(*map(join, zip(*values, strict=True)))
        return type(first)(map(join, zip(*values, strict=True)))

    return join(outputs)
