"""Datasets, and their random splits."""

import typing

import pytest
import rushlight as torch
from rushlight.utils.data import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)


class Numbers(IterableDataset):
    def __init__(self, count):
        self.count = count

    def __iter__(self):
        return iter(range(self.count))


def test_tensor_dataset():
    data = TensorDataset(torch.arange(4), torch.arange(4) * 10)
    assert len(data) == 4
    assert [part.item() for part in data[2]] == [2, 20]
    assert [part.tolist() for part in data[1:3]] == [[1, 2], [10, 20]]
    with pytest.raises(AssertionError, match="Size mismatch between tensors"):
        TensorDataset(torch.ones(2), torch.ones(3))


def test_concatenation():
    data = ConcatDataset([[1, 2], [3], [4, 5, 6]])
    assert [data[i] for i in range(len(data))] == [1, 2, 3, 4, 5, 6]
    assert data[-1] == 6
    assert data.cumulative_sizes == [2, 3, 6]
    with pytest.raises(ValueError, match="should not exceed dataset length"):
        data[-7]
    with pytest.raises(AssertionError, match="should not be an empty iterable"):
        ConcatDataset([])


def test_streams_are_chained():
    assert list(Numbers(2) + Numbers(3)) == [0, 1, 0, 1, 2]
    assert isinstance(Numbers(1) + Numbers(1), ChainDataset)


def test_datasets_side_by_side():
    assert StackDataset([1, 2], ["a", "b"])[1] == (2, "b")
    named = StackDataset(x=[1, 2], y=["a", "b"])
    assert named[0] == {"x": 1, "y": "a"}
    assert named.__getitems__([1, 0]) == [{"x": 2, "y": "b"}, {"x": 1, "y": "a"}]
    with pytest.raises(ValueError, match="Size mismatch between datasets"):
        StackDataset([1], [1, 2])


def test_subset():
    part = Subset([10, 20, 30], [2, 0])
    assert (part[0], part[1], len(part)) == (30, 10, 2)


def test_random_split_draws_pytorchs_order():
    torch.manual_seed(0)
    parts = random_split(range(6), [2, 4])
    assert [part.indices for part in parts] == [[2, 5], [3, 0, 1, 4]]


def test_random_split_by_fractions():
    assert [len(part) for part in random_split(range(10), [0.25, 0.75])] == [3, 7]
    with pytest.raises(ValueError, match="Sum of input lengths does not equal"):
        random_split(range(10), [3, 6])


def test_bare_dataset_says_what_is_missing():
    with pytest.raises(NotImplementedError, match="should implement __getitem__"):
        Dataset()[0]


def test_classes_are_generic():
    T = typing.TypeVar("T")

    class Repeated(Dataset[T]):
        def __getitem__(self, index) -> T:
            return index

    class Named(Repeated[int], typing.Generic[T]):
        pass

    assert typing.get_args(Repeated.__orig_bases__[0]) == (T,)
    for given in (Dataset, IterableDataset, torch.utils.data.Sampler, torch.utils.data.DataLoader):
        assert typing.Generic in given.__mro__ and typing.get_origin(given[int]) is given
    assert Named[str]()[3] == 3
