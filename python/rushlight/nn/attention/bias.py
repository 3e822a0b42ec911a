"""Causal masks as tensors that attention knows: the mask is not made where it need not be."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import Tensor

__all__ = ["causal_upper_left", "causal_lower_right", "CausalVariant", "CausalBias"]


class CausalVariant(IntEnum):
    """Which corner of a rectangular causal mask its diagonal starts from."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """A causal mask (seq_len_q, seq_len_kv) for `attn_mask`; it can be used for nothing else."""

    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> CausalBias:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        shown = torch.zeros(1, dtype=torch.bool).expand(1, seq_len_q, seq_len_kv)
        return shown.as_subclass(cls)

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        self.variant = variant
        self.seq_len_q = seq_len_q
        self.seq_len_kv = seq_len_kv

    def _materialize(self, device: Any = None) -> Tensor:
        """The mask as a bool tensor, true where a key takes part."""
        ones = torch.ones(self.seq_len_q, self.seq_len_kv, dtype=torch.bool, device=device)
        lower = self.variant == CausalVariant.LOWER_RIGHT
        return ones.tril(self.seq_len_kv - self.seq_len_q if lower else 0)

    @staticmethod
    def _dispatch(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: CausalBias,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        """scaled_dot_product_attention with this mask."""
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        square = attn_mask.seq_len_q == attn_mask.seq_len_kv
        plain = attn_mask.variant == CausalVariant.UPPER_LEFT or square
        fits = (query.size(-2), key.size(-2)) == (attn_mask.seq_len_q, attn_mask.seq_len_kv)
        mask = None if plain and fits else attn_mask._materialize(query.device)
        return F.scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=mask,
            dropout_p=dropout_p,
            is_causal=mask is None,
            scale=scale,
            enable_gqa=enable_gqa,
        )

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = {} if kwargs is None else kwargs
        if getattr(func, "__name__", "") == "scaled_dot_product_attention":
            return cls._dispatch(*args, **kwargs)
        return super().__torch_function__(func, types, args, kwargs)

    def __repr__(self) -> str:
        return repr(self._materialize())

    __str__ = __repr__


def causal_upper_left(*size: int) -> CausalBias:
    """The causal mask whose diagonal starts in the upper left corner: query i sees keys 0..i."""
    if len(size) != 2:
        raise AssertionError("causal_upper_left only supports 2D tensors")
    return CausalBias(CausalVariant.UPPER_LEFT, *size)


def causal_lower_right(*size: int) -> CausalBias:
    """The causal mask whose diagonal ends in the lower right corner: the last query sees all."""
    if len(size) != 2:
        raise AssertionError("causal_lower_right only supports 2D tensors")
    return CausalBias(CausalVariant.LOWER_RIGHT, *size)
