"""Operators of PyTorch that say what others say, under their own names and rules."""

from __future__ import annotations

import pytest
import rushlight as torch


def test_statistics_that_move_running_ones():
    mean, variance = torch.ones(2), torch.ones(2)
    x = torch.tensor([[0.0, 1.0], [2.0, 5.0]])
    found = torch.batch_norm_update_stats(x, mean, variance, 0.1)
    assert [part.tolist() for part in found] == [[1.0, 3.0], [1.0, 4.0]]
    torch.testing.assert_close(mean, torch.tensor([1.0, 1.2]))
    torch.testing.assert_close(variance, torch.tensor([1.1, 1.7]))
    assert torch.batch_norm_update_stats(x.half(), None, None, 0.1)[0].dtype is torch.float16


def test_convolution_with_its_padding_first():
    x, weight = torch.ones(1, 1, 4, 4), torch.ones(1, 1, 2, 2)
    made = torch.mkldnn_convolution(x, weight, torch.ones(1), (0, 0), (2, 2), (1, 1), 1)
    assert made.tolist() == [[[[5.0, 5.0], [5.0, 5.0]]]]


def test_dense_tensors_asked_as_if_sparse():
    x = torch.ones(2, 3)
    assert x.to_dense() is x and x.to_dense(torch.int32).dtype is torch.int32
    assert (x.dense_dim(), x.sparse_dim()) == (2, 0)
    assert torch.spmm(x, x.t()).tolist() == torch.dsmm(x, x.t()).tolist() == [[3.0] * 2] * 2


def test_the_whole_of_a_slice():
    whole = torch.arange(12.0).reshape(4, 3)
    back = whole[:2].slice_inverse(torch.zeros(4, 3), 0, 0, 2)
    assert torch.equal(back, whole) and back.data_ptr() == whole.data_ptr()


def test_cudnn_takes_nothing():
    assert torch.cudnn_is_acceptable(torch.ones(1)) is False
    with pytest.raises(RuntimeError, match="removed"):
        torch.symeig(torch.eye(2))
