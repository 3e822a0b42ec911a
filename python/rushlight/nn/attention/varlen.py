"""Attention within sequences of different lengths that lie one after another in one tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import rushlight as torch
from rushlight import Tensor

from .flex_attention import create_block_mask, flex_attention

__all__ = ["varlen_attn", "varlen_attn_out", "AuxRequest"]


class AuxRequest(NamedTuple):
    """What varlen_attn is to return besides its output."""

    lse: bool = False


def _check_offsets(name: str, offsets: Tensor, total: int) -> list[int]:
    if offsets.dim() != 1 or offsets.numel() < 1 or offsets.is_floating_point():
        raise ValueError(
            f"varlen_attn: {name} must hold integers, shape (N + 1,), got dtype {offsets.dtype} "
            f"and shape {tuple(offsets.shape)}"
        )
    values = offsets.tolist()
    if values[0] != 0 or values[-1] != total or any(a > b for a, b in zip(values, values[1:])):
        raise ValueError(
            f"varlen_attn: {name} must ascend from 0 to the number of tokens, {total}, got {values}"
        )
    return values


def _check_operands(query: Tensor, key: Tensor, value: Tensor, enable_gqa: bool) -> None:
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if tensor.dim() != 3:
            raise ValueError(
                f"varlen_attn: {name} must be (tokens, heads, head_dim), got shape "
                f"{tuple(tensor.shape)}"
            )
    if key.shape[:2] != value.shape[:2]:
        raise ValueError(
            "varlen_attn: key and value must have the same tokens and heads, got "
            f"{tuple(key.shape[:2])} and {tuple(value.shape[:2])}"
        )
    if query.size(1) != key.size(1) and not enable_gqa:
        raise ValueError(
            f"varlen_attn: query has {query.size(1)} heads and key {key.size(1)}: set "
            "enable_gqa=True to share them"
        )


def _sequences(offsets: list[int]) -> tuple[Tensor, Tensor]:
    """The sequence of each token, and its position there."""
    lengths = torch.tensor([b - a for a, b in zip(offsets, offsets[1:])], dtype=torch.long)
    sequence = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
    starts = torch.tensor(offsets[:-1], dtype=torch.long)
    position = torch.arange(offsets[-1]) - starts[sequence]
    return sequence.to(torch.int32), position.to(torch.int32)


def _mask_of(
    q_offsets: list[int],
    k_offsets: list[int],
    used: Tensor | None,
    window: tuple[int, int],
) -> Callable:
    """Keys of the same sequence, in the window around the place where a query's key would be.

    The last query of a sequence stands at its last key.
    """
    q_sequence, q_position = _sequences(q_offsets)
    k_sequence, k_position = _sequences(k_offsets)
    count = len(q_offsets) - 1
    q_lengths = torch.tensor([q_offsets[i + 1] - q_offsets[i] for i in range(count)])
    k_lengths = torch.tensor([k_offsets[i + 1] - k_offsets[i] for i in range(count)])
    if used is not None:
        k_lengths = torch.minimum(k_lengths, used.long())
    shift = (k_lengths - q_lengths).to(torch.int32)
    k_lengths = k_lengths.to(torch.int32)
    place = q_position + shift[q_sequence.long()]
    left, right = window

    def mask(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        own = q_sequence[q] == k_sequence[k]
        if used is not None:
            own = own & (k_position[k] < k_lengths[k_sequence[k]])
        if left >= 0:
            own = own & (k_position[k] >= place[q] - left)
        if right >= 0:
            own = own & (k_position[k] <= place[q] + right)
        return own

    return mask


def varlen_attn(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor | None,
    max_q: int,
    max_k: int,
    *,
    return_aux: AuxRequest | None = None,
    scale: float | None = None,
    window_size: tuple[int, int] = (-1, -1),
    enable_gqa: bool = False,
    seqused_k: Tensor | None = None,
    block_table: Tensor | None = None,
    num_splits: int | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """Attention of query (Tq, Hq, D) over key and value (Tk, Hkv, D), sequence by sequence.

    Sequence i has tokens cu_seq[i] to cu_seq[i + 1], of whose keys the first seqused_k[i] count. A
    query sees `window_size` = (left, right) keys beside its own place; -1 is no bound. With
    `block_table` (N, pages) int32, key and value are pools (pages, page size, Hkv, D). With
    return_aux=AuxRequest(lse=True) the logsumexp (Tq, Hq) comes too. The longest lengths and
    num_splits are hints, of no effect here.
    """
    if block_table is not None:
        if seqused_k is None:
            raise ValueError("varlen_attn: block_table needs seqused_k, how many keys are in use")
        if key.dim() != 4 or value.dim() != 4:
            raise ValueError(
                "varlen_attn: with block_table, key and value must be (pages, page size, heads, "
                f"head_dim), got shapes {tuple(key.shape)} and {tuple(value.shape)}"
            )
        length = block_table.size(1) * key.size(1)
        pages = block_table.long()
        key, value = key[pages].flatten(0, 2), value[pages].flatten(0, 2)
        cu_seq_k = torch.arange(block_table.size(0) + 1) * length
    elif cu_seq_k is None:
        raise ValueError("varlen_attn: cu_seq_k may be None only with block_table")
    _check_operands(query, key, value, enable_gqa)
    q_offsets = _check_offsets("cu_seq_q", cu_seq_q, query.size(0))
    k_offsets = _check_offsets("cu_seq_k", cu_seq_k, key.size(0))
    if len(q_offsets) != len(k_offsets):
        raise ValueError(
            f"varlen_attn: cu_seq_q tells of {len(q_offsets) - 1} sequences, cu_seq_k of "
            f"{len(k_offsets) - 1}"
        )
    if query.size(0) == 0 or key.size(0) == 0:
        out = query.new_zeros(query.size(0), query.size(1), value.size(2))
        lse = out.new_full(out.shape[:2], float("-inf"), dtype=torch.float32)
    else:
        mask = create_block_mask(
            _mask_of(q_offsets, k_offsets, seqused_k, window_size),
            None,
            None,
            query.size(0),
            key.size(0),
        )
        heads = (x.transpose(0, 1).unsqueeze(0) for x in (query, key, value))
        out, lse = flex_attention(
            *heads, block_mask=mask, scale=scale, enable_gqa=enable_gqa, return_lse=True
        )
        out, lse = out[0].transpose(0, 1), lse[0].transpose(0, 1)
    return (out, lse) if return_aux is not None and return_aux.lse else out


def varlen_attn_out(
    out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor | None,
    max_q: int,
    max_k: int,
    *,
    return_aux: AuxRequest | None = None,
    scale: float | None = None,
    window_size: tuple[int, int] = (-1, -1),
    enable_gqa: bool = False,
    seqused_k: Tensor | None = None,
    block_table: Tensor | None = None,
    num_splits: int | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """varlen_attn whose output is written to `out` (Tq, Hq, D). Not for training."""
    with torch.no_grad():
        found = varlen_attn(
            query,
            key,
            value,
            cu_seq_q,
            cu_seq_k,
            max_q,
            max_k,
            return_aux=return_aux,
            scale=scale,
            window_size=window_size,
            enable_gqa=enable_gqa,
            seqused_k=seqused_k,
            block_table=block_table,
            num_splits=num_splits,
        )
        made, *rest = found if isinstance(found, tuple) else (found,)
        if out.shape != made.shape or out.dtype != made.dtype:
            raise ValueError(
                f"varlen_attn_out: out must have shape {tuple(made.shape)} and dtype {made.dtype}, "
                f"got {tuple(out.shape)} and {out.dtype}"
            )
        out.copy_(made)
    return (out, *rest) if rest else out
