"""Questions about tensors that programs ask of PyTorch's reference operators."""

from __future__ import annotations

from rushlight import Tensor


def is_contiguous_or_false(a: Tensor) -> bool:
    """Whether a tensor is contiguous."""
    return a.is_contiguous()
