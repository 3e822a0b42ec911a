"""Look-ups in tables of vectors."""

from __future__ import annotations

import rushlight as torch
from rushlight import Tensor

_MODES = {"sum": 0, "mean": 1, "max": 2}


def _renormalize(weight: Tensor, input: Tensor, max_norm: float, norm_type: float) -> None:
    """Scales down, in place and outside the graph, the used rows that are longer than
    `max_norm`.
    """
    with torch.no_grad():
        torch.embedding_renorm_(weight.detach(), input.contiguous(), max_norm, norm_type)


def _padding_index(padding_idx: int | None, rows: int, name: str) -> int | None:
    if padding_idx is None:
        return None
    if padding_idx >= rows or padding_idx < -rows:
        raise AssertionError(f"{name} must be within num_embeddings")
    return padding_idx + rows if padding_idx < 0 else padding_idx


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of `weight` (V, D) at the indices `input`; the row `padding_idx` gets no gradient.

    With `max_norm`, rows that are longer are scaled down in `weight` first.
    """
    if not isinstance(weight, Tensor):
        raise TypeError(
            "embedding(): argument 'weight' (position 1) must be Tensor, not "
            f"{type(weight).__name__}"
        )
    if weight.dim() != 2:
        raise RuntimeError(f"embedding: 'weight' must be 2-D, got {weight.dim()}-D")
    if padding_idx is None:
        padding_idx = -1
    else:
        padding_idx = _padding_index(padding_idx, weight.size(0), "Padding_idx")
    if max_norm is not None:
        input = input.contiguous()
        _renormalize(weight, input, max_norm, norm_type)
    return torch.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Sums, means or maxima of bags of rows: `input` (B, N), or (N) with the `offsets` of the
    bags.
    """
    if input.dtype in (torch.float32, torch.float64) and weight.dtype in (torch.int64, torch.int32):
        import warnings

        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage "
            "`embedding_bag(weight, input, ...)` is deprecated, and should now be "
            "`embedding_bag(input, weight, ...)`.",
            stacklevel=2,
        )
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then "
            "it "
            f"must have the same shape as the input ({input.shape})"
        )
    if not weight.dim() == 2:
        raise ValueError(
            f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}"
        )
    input, offsets, per_sample_weights = _as_bags(input, offsets, per_sample_weights)
    if mode not in _MODES:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max":
        if scale_grad_by_freq:
            raise ValueError("max mode does not support scaling the gradient by the frequency")
        if sparse:
            raise ValueError("max mode does not support sparse weights")
    padding_idx = _padding_index(padding_idx, weight.size(0), "padding_idx")
    if max_norm is not None:
        _renormalize(weight, input, max_norm, norm_type)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported "
            "for "
            f"mode='sum' (got mode='{mode}'). Please open a feature request on GitHub."
        )
    return torch.embedding_bag(
        weight,
        input,
        offsets,
        scale_grad_by_freq,
        _MODES[mode],
        sparse,
        per_sample_weights,
        include_last_offset,
        padding_idx,
    )[0]


def _as_bags(input: Tensor, offsets: Tensor | None, weights: Tensor | None) -> tuple:
    """A list of indices with the offsets of its bags, for both forms of input."""
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch "
                "of "
                f"fixed length sequences. However, found offsets of type {type(offsets)}"
            )
        offsets = torch.arange(
            0, input.numel(), input.size(1), dtype=input.dtype, device=input.device
        )
        weights = None if weights is None else weights.reshape(-1)
        return input.reshape(-1), offsets, weights
    if input.dim() != 1:
        raise ValueError(
            f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}"
        )
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if offsets.dim() != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    return input, offsets, weights
