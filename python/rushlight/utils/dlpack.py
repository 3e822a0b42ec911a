"""Tensors to and from DLPack capsules."""

from __future__ import annotations

from rushlight._C import Tensor
from rushlight._data import DLDeviceType, from_dlpack

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]


def to_dlpack(tensor: Tensor) -> object:
    """A DLPack capsule over the tensor's memory; it can be taken once."""
    return tensor.__dlpack__()
