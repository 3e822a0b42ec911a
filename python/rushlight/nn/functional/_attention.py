"""Multi-head attention as one function of its weights."""

from __future__ import annotations

import math

import rushlight as torch
from rushlight import Tensor


def _in_projection_packed(
    q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Tensor | None = None
) -> list[Tensor]:
    """Query, key and value projected by the three parts of one weight (3 E, E)."""
    linear = torch._C._nn.linear
    width = q.size(-1)
    if k is v:
        if q is k:  # self-attention: one product for all three
            joint = linear(q, w, b).unflatten(-1, (3, width)).unsqueeze(0)
            joint = joint.transpose(0, -2).squeeze(-2).contiguous()
            return [joint[0], joint[1], joint[2]]
        w_q, w_kv = w.split([width, width * 2])
        b_q, b_kv = (None, None) if b is None else b.split([width, width * 2])
        joint = linear(k, w_kv, b_kv).unflatten(-1, (2, width)).unsqueeze(0)
        joint = joint.transpose(0, -2).squeeze(-2).contiguous()
        return [linear(q, w_q, b_q), joint[0], joint[1]]
    weights = w.chunk(3)
    biases = (None, None, None) if b is None else b.chunk(3)
    return [linear(x, weight, bias) for x, weight, bias in zip((q, k, v), weights, biases)]


def _in_projection(q, k, v, w_q, w_k, w_v, b_q=None, b_k=None, b_v=None) -> tuple:
    """Query, key and value projected by weights of their own."""
    width, key_width, value_width = q.size(-1), k.size(-1), v.size(-1)
    for name, weight, columns in (
        ("query", w_q, width),
        ("key", w_k, key_width),
        ("value", w_v, value_width),
    ):
        if tuple(weight.shape) != (width, columns):
            raise AssertionError(
                f"expecting {name} weights shape of {(width, columns)}, but got {weight.shape}"
            )
    linear = torch._C._nn.linear
    return linear(q, w_q, b_q), linear(k, w_k, b_k), linear(v, w_v, b_v)


