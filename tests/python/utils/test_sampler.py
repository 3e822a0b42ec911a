"""Samplers draw PyTorch's orders."""

import pytest
import rushlight as torch
from rushlight.utils.data import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: SequentialSampler("abc"), [0, 1, 2]),
        (lambda: RandomSampler(range(5)), [1, 3, 4, 2, 0]),
        (lambda: RandomSampler(range(5), True, 6), [1, 0, 4, 3, 4, 0]),
        (lambda: SubsetRandomSampler([5, 6, 7, 8]), [5, 6, 8, 7]),
        (lambda: WeightedRandomSampler([0.1, 0.9, 0.5], 5), [2, 2, 1, 2, 1]),
        (lambda: DistributedSampler(range(7), 2, 1), [0, 3, 6, 4]),
        (lambda: DistributedSampler(range(7), 2, 0, shuffle=False), [0, 2, 4, 6]),
        (lambda: BatchSampler(range(5), 2, False), [[0, 1], [2, 3], [4]]),
        (lambda: BatchSampler(range(5), 2, True), [[0, 1], [2, 3]]),
    ],
)
def test_orders(make, expected):
    torch.manual_seed(0)
    sampler = make()
    assert list(sampler) == expected
    assert len(sampler) == len(expected)


def test_own_generator_leaves_the_global_one_alone():
    torch.manual_seed(0)
    expected = torch.rand(1).item()
    torch.manual_seed(0)
    list(RandomSampler(range(5), generator=torch.Generator()))
    assert torch.rand(1).item() == expected


def test_epochs_change_the_shared_order():
    sampler = DistributedSampler(range(100), 2, 0)
    first = list(sampler)
    sampler.set_epoch(1)
    assert list(sampler) != first


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: RandomSampler(range(3), 3), TypeError, "replacement should be a boolean"),
        (lambda: RandomSampler([]), ValueError, "num_samples should be a positive integer"),
        (lambda: BatchSampler([], 0, False), ValueError, "batch_size should be a positive"),
        (lambda: BatchSampler([], 1, 2), ValueError, "drop_last should be a boolean"),
        (lambda: WeightedRandomSampler([[1.0]], 1), ValueError, "should be a 1d sequence"),
        (lambda: DistributedSampler([1], 2, 5), ValueError, "Invalid rank 5"),
    ],
)
def test_wrong_arguments(make, error, text):
    with pytest.raises(error, match=text):
        make()
