"""Parameters as one vector, and back."""

from __future__ import annotations

import rushlight as torch
from rushlight import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def _same_device(parameter: Tensor, device):
    if device is not None and parameter.device != device:
        raise TypeError(
            "Found two parameters on different devices, this is currently not supported."
        )
    return parameter.device


def parameters_to_vector(parameters) -> Tensor:
    """All parameters, flattened and joined."""
    device = None
    parts = []
    for parameter in parameters:
        device = _same_device(parameter, device)
        parts.append(parameter.view(-1))
    return torch.cat(parts)


def vector_to_parameters(vec: Tensor, parameters) -> None:
    """Lets the parameters be slices of `vec`, one after the other."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec)}")
    device = None
    start = 0
    for parameter in parameters:
        device = _same_device(parameter, device)
        count = parameter.numel()
        parameter.data = vec[start : start + count].view_as(parameter).data
        start += count
