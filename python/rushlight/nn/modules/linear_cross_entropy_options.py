"""How the linear cross entropy may split its work."""

from __future__ import annotations

import dataclasses
from typing import Literal

import rushlight as torch

__all__ = ["LinearCrossEntropyOptions"]

_METHODS = ("auto", "aspect_ratio")
_POLICIES = ("accurate", "balanced", "compact", "auto")


def _is_method(text: str) -> bool:
    name, colon, factor = text.partition(":")
    if colon:
        return name == "aspect_ratio" and factor.isdecimal() and int(factor) >= 1
    return name in _METHODS


@dataclasses.dataclass(frozen=True, slots=True)
class LinearCrossEntropyOptions:
    """Hints for a loss that never holds all logits; they change neither values nor gradients.

    Chunks are chosen to fit the caches, sums are kept in f32 or wider, and a graph may always be
    walked again: all of it whatever is asked for here. ValueError for what is not an option.
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: Literal["accurate", "balanced", "compact", "auto"] = "auto"
    acc_dtype: torch.dtype | None = None

    def __post_init__(self) -> None:
        size, method = self.batch_chunk_size, self.chunking_method
        if size is not None and (not isinstance(size, int) or size <= 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size!r}")
        if method is not None and not _is_method(method):
            raise ValueError(f"invalid chunking_method: {method!r}")
        if self.acc_policy not in _POLICIES:
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        dtypes = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
        if self.acc_dtype is not None and self.acc_dtype not in dtypes:
            names = ", ".join(map(str, dtypes))
            raise ValueError(
                f"acc_dtype must be one of {{None, {names}}}, got {self.acc_dtype!r}. "
                "Pass acc_dtype=None to let the op pick automatically."
            )
