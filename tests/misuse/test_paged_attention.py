"""Mistakes with paged attention, one a test."""

import pytest
import rushlight as torch
from rushlight.nn.attention.experimental._paged_attention import PagedAttention
from rushlight.nn.attention.flex_attention import create_block_mask


def one(value=0):
    return torch.tensor([value])


def fails(error, text, function):
    with pytest.raises(error, match=text):
        function()


@pytest.fixture
def paged():
    made = PagedAttention(4, 8, 2)
    made.reserve(one(), one(8))
    return made


def test_no_pages():
    fails(ValueError, "positive numbers, got n_pages=0", lambda: PagedAttention(0, 8, 1))


def test_a_sequence_that_is_not_there(paged):
    fails(IndexError, "sequence 2 is out of range", lambda: paged.reserve(one(2), one(8)))


def test_two_sequences_at_once(paged):
    fails(ValueError, "must name one sequence", lambda: paged.erase(torch.tensor([0, 1])))


def assign(paged, position=0, key=(1, 2, 1, 4), value=(1, 2, 1, 4), cache=(1, 2, 32, 4)):
    positions = torch.tensor([[position]])
    caches = torch.zeros(cache), torch.zeros(cache)
    paged.assign(one(), positions, torch.ones(key), torch.ones(value), *caches)


def test_a_position_without_a_page(paged):
    fails(RuntimeError, "a position has no page", lambda: assign(paged, position=8))


def test_values_of_another_length(paged):
    fails(
        RuntimeError, r"v_val of shape \(1, 2, 1, \*\)", lambda: assign(paged, value=(1, 2, 2, 4))
    )


def test_a_cache_of_another_size(paged):
    fails(
        RuntimeError, r"k_cache of shape \(1, 2, 32, 4\)", lambda: assign(paged, cache=(1, 2, 8, 4))
    )


def test_gradients(paged):
    x = torch.ones(1, 2, 1, 4, requires_grad=True)
    cache = torch.zeros(1, 2, 32, 4)
    fails(
        RuntimeError,
        "must not require gradients",
        lambda: paged.assign(one(), torch.tensor([[0]]), x, x, cache, cache),
    )


def mask(kv_len, block):
    return create_block_mask(lambda b, h, q, k: q >= k, 1, None, 8, kv_len, BLOCK_SIZE=block)


def test_blocks_of_another_size(paged):
    fails(RuntimeError, "size=4 and size=8", lambda: paged.convert_logical_block_mask(mask(8, 4)))


def test_keys_without_a_page():
    empty = PagedAttention(4, 8, 1)
    fails(
        RuntimeError, "keys that have no page", lambda: empty.convert_logical_block_mask(mask(8, 8))
    )


def test_more_columns_than_pages(paged):
    fails(
        RuntimeError,
        "5 columns of blocks, more than the 4 pages",
        lambda: paged.convert_logical_block_mask(mask(40, 8)),
    )
