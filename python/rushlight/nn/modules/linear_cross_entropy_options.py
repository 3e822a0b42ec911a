"""How the linear cross entropy may split its work."""

from __future__ import annotations

import dataclasses
import math
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

    def _rows(self, rows: int, features: int, classes: int) -> int | None:
        """How many rows `chunking_method` puts into a chunk; None where it says nothing."""
        if self.chunking_method in (None, "auto"):
            return None
        factor = int(self.chunking_method.partition(":")[2] or 1)
        least = math.ceil(rows / math.ceil(classes / max(features, 1))) if classes else rows
        power = 1 << max(least - 1, 0).bit_length()
        return min(power // factor, max(rows, 1))

    def _check(self, input: torch.Tensor, weight: torch.Tensor) -> None:
        """ValueError, RuntimeError: these options contradict each other, or the input's dtype."""
        size, method = self.batch_chunk_size, self.chunking_method
        rows = self._rows(input.shape[:-1].numel(), weight.size(-1), weight.size(0))
        if size is not None and rows is not None and size != rows:
            raise ValueError(
                f"batch_chunk_size (={size}) and chunking_method ({method!r}) give different chunk "
                f"sizes ({size} vs {rows}); pass only one."
            )
        halves = input.dtype in (torch.float16, torch.bfloat16)
        allowed = (None, input.dtype, torch.float32 if halves else None)
        if self.acc_dtype not in allowed:
            raise RuntimeError(
                "linear_cross_entropy supports float32 acc_dtype with float16/bfloat16 inputs, but "
                f"got {self.acc_dtype} acc_dtype and {input.dtype} inputs."
            )
