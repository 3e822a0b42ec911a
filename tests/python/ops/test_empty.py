"""Reductions of tensors without elements."""

import pytest
import rushlight as torch


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3), (2, 0, 4)])
def test_sum_over_all_dimensions_is_zero(shape):
    assert torch.ones(shape).sum().item() == 0
    assert torch.ones(shape).prod().item() == 1


def test_sum_over_the_empty_dimension():
    assert torch.ones(3, 0).sum(1).tolist() == [0, 0, 0]
    assert torch.ones(0, 3).sum(0).tolist() == [0, 0, 0]
    assert torch.ones(2, 0, 4).sum((1, 2)).tolist() == [0, 0]
