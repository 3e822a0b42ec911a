"""Attention whose scores pass through functions of the caller's: fused, sparse, differentiable."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypedDict

import rushlight as torch
from rushlight import Tensor
from rushlight._public import publish

from ._block_mask import (
    _DEFAULT_SPARSE_BLOCK_SIZE,
    _LARGE_SPARSE_BLOCK_SIZE,  # noqa: F401 (others import it)
    BlockMask,
    _ordered,
    _pair,
    noop_mask,
    write_order,
)
from ._trace import fail_in, is_mask, trace_mask, trace_score

__all__ = [
    "BlockMask",
    "flex_attention",
    "AuxOutput",
    "AuxRequest",
    "FlexKernelOptions",
    "create_block_mask",
    "create_mask",
    "or_masks",
    "and_masks",
    "noop_mask",
]

_score_mod_signature = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
_mask_mod_signature = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]

# Others' code sets it; here functions may print while they are traced in any case.
_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = False


class AuxRequest(NamedTuple):
    """What flex_attention is to return besides its output."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """The logsumexp and the largest score of each query, (B, Hq, L), where asked for."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


class FlexKernelOptions(TypedDict, total=False):
    """Hints for PyTorch's kernels: accepted, and of no effect on the ones here."""

    BACKEND: Literal["AUTO", "TRITON", "FLASH", "TRITON_DECODE"]
    num_warps: int
    num_stages: int
    BLOCK_M: int
    BLOCK_N: int
    BLOCK_M1: int
    BLOCK_N1: int
    BLOCK_M2: int
    BLOCK_N2: int
    PRESCALE_QK: bool
    ROWS_GUARANTEED_SAFE: bool
    BLOCKS_ARE_CONTIGUOUS: bool
    WRITE_DQ: bool
    FORCE_USE_FLEX_ATTENTION: bool
    USE_TMA: bool
    kpack: int
    matrix_instr_nonkdim: int
    waves_per_eu: int


_BACKENDS = ("AUTO", "TRITON", "FLASH", "TRITON_DECODE")


def _check_kernel_options(options: object) -> None:
    """They choose nothing here, but what PyTorch refuses is a mistake."""
    given = dict(options)  # type: ignore[call-overload]
    for name in ("OUTPUT_LOGSUMEXP", "OUTPUT_MAX"):
        if name in given:
            raise AssertionError(f"{name} must not be in kernel_options")
    if given.get("BACKEND", "AUTO") not in _BACKENDS:
        raise ValueError(f"Invalid BACKEND value '{given['BACKEND']}'. Must be one of {_BACKENDS}")
    if "BACKEND" in given and "FORCE_USE_FLEX_ATTENTION" in given:
        raise RuntimeError(
            "BACKEND cannot be combined with legacy FORCE_USE_FLEX_ATTENTION. BACKEND supersedes "
            "the legacy knob; please drop FORCE_USE_FLEX_ATTENTION and only specify the desired "
            "BACKEND."
        )


def _identity(score: Tensor, batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor):
    """The score function that changes nothing."""
    return score


