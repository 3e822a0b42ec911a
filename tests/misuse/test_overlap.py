"""Tensors that are written while they are read: one mistake a test."""

import pytest
import rushlight as torch


def test_index_add_of_the_tensor_itself():
    x = torch.arange(6.0)
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        x.index_add_(0, torch.tensor([0, 1]), x[2:4])
    counts = torch.arange(6)
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        counts.index_add_(0, counts, torch.ones(6, dtype=torch.int64))


def test_out_that_grows_into_an_argument():
    at = torch.tensor([0, 0, 1])
    x = torch.tensor([1, 2, 3])
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        torch.gather(x, 0, at[1:], out=at[:1])
