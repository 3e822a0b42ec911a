"""Bool tensors whose bytes are neither 0 nor 1, as a view of another dtype may have them."""

import pytest
import rushlight as torch

BYTES = [2, 255, 0, 1, 128, 0]
TRUE = [0, 1, 3, 4]


@pytest.fixture
def truths():
    return torch.tensor(BYTES, dtype=torch.uint8).view(torch.bool)


def test_as_numbers(truths):
    assert truths.tolist() == [True, True, False, True, True, False]
    assert truths[1].item() is True
    assert truths.int().tolist() == [1, 1, 0, 1, 1, 0]
    assert truths.sum() == truths.count_nonzero() == 4


def test_as_a_mask(truths):
    assert truths.nonzero().flatten().tolist() == TRUE
    assert torch.arange(6)[truths].tolist() == TRUE
    assert torch.arange(6).masked_select(truths).tolist() == TRUE
    filled = [1, 1, 0, 1, 1, 0]
    assert torch.zeros(6).masked_fill(truths, 1).tolist() == filled
    assert torch.zeros(6).index_put((truths,), torch.tensor(1.0)).tolist() == filled
    assert torch.zeros(6).masked_scatter(truths, torch.ones(6)).tolist() == filled
    assert torch.where(truths, 1, 0).tolist() == filled


def test_strided_mask(truths):
    assert torch.zeros(3).masked_fill(truths[::2], 1).tolist() == [1, 0, 1]
    assert torch.arange(3)[truths[::2]].tolist() == [0, 2]


def test_in_order(truths):
    values, indices = truths.sort(stable=True)
    assert values.tolist() == [False, False, True, True, True, True]
    assert indices.tolist() == [2, 5, 0, 1, 3, 4]
    assert truths.unique().tolist() == [False, True]
    assert truths.view(3, 2).unique(dim=0).tolist() == [[False, True], [True, False], [True, True]]
    assert torch.isin(truths, torch.tensor([True])).tolist() == truths.tolist()