def _check_masks(mask_mods: tuple) -> None:
    if not all(callable(mod) for mod in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")


def and_masks(*mask_mods: _mask_mod_signature) -> _mask_mod_signature:
    """The mask of what all of these let take part."""
    _check_masks(mask_mods)

    def and_mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        start = b.new_ones((), dtype=torch.bool)
        return functools.reduce(lambda x, mod: x & mod(b, h, q_idx, kv_idx), mask_mods, start)

    return and_mask


def or_masks(*mask_mods: _mask_mod_signature) -> _mask_mod_signature:
    """The mask of what any of these lets take part."""
    _check_masks(mask_mods)

    def or_mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        start = b.new_zeros((), dtype=torch.bool)
        return functools.reduce(lambda x, mod: x | mod(b, h, q_idx, kv_idx), mask_mods, start)

    return or_mask


def _require_cpu(device: Any, name: str) -> None:
    if device is not None and torch.device(device).type != "cpu":
        raise RuntimeError(f"{name}: there is no device {device}, masks are built on the cpu")


def create_mask(
    mod_fn: _score_mod_signature | _mask_mod_signature,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
) -> Tensor:
    """The dense mask (B, H, Q_LEN, KV_LEN) of a function; of scores: where it is not -inf."""
    _require_cpu(device, "create_mask")
    masks = is_mask(mod_fn)
    traced = trace_mask(mod_fn) if masks else trace_score(mod_fn, torch.float32)
    sizes = (B or 1, H or 1, Q_LEN, KV_LEN)
    dtype = torch.bool if masks else torch.float32
    try:
        values = torch._C._nn._flex_values(traced.text, traced.captures, *sizes, dtype)
    except IndexError as error:
        fail_in("mask_mod" if masks else "score_mod", mod_fn, error)
    return values if masks else ~values.isneginf()


def create_block_mask(
    mask_mod: _mask_mod_signature,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
    separate_full_blocks: bool = True,
    compute_dq_write_order: bool = False,
    dq_kv_order: bool = True,
) -> BlockMask:
    """The blocks of scores (B, H, Q_LEN, KV_LEN) that a mask lets take part.

    None for B or H: the mask is the same for all. Blocks are judged by bounds of the mask over
    them, and element by element only where those leave it open; the dense mask is never made.
    """
    if not callable(mask_mod) or not is_mask(mask_mod):
        raise AssertionError(
            f"create-block_mask requires a mask_mod function! Got {mask_mod} as a score_mod"
        )
    _require_cpu(device, "create_block_mask")
    size = _pair(BLOCK_SIZE)
    if min(size) <= 0 or Q_LEN <= 0 or KV_LEN <= 0:
        raise ValueError(
            f"create_block_mask needs positive lengths and block sizes, got Q_LEN={Q_LEN}, "
            f"KV_LEN={KV_LEN}, BLOCK_SIZE={BLOCK_SIZE}"
        )
    traced = trace_mask(mask_mod)
    sizes = (B or 1, H or 1, Q_LEN, KV_LEN, *size)
    try:
        states = torch._C._nn._flex_block_states(traced.text, traced.captures, *sizes)
    except IndexError as error:
        fail_in("mask_mod", mask_mod, error)
    partial = states == 1 if separate_full_blocks else states != 0
    lists = _ordered(partial)
    if separate_full_blocks:
        lists += _ordered(states == 2)
    mask = BlockMask.from_kv_blocks(
        *lists,
        BLOCK_SIZE=size,
        mask_mod=mask_mod,
        seq_lengths=(Q_LEN, KV_LEN),
    )
    if compute_dq_write_order:
        dense = (states != 0).to(torch.int32)
        mask.dq_write_order = write_order(dense, mask.q_indices, dq_kv_order)
        if separate_full_blocks:
            mask.dq_write_order_full = write_order(dense, mask.full_q_indices, dq_kv_order)
        mask.dq_kv_order_spt = dq_kv_order
    return mask


# ---- the call -----------------------------------------------------------------------------------


def _check_operands(query: Tensor, key: Tensor, value: Tensor, enable_gqa: bool) -> None:
    if query.dim() != 4 or key.dim() != 4 or value.dim() != 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    if not (query.dtype == key.dtype == value.dtype):
        raise ValueError(
            "Expected query, key, and value to have the same dtype, but got query.dtype: "
            f"{query.dtype}, key.dtype: {key.dtype}, and value.dtype: {value.dtype} instead."
        )
    kinds = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
    if query.dtype not in kinds:
        raise ValueError(f"flex_attention takes floating-point tensors, got dtype {query.dtype}")
    if query.size(-1) != key.size(-1):
        raise ValueError(
            "Expect query and key/value to have the same embedding dimension "
            f"but got E={query.size(-1)} and E={key.size(-1)}."
        )
    if key.shape[:3] != value.shape[:3]:
        raise ValueError(
            "Expect key and value to have the same batch, heads and length, "
            f"but got {tuple(key.shape[:3])} and {tuple(value.shape[:3])}."
        )
    heads, kv_heads = query.size(1), key.size(1)
    if heads != kv_heads and not enable_gqa:
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got Hq={heads} and "
            f"Hkv={kv_heads}. Try setting enable_gqa=True for GQA."
        )
    if kv_heads == 0 or heads % kv_heads != 0:
        raise ValueError(
            "Expect number of query heads to be a multiple of kv heads for GQA "
            f"but got Hq={heads} and Hkv={kv_heads}."
        )


