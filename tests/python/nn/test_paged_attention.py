"""Paged attention: sequences in pages of one cache give what they give alone."""

import pytest
import rushlight as torch
from rushlight.nn.attention.experimental._paged_attention import PagedAttention
from rushlight.nn.attention.flex_attention import create_block_mask, flex_attention

PAGE, HEADS, SIZE = 8, 2, 4


def causal(b, h, q, k):
    return q >= k


def distance(score, b, h, q, k):
    return score + (k - q) * 0.25


def filled(lengths, pages=12):
    """A cache that holds sequences of these lengths, in pages that lie anyhow."""
    paged = PagedAttention(pages, PAGE, len(lengths))
    caches = [torch.full((1, HEADS, pages * PAGE, SIZE), float("nan")) for _ in range(2)]
    own = [[torch.randn(1, HEADS, length, SIZE) for _ in range(2)] for length in lengths]
    for start in range(0, max(lengths), 5):  # grow in turns, so that pages interleave
        for number, length in enumerate(lengths):
            end = min(start + 5, length)
            if end <= start:
                continue
            index = torch.tensor([number])
            paged.reserve(index, torch.tensor([end]))
            positions = torch.arange(start, end).unsqueeze(0)
            paged.assign(index, positions, *(x[:, :, start:end] for x in own[number]), *caches)
    return paged, [cache.nan_to_num(1e4) for cache in caches], own


@pytest.mark.parametrize("score_mod", [None, distance])
def test_equals_attention_on_each_sequence(score_mod):
    lengths = [24, 16, 21]
    paged, (k_cache, v_cache), own = filled(lengths)
    q = torch.randn(3, HEADS, 24, SIZE)
    mask = create_block_mask(causal, 3, None, 24, 24, BLOCK_SIZE=PAGE)
    kv_len = torch.tensor(lengths)
    table_has = torch.tensor([-(-length // PAGE) for length in lengths])
    # Sequence 1 has two pages alone: its mask must name no third.
    mask.kv_num_blocks[1] = mask.kv_num_blocks[1].clamp(max=1)
    mask.kv_indices[1, 0, 2, 0] = 0
    mask.kv_num_blocks[1, 0, 2] = 0
    assert table_has.tolist() == [3, 2, 3]
    found = flex_attention(
        q,
        k_cache,
        v_cache,
        score_mod=paged.get_score_mod(score_mod),
        block_mask=paged.convert_logical_block_mask(mask, kv_len=kv_len),
    )
    for number, length in enumerate(lengths):
        k, v = own[number]
        alone = create_block_mask(causal, None, None, 24, length, BLOCK_SIZE=PAGE)
        expected = flex_attention(
            q[number : number + 1], k, v, score_mod=score_mod, block_mask=alone
        )
        rows = 16 if number == 1 else 24
        assert torch.allclose(found[number, :, :rows], expected[0, :, :rows], atol=1e-6)


def test_sequences_by_number():
    paged, caches, own = filled([16, 16])
    q = torch.randn(1, HEADS, 16, SIZE)
    mask = create_block_mask(causal, 1, None, 16, 16, BLOCK_SIZE=PAGE)
    for number in (1, 0):
        converted = paged.convert_logical_block_mask(mask, torch.tensor([number]))
        assert converted.shape == (1, 1, 16, 96)
        found = flex_attention(q, *caches, block_mask=converted)
        assert torch.allclose(found, flex_attention(q, *own[number], block_mask=mask), atol=1e-6)


def test_pages_come_and_go():
    paged = PagedAttention(4, PAGE, 3)
    paged.reserve(torch.tensor([0]), torch.tensor([17]))
    assert paged.capacity.tolist() == [24, 0, 0] and len(paged.empty_pages) == 1
    paged.reserve(torch.tensor([0]), torch.tensor([20]))  # has room
    assert len(paged.empty_pages) == 1
    with pytest.raises(RuntimeError, match="requested 2 pages but there are only 1 empty pages"):
        paged.reserve(torch.tensor([1]), torch.tensor([9]))
    assert paged.capacity.tolist() == [24, 0, 0] and len(paged.empty_pages) == 1
    paged.erase(torch.tensor([0]))
    assert paged.capacity.tolist() == [0, 0, 0] and sorted(paged.empty_pages) == [0, 1, 2, 3]
    assert (paged.page_table == -1).all() and (paged.physical_to_logical == -1).all()
    paged.reserve(torch.tensor([2]), torch.tensor([32]))
    assert paged.empty_pages == [] and sorted(paged.page_table[2].tolist()) == [0, 1, 2, 3]


def test_mask_of_positions():
    paged, _, _ = filled([10])
    mask = paged.get_mask_mod(None, kv_len=torch.tensor([10]))
    place = [torch.tensor(i, dtype=torch.int32) for i in range(96)]
    zero = place[0]
    live = sum(bool(mask(zero, zero, zero, k)) for k in place)
    assert live == 10
