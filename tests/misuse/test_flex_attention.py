"""Mistakes with flex attention, one a test."""

import pytest
import rushlight as torch
from rushlight.nn.attention import SDPBackend, activate_flash_attention_impl, sdpa_kernel
from rushlight.nn.attention.bias import causal_lower_right, causal_upper_left
from rushlight.nn.attention.flex_attention import (
    AuxRequest,
    BlockMask,
    and_masks,
    create_block_mask,
    create_mask,
    flex_attention,
)
from rushlight.nn.attention.varlen import varlen_attn

Q = torch.ones(2, 4, 100, 16)
K, V = torch.ones(2, 4, 300, 16), torch.ones(2, 4, 300, 8)


def causal(b, h, q, k):
    return q >= k


def fails(error, text, function):
    with pytest.raises(error, match=text):
        function()


@pytest.mark.parametrize(
    ("operands", "options", "error", "text"),
    [
        ((Q[0], K[0], V[0]), {}, NotImplementedError, "must be 4D"),
        ((Q, K[:, :2], V[:, :2]), {}, ValueError, "Hq=4 and Hkv=2. Try setting enable_gqa"),
        ((Q, K[:, :3], V[:, :3]), {"enable_gqa": True}, ValueError, "multiple of kv heads"),
        ((Q, K[..., :8], V), {}, ValueError, "E=16 and E=8"),
        ((Q, K, V[:, :, :9]), {}, ValueError, "same batch, heads and length"),
        ((Q, K.double(), V), {}, ValueError, "same dtype"),
        ((Q.int(), K.int(), V.int()), {}, ValueError, "floating-point"),
        ((Q, K[:1], V[:1]), {}, ValueError, "Bq=2, and Bkv=1"),
        ((Q, K, V), {"block_mask": causal}, TypeError, "BlockMask or None, got function"),
        (
            (Q, K, V),
            {"return_lse": True, "return_aux": AuxRequest()},
            ValueError,
            "both return_lse",
        ),
        ((Q, K, V), {"kernel_options": {"BACKEND": "CUDA"}}, ValueError, "BACKEND value 'CUDA'"),
        (
            (Q, K, V),
            {"kernel_options": {"BACKEND": "AUTO", "FORCE_USE_FLEX_ATTENTION": True}},
            RuntimeError,
            "cannot be combined with legacy",
        ),
        ((Q, K, V), {"kernel_options": {"OUTPUT_MAX": 1}}, AssertionError, "OUTPUT_MAX must not"),
        ((Q, K, V), {"kernel_options": 3}, TypeError, "not iterable"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_operands(operands, options, error, text):
    fails(error, text, lambda: flex_attention(*operands, **options))


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ((None, None, 256, 300), "larger length.*_adjust"),
        ((None, None, 64, 300), "smaller length"),
        ((3, None, 100, 300), r"\(3, 1\), which cannot be broadcast"),
        ((None, 3, 100, 300), r"\(1, 3\), which cannot be broadcast"),
    ],
    ids=str,
)
def test_block_masks_of_other_sizes(sizes, text):
    mask = create_block_mask(causal, *sizes)
    fails(ValueError, text, lambda: flex_attention(Q, K, V, block_mask=mask))


def test_a_sliced_block_mask():
    mask = create_block_mask(causal, 2, 4, 100, 300)[:, :, 0:1]
    fails(RuntimeError, "sliced BlockMask", lambda: flex_attention(Q, K, V, block_mask=mask))


def branches(score, b, h, q, k):
    if q > k:
        return score
    return score * 2


def asks_for_a_number(score, b, h, q, k):
    return score * int(q)


def gives_a_mask(score, b, h, q, k):
    return q >= k


def gives_a_number(score, b, h, q, k):
    return 1.0


def uses_a_whole_tensor(score, b, h, q, k):
    return score * torch.ones(3)


def sums_up(score, b, h, q, k):
    return score.cumsum(0)


def writes(score, b, h, q, k):
    TABLE.add_(score)
    return score


def reads_too_far(score, b, h, q, k):
    return score + torch.zeros(50)[q]


def reads_too_far_by_data(score, b, h, q, k):
    return score + torch.zeros(50)[FAR[q]]


def reads_too_low(score, b, h, q, k):
    return score + torch.zeros(400)[k - q - 350]


def reads_part(score, b, h, q, k):
    return score + torch.zeros(100, 300)[q]


def indexes_by_a_score(score, b, h, q, k):
    return torch.zeros(100)[score]


def draws(score, b, h, q, k):
    return score * torch.rand(())


def reads_another_device(score, b, h, q, k):
    return score + torch.zeros(100, device="meta")[q]


TABLE = torch.zeros(())
FAR = torch.cat([torch.zeros(99, dtype=torch.long), torch.tensor([50])])


@pytest.mark.parametrize(
    ("score_mod", "error", "text"),
    [
        (branches, RuntimeError, r"'branches' \(.*py:\d+\): data-dependent Python"),
        (asks_for_a_number, RuntimeError, "'asks_for_a_number'.*data-dependent Python"),
        (gives_a_mask, TypeError, "'gives_a_mask'.*must return a score"),
        (gives_a_number, ValueError, "'gives_a_number'.*must return a Tensor, got type float"),
        (uses_a_whole_tensor, RuntimeError, r"captured tensor of shape \[3\] as a whole"),
        (sums_up, NotImplementedError, "cumsum cannot take part"),
        (writes, RuntimeError, "must not change what they capture"),
        (reads_too_far, IndexError, "'reads_too_far'.*index 99 is out of bounds.*size 50"),
        (reads_too_far_by_data, IndexError, "index 50 is out of bounds.*size 50"),
        (reads_too_low, IndexError, "index -449 is out of bounds.*size 400"),
        (draws, RuntimeError, "'draws'.*rand draws random numbers"),
        (reads_part, RuntimeError, "indexed in only some of its dimensions"),
        (reads_another_device, RuntimeError, "captured a tensor on device meta"),
        (indexes_by_a_score, IndexError, "indices must be integers"),
        (causal, TypeError, "'causal'.*positional argument"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_score_functions(score_mod, error, text):
    fails(error, text, lambda: flex_attention(Q, K, V, score_mod=score_mod))


def test_the_line_of_the_mistake_is_named():
    with pytest.raises(RuntimeError) as caught:
        flex_attention(Q, K, V, score_mod=branches)
    line = branches.__code__.co_firstlineno + 1
    assert f"test_flex_attention.py:{line})" in str(caught.value)


@pytest.mark.parametrize(
    ("mask_mod", "error", "text"),
    [
        (lambda b, h, q, k: (q - k) * 1.0, AssertionError, "must be torch.bool, got torch.float32"),
        (lambda b, h, q: q > 0, AssertionError, "Expected 4 or 5 positional args, got 3"),
        (lambda b, h, q, k: torch.ones(3) > 0, RuntimeError, "must return a scalar"),
        (lambda b, h, q, k: True, ValueError, "must return a Tensor, got type bool"),
        (lambda b, h, q, k: q >= k and q < 5, RuntimeError, "data-dependent Python"),
        (lambda b, h, q, k: torch.ones(9)[q] > 0, IndexError, "index 255 is out of bounds"),
        (gives_a_number, AssertionError, "requires a mask_mod function"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_mask_functions(mask_mod, error, text):
    fails(error, text, lambda: create_block_mask(mask_mod, None, None, 256, 256))


def test_lengths_of_a_block_mask():
    fails(ValueError, "positive lengths", lambda: create_block_mask(causal, 1, 1, 0, 4))


def test_a_device_that_is_not_there():
    fails(RuntimeError, "device", lambda: create_mask(causal, 1, 1, 4, 4, device="cuda"))


def test_masks_that_are_no_functions():
    fails(RuntimeError, "callable mask_mods", lambda: and_masks(1, causal))


def test_half_of_the_full_blocks():
    mask = create_block_mask(causal, None, None, 256, 256)
    fails(
        AssertionError,
        "both provided or omitted",
        lambda: BlockMask.from_kv_blocks(
            mask.kv_num_blocks, mask.kv_indices, mask.full_kv_num_blocks
        ),
    )


def test_indices_of_one_dimension():
    mask = create_block_mask(causal, None, None, 256, 256)
    fails(
        RuntimeError,
        "at least 2 dimensions",
        lambda: BlockMask.from_kv_blocks(mask.kv_num_blocks[0, 0], mask.kv_indices[0, 0, 0]),
    )


def test_a_block_that_is_not_there():
    mask = create_block_mask(causal, None, None, 100, 300)
    mask.kv_indices[0, 0, 0, 0] = 7
    fails(IndexError, "block 7 is out of bounds", lambda: flex_attention(Q, K, V, block_mask=mask))


def test_numbers_of_blocks_without_lists():
    mask = create_block_mask(causal, None, None, 100, 300)
    mask.kv_num_blocks = mask.kv_num_blocks.expand(1, 5, 1)
    fails(
        RuntimeError,
        r"numbers of partial blocks have shape \[1, 5, 1\] and their indices \[1, 1, 1, 3\]",
        lambda: flex_attention(Q, K, V, block_mask=mask),
    )


def test_lists_of_blocks_that_are_not_integers():
    mask = create_block_mask(causal, None, None, 100, 300)
    mask.kv_indices = mask.kv_indices.float()
    fails(TypeError, "are integers, but got", lambda: flex_attention(Q, K, V, block_mask=mask))


# ---- the rest of nn.attention -------------------------------------------------------------------


def test_backends_that_are_none():
    with pytest.raises(AssertionError, match="instance of SDPBackend"), sdpa_kernel(3):
        pass
    assert SDPBackend.FLASH_ATTENTION == 1
    fails(ValueError, "Unknown flash attention impl", lambda: activate_flash_attention_impl("x"))


def test_causal_biases():
    fails(AssertionError, "only supports 2D", lambda: causal_upper_left(3, 5, 6))
    bias = causal_lower_right(100, 300)
    attend = torch.nn.functional.scaled_dot_product_attention
    fails(ValueError, "causal=True", lambda: attend(Q, K, V, bias, is_causal=True))


def test_sequences_that_do_not_fill_their_tensor():
    x, offsets = torch.ones(7, 2, 8), torch.tensor([0, 3, 6])
    fails(ValueError, "cu_seq_q must ascend", lambda: varlen_attn(x, x, x, offsets, offsets, 3, 3))