def _check_block_mask(query: Tensor, key: Tensor, block_mask: BlockMask | None) -> None:
    batch, kv_batch = query.size(0), key.size(0)
    if batch != kv_batch and (block_mask is None or block_mask.shape[0] != batch or kv_batch != 1):
        raise ValueError(
            "Expect query and key/value to have the same batch size, or non-none block_mask, "
            f"but got block_mask={block_mask}, Bq={batch}, and Bkv={kv_batch}."
        )
    if block_mask is None:
        return
    if not isinstance(block_mask, BlockMask):
        raise TypeError(
            "flex_attention: block_mask must be a BlockMask or None, got "
            f"{type(block_mask).__name__}: build one by create_block_mask"
        )
    if block_mask.kv_num_blocks.device != query.device:
        raise RuntimeError(
            f"Expect q/k/v and block_mask to be on the same device but got {query.device} and "
            f"{block_mask.kv_num_blocks.device}."
        )
    q_len, kv_len = query.size(-2), key.size(-2)
    made_for = block_mask.seq_lengths
    start = (
        f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={q_len} "
        f"and kv_len={kv_len}. "
    )
    if q_len > made_for[0] or kv_len > made_for[1]:
        raise ValueError(
            start + "As the block mask was created for a smaller length than you're using it for, "
            "you likely need to create a new block mask."
        )
    if q_len < made_for[0] or kv_len < made_for[1]:
        raise ValueError(
            start + "As the block mask was created for a larger length than you're using it for, "
            "you can either 1. create a new block mask with the correct length, or 2. 'adjust' the "
            "existing block mask to the correct length by calling block_mask._adjust(q_len, kv_len)"
            ". This essentially 'crops' the block mask to the upper left corner, which does not "
            "work for all mask_mods!"
        )
    sizes, wanted = block_mask.shape[:-2], (batch, query.size(1))
    if any(own not in (1, size) for own, size in zip(sizes[::-1], wanted[::-1])):
        raise ValueError(
            f"block_mask was created for batch and heads {tuple(sizes)}, which cannot be broadcast "
            f"to those of the query, {wanted}"
        )


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: _score_mod_signature | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: FlexKernelOptions | None = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Tensor | tuple[Tensor, Tensor] | tuple[Tensor, AuxOutput]:
    """Attention of query (B, Hq, L, E), key (B, Hkv, S, E) and value (B, Hkv, S, Ev).

    Scores, scaled by `scale` (1/sqrt(E)), become score_mod(score, b, h, q_idx, kv_idx); those that
    `block_mask` hides take no part. The functions are traced and compiled; tensors that score_mod
    captures get gradients. No matrix of scores is held, forward or backward, and the same input
    gives the same bits. With return_aux, also the logsumexp and the largest score of each query.
    """
    _check_operands(query, key, value, enable_gqa)
    _check_block_mask(query, key, block_mask)
    if return_lse and return_aux is not None:
        raise ValueError(
            "Cannot specify both return_lse and return_aux. return_lse is deprecated, please use "
            "return_aux=AuxRequest(lse=True) instead."
        )
    if kernel_options is not None:
        _check_kernel_options(kernel_options)
    score, mask, captures, states, sizes = "", "", [], None, (1, 1)
    if score_mod is not None and score_mod is not _identity:
        dtype = torch.float64 if query.dtype == torch.float64 else torch.float32
        traced = trace_score(score_mod, dtype)
        score, captures = traced.text, list(traced.captures)
    if block_mask is not None:
        traced = trace_mask(block_mask.mask_mod, len(captures))
        mask, captures = traced.text, captures + traced.captures
        states, sizes = block_mask._states(), block_mask.BLOCK_SIZE
    if scale is None:
        scale = 1 / math.sqrt(query.size(-1)) if query.size(-1) else 1.0
    try:
        out, lse, largest = torch._C._nn._flex_attention(
            query, key, value, score, mask, captures, states, *sizes, scale
        )
    except IndexError as error:
        if str(error).startswith("mask_mod"):
            fail_in("mask_mod", block_mask.mask_mod, error)
        fail_in("score_mod", score_mod, error)
    if return_lse:
        return out, lse
    if return_aux is not None:
        return out, AuxOutput(
            lse if return_aux.lse else None, largest.detach() if return_aux.max_scores else None
        )
    return out


publish(__name__, BlockMask)
