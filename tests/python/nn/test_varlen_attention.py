"""nn.attention: sequences of different lengths in one tensor, causal biases, backends."""

import pytest
import rushlight as torch
from rushlight.nn.attention import (
    SDPBackend,
    _cur_sdpa_kernel_backends,
    activate_flash_attention_impl,
    current_flash_attention_impl,
    list_flash_attention_impls,
    register_flash_attention_impl,
    restore_flash_attention_impl,
    sdpa_kernel,
)
from rushlight.nn.attention.bias import CausalVariant, causal_lower_right, causal_upper_left
from rushlight.nn.attention.varlen import AuxRequest, varlen_attn, varlen_attn_out

attend = torch.nn.functional.scaled_dot_product_attention


def close(actual, expected):
    assert actual.shape == expected.shape
    assert torch.allclose(actual, expected, rtol=1e-4, atol=1e-5)


def one_by_one(q, k, v, cu_q, cu_k, window, used=None):
    """Each sequence by itself, with a dense mask."""
    parts = []
    for i in range(len(cu_q) - 1):
        own = [
            x[a:b].transpose(0, 1)
            for x, (a, b) in ((q, cu_q[i : i + 2]), (k, cu_k[i : i + 2]), (v, cu_k[i : i + 2]))
        ]
        if used is not None:
            own[1:] = [x[:, : used[i]] for x in own[1:]]
        lengths = own[0].size(1), own[1].size(1)
        gap = torch.arange(lengths[1]) - torch.arange(lengths[0])[:, None]
        gap = gap - (lengths[1] - lengths[0])
        mask = torch.ones(lengths, dtype=torch.bool)
        mask = mask & (gap >= -window[0]) if window[0] >= 0 else mask
        mask = mask & (gap <= window[1]) if window[1] >= 0 else mask
        parts.append(attend(*own, attn_mask=mask, enable_gqa=True).transpose(0, 1))
    return torch.cat(parts)


@pytest.mark.parametrize("window", [(-1, -1), (-1, 0), (5, 0), (3, 2)], ids=str)
@pytest.mark.parametrize("kv_heads", [4, 2])
def test_sequences(window, kv_heads):
    torch.manual_seed(0)
    cu_q, cu_k = torch.tensor([0, 30, 31, 31, 200]), torch.tensor([0, 50, 70, 75, 260])
    q = torch.randn(200, 4, 16, requires_grad=True)
    k, v = (torch.randn(260, kv_heads, 16, requires_grad=True) for _ in range(2))
    out = varlen_attn(q, k, v, cu_q, cu_k, 169, 185, window_size=window, enable_gqa=True)
    expected = one_by_one(q, k, v, cu_q.tolist(), cu_k.tolist(), window)
    close(out, expected)
    up = torch.randn(out.shape)
    found = torch.autograd.grad(out, (q, k, v), up)
    for own, other in zip(found, torch.autograd.grad(expected, (q, k, v), up)):
        close(own, other)


def test_pages_and_logsumexp():
    torch.manual_seed(1)
    pool_k, pool_v = torch.randn(6, 8, 2, 16), torch.randn(6, 8, 2, 16)
    table = torch.tensor([[4, 0], [2, 5]], dtype=torch.int32)
    used = torch.tensor([9, 16])
    q = torch.randn(3, 2, 16)
    cu_q = torch.tensor([0, 1, 3])
    out, lse = varlen_attn(
        q,
        pool_k,
        pool_v,
        cu_q,
        None,
        2,
        16,
        seqused_k=used,
        block_table=table,
        window_size=(-1, 0),
        return_aux=AuxRequest(lse=True),
    )
    k, v = (x[table.long()].flatten(0, 2) for x in (pool_k, pool_v))
    close(out, one_by_one(q, k, v, [0, 1, 3], [0, 16, 32], (-1, 0), [9, 16]))
    assert lse.shape == (3, 2)
    first = torch.einsum("hd,khd->hk", q[0], k[:9]) / 4
    close(lse[0], first.logsumexp(1))
    target = torch.empty_like(q)
    assert (
        varlen_attn_out(
            target,
            q,
            k,
            v,
            cu_q,
            torch.tensor([0, 16, 32]),
            2,
            16,
            seqused_k=used,
            window_size=(-1, 0),
        )
        is target
    )
    close(target, out)


def test_causal_biases():
    q, k, v = torch.randn(1, 2, 3, 8), torch.randn(1, 2, 5, 8), torch.randn(1, 2, 5, 8)
    upper, lower = causal_upper_left(3, 5), causal_lower_right(3, 5)
    assert upper.variant == CausalVariant.UPPER_LEFT and lower.seq_len_kv == 5
    assert upper._materialize().int().tolist() == [
        [1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
    ]
    assert lower._materialize().int().tolist() == [
        [1, 1, 1, 0, 0],
        [1, 1, 1, 1, 0],
        [1, 1, 1, 1, 1],
    ]
    for bias in (upper, lower, causal_lower_right(3, 5)):
        close(attend(q, k, v, bias), attend(q, k, v, bias._materialize()))
    assert "True" in repr(upper)


def test_the_choice_of_backends_is_kept():
    everything = _cur_sdpa_kernel_backends()
    with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION], set_priority=True):
        assert _cur_sdpa_kernel_backends() == [SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]
        with sdpa_kernel(SDPBackend.MATH):
            assert _cur_sdpa_kernel_backends() == [SDPBackend.MATH]
    assert _cur_sdpa_kernel_backends() == everything


def test_implementations_of_others():
    class Handle:
        removed = False

        def remove(self):
            self.removed = True

    handle = Handle()
    register_flash_attention_impl("OTHER", register_fn=lambda: handle)
    assert "OTHER" in list_flash_attention_impls()
    activate_flash_attention_impl("OTHER")
    assert current_flash_attention_impl() == "OTHER"
    restore_flash_attention_impl()
    assert handle.removed and current_flash_attention_impl() is None
