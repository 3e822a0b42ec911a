"""How masked tensors are made."""

from __future__ import annotations

from rushlight import Tensor
from rushlight.masked.maskedtensor.core import MaskedTensor

__all__ = ["as_masked_tensor", "masked_tensor"]


def masked_tensor(data: Tensor, mask: Tensor, requires_grad: bool = False) -> MaskedTensor:
    """A leaf of data and mask, tensors of the same shape; True: the element is there."""
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Tensor, mask: Tensor) -> MaskedTensor:
    """data and mask within the graph of data."""
    return MaskedTensor._from_values(data, mask)