def _mha_shape_check(query, key, value, key_padding_mask, attn_mask, num_heads: int) -> bool:
    """Checks the dimensions; gives whether there is a batch."""
    dims = query.dim()
    if dims not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {dims}-D query tensor"
        )
    kind = "batched (3-D)" if dims == 3 else "unbatched (2-D)"
    if key.dim() != dims or value.dim() != dims:
        raise AssertionError(
            f"For {kind} `query`, expected `key` and `value` to be {dims}-D "
            f"but found {key.dim()}-D and {value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != dims - 1:
        raise AssertionError(
            f"For {kind} `query`, expected `key_padding_mask` to be `None` or {dims - 1}-D "
            f"but found {key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None:
        if attn_mask.dim() not in (2, 3):
            raise AssertionError(
                f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D "
                f"but found {attn_mask.dim()}-D tensor instead"
            )
        if dims == 2 and attn_mask.dim() == 3:
            expected = (num_heads, query.shape[0], key.shape[0])
            if tuple(attn_mask.shape) != expected:
                raise AssertionError(
                    f"Expected `attn_mask` shape to be {expected} but got {attn_mask.shape}"
                )
    return dims == 3


def _canonical_mask(
    mask: Tensor | None,
    mask_name: str,
    other_type: torch.dtype | None,
    other_name: str,
    target_type: torch.dtype,
    check_other: bool = True,
) -> Tensor | None:
    """A mask to be added: a boolean one becomes 0 and -inf."""
    if mask is None:
        return None
    floating = torch.is_floating_point(mask)
    if mask.dtype != torch.bool and not floating:
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype != other_type:
        import warnings

        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type "
            "for both "
            "instead.",
            stacklevel=3,
        )
    if floating:
        return mask
    return torch.zeros_like(mask, dtype=target_type).masked_fill_(mask, float("-inf"))


def _none_or_dtype(input: Tensor | None) -> torch.dtype | None:
    if input is None:
        return None
    if isinstance(input, Tensor):
        return input.dtype
    raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")


def _extend(mask: Tensor | None, columns: int = 1) -> Tensor | None:
    """A mask with more columns that hide nothing."""
    if mask is None:
        return None
    return torch.cat([mask, mask.new_zeros(*mask.shape[:-1], columns)], dim=-1)


def _heads(x: Tensor, batch: int, num_heads: int, head_dim: int) -> Tensor:
    """(L, B, E) as (B heads, L, head_dim)."""
    return x.view(x.shape[0], batch * num_heads, head_dim).transpose(0, 1)


def _fixed(fixed: Tensor, name: str, batch_heads: int, head_dim: int) -> Tensor:
    if fixed.size(0) != batch_heads:
        raise AssertionError(f"expecting {name}.size(0) of {batch_heads}, but got {fixed.size(0)}")
    if fixed.size(2) != head_dim:
        raise AssertionError(f"expecting {name}.size(2) of {head_dim}, but got {fixed.size(2)}")
    return fixed


def _check_attention_mask(mask: Tensor, target: int, source: int, batch_heads: int) -> Tensor:
    """The mask as (1, L, S) or (B heads, L, S)."""
    if mask.dim() == 2:
        if tuple(mask.shape) != (target, source):
            raise RuntimeError(
                f"The shape of the 2D attn_mask is {mask.shape}, but should be {(target, source)}."
            )
        return mask.unsqueeze(0)
    if mask.dim() == 3:
        expected = (batch_heads, target, source)
        if tuple(mask.shape) != expected:
            raise RuntimeError(
                f"The shape of the 3D attn_mask is {mask.shape}, but should be {expected}."
            )
        return mask
    raise RuntimeError(f"attn_mask's dimension {mask.dim()} is not supported")


def _attend_with_weights(q, k, v, mask, dropout_p: float) -> tuple[Tensor, Tensor]:
    """(B heads, L, head_dim) values and the weights (B heads, L, S) themselves."""
    scaled = q * math.sqrt(1.0 / float(q.shape[-1]))
    if mask is not None:
        scores = torch.baddbmm(mask, scaled, k.transpose(-2, -1))
    else:
        scores = torch.bmm(scaled, k.transpose(-2, -1))
    weights = scores.softmax(-1)
    if dropout_p > 0.0:
        weights = torch.dropout(weights, dropout_p, True)
    return torch.bmm(weights, v), weights


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attention of `query` (L, B, E) over `key` and `value` (S, B, E): the result and the weights.

    Masks hide where they are True, or are added to the scores. Without a batch, (L, E) and (S, E).
    """
    batched = _mha_shape_check(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    target, batch, width = query.shape
    source = key.shape[0]

    key_padding_mask = _canonical_mask(
        key_padding_mask, "key_padding_mask", _none_or_dtype(attn_mask), "attn_mask", query.dtype
    )
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module "
            "method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None  # attention knows the causal mask itself
    else:
        attn_mask = _canonical_mask(
            attn_mask, "attn_mask", None, "", query.dtype, check_other=False
        )
        if key_padding_mask is not None:
            is_causal = False  # the two masks are joined into one

    if width != embed_dim_to_check:
        raise AssertionError(
            f"was expecting embedding dimension of {embed_dim_to_check}, but got {width}"
        )
    head_dim = width // num_heads
    if head_dim * num_heads != width:
        raise AssertionError(f"embed_dim {width} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight:
        if key.shape[:2] != value.shape[:2]:
            raise AssertionError(
                f"key's sequence and batch dims {key.shape[:2]} do not match value's "
                f"{value.shape[:2]}"
            )
    elif key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")

    if not use_separate_proj_weight:
        if in_proj_weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        q, k, v = _in_projection_packed(query, key, value, in_proj_weight, in_proj_bias)
    else:
        for name, weight in (("q", q_proj_weight), ("k", k_proj_weight), ("v", v_proj_weight)):
            if weight is None:
                raise AssertionError(
                    f"use_separate_proj_weight is True but {name}_proj_weight is None"
                )
        biases = (None, None, None) if in_proj_bias is None else in_proj_bias.chunk(3)
        q, k, v = _in_projection(
            query, key, value, q_proj_weight, k_proj_weight, v_proj_weight, *biases
        )

    batch_heads = batch * num_heads
    if attn_mask is not None:
        attn_mask = _check_attention_mask(attn_mask, target, source, batch_heads)

    if bias_k is not None and bias_v is not None:
        if static_k is not None:
            raise AssertionError("bias cannot be added to static key.")
        if static_v is not None:
            raise AssertionError("bias cannot be added to static value.")
        k = torch.cat([k, bias_k.repeat(1, batch, 1)])
        v = torch.cat([v, bias_v.repeat(1, batch, 1)])
        attn_mask, key_padding_mask = _extend(attn_mask), _extend(key_padding_mask)
    elif bias_k is not None or bias_v is not None:
        raise AssertionError("bias_k and bias_v must be given together")

    q = _heads(q, batch, num_heads, head_dim)
    k = (
        _heads(k, batch, num_heads, head_dim)
        if static_k is None
        else _fixed(static_k, "static_k", batch_heads, head_dim)
    )
    v = (
        _heads(v, batch, num_heads, head_dim)
        if static_v is None
        else _fixed(static_v, "static_v", batch_heads, head_dim)
    )
    if add_zero_attn:
        zeros = (batch_heads, 1, head_dim)
        k = torch.cat([k, torch.zeros(zeros, dtype=k.dtype, device=k.device)], dim=1)
        v = torch.cat([v, torch.zeros(zeros, dtype=v.dtype, device=v.device)], dim=1)
        attn_mask, key_padding_mask = _extend(attn_mask), _extend(key_padding_mask)
    source = k.size(1)

    if key_padding_mask is not None:
        if tuple(key_padding_mask.shape) != (batch, source):
            raise AssertionError(
                f"expecting key_padding_mask shape of {(batch, source)}, "
                f"but got {key_padding_mask.shape}"
            )
        hidden = key_padding_mask.view(batch, 1, 1, source).expand(-1, num_heads, -1, -1)
        hidden = hidden.reshape(batch_heads, 1, source)
        attn_mask = hidden if attn_mask is None else attn_mask + hidden

    dropout_p = dropout_p if training else 0.0
    linear = torch._C._nn.linear
    if need_weights:
        if is_causal and attn_mask is None:
            raise AssertionError(
                "multi_head_attention_forward: is_causal with need_weights needs an attn_mask"
            )
        joined, weights = _attend_with_weights(q, k, v, attn_mask, dropout_p)
        joined = joined.transpose(0, 1).contiguous().view(target * batch, width)
        result = linear(joined, out_proj_weight, out_proj_bias)
        result = result.view(target, batch, result.size(1))
        weights = weights.view(batch, num_heads, target, source)
        if average_attn_weights:
            weights = weights.mean(dim=1)
        if not batched:
            return result.squeeze(1), weights.squeeze(0)
        return result, weights

    if attn_mask is not None:
        if attn_mask.size(0) == 1 and attn_mask.dim() == 3:
            attn_mask = attn_mask.unsqueeze(0)
        else:
            attn_mask = attn_mask.view(batch, num_heads, -1, source)
    joined = torch._C._nn.scaled_dot_product_attention(
        q.view(batch, num_heads, target, head_dim),
        k.view(batch, num_heads, source, head_dim),
        v.view(batch, num_heads, source, head_dim),
        attn_mask,
        dropout_p,
        is_causal,
    )
    joined = joined.permute(2, 0, 1, 3).contiguous().view(batch * target, width)
    result = linear(joined, out_proj_weight, out_proj_bias)
    result = result.view(target, batch, result.size(1))
    return (result, None) if batched else (result.squeeze(1), None)
