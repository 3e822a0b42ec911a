"""Pipes of data by keys."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from typing import Any

import rushlight as torch
from rushlight.utils.data.datapipes._decorator import functional_datapipe
from rushlight.utils.data.datapipes.datapipe import DataChunk, IterDataPipe, MapDataPipe

__all__ = ["Batcher", "Concater", "Mapper", "SequenceWrapper", "Shuffler", "Zipper"]


def default_fn(data: Any) -> Any:
    """The item itself."""
    return data


class SequenceWrapperMapDataPipe(MapDataPipe):
    """The items of a sequence or dict; deepcopy: of a copy of it."""

    def __init__(self, sequence: Any, deepcopy: bool = True) -> None:
        self.sequence = copy.deepcopy(sequence) if deepcopy else sequence

    def __getitem__(self, index: Any) -> Any:
        return self.sequence[index]

    def __len__(self) -> int:
        return len(self.sequence)


@functional_datapipe("map")
class MapperMapDataPipe(MapDataPipe):
    """fn of each item."""

    def __init__(self, datapipe: MapDataPipe, fn: Callable = default_fn) -> None:
        self.datapipe = datapipe
        self.fn = fn

    def __getitem__(self, index: Any) -> Any:
        return self.fn(self.datapipe[index])

    def __len__(self) -> int:
        return len(self.datapipe)


@functional_datapipe("concat")
class ConcaterMapDataPipe(MapDataPipe):
    """The items of one pipe after those of another, by number."""

    def __init__(self, *datapipes: MapDataPipe) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        self.datapipes = datapipes

    def __getitem__(self, index: int) -> Any:
        offset = index
        for pipe in self.datapipes:
            if offset < len(pipe):
                return pipe[offset]
            offset -= len(pipe)
        raise IndexError(f"Index {index} is out of range.")

    def __len__(self) -> int:
        return sum(len(pipe) for pipe in self.datapipes)


@functional_datapipe("zip")
class ZipperMapDataPipe(MapDataPipe):
    """Tuples of the items that several pipes have for a key."""

    def __init__(self, *datapipes: MapDataPipe) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        self.datapipes = datapipes

    def __getitem__(self, index: Any) -> tuple:
        return tuple(pipe[index] for pipe in self.datapipes)

    def __len__(self) -> int:
        return min(len(pipe) for pipe in self.datapipes)


@functional_datapipe("batch")
class BatcherMapDataPipe(MapDataPipe):
    """The items in batches, by number; the last one smaller, or dropped."""

    def __init__(
        self,
        datapipe: MapDataPipe,
        batch_size: int,
        drop_last: bool = False,
        wrapper_class: type = DataChunk,
    ) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe = datapipe
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.wrapper_class = wrapper_class

    def __getitem__(self, index: int) -> Any:
        if not 0 <= index < len(self):
            raise IndexError(f"Index {index} is out of bound.")
        start = index * self.batch_size
        end = min(start + self.batch_size, len(self.datapipe))
        return self.wrapper_class([self.datapipe[i] for i in range(start, end)])

    def __len__(self) -> int:
        extra = 0 if self.drop_last else self.batch_size - 1
        return (len(self.datapipe) + extra) // self.batch_size


class ShufflerIterDataPipe(IterDataPipe):
    """The items in random order, as a stream."""

    def __init__(self, datapipe: MapDataPipe, *, indices: list | None = None) -> None:
        super().__init__()
        self.datapipe = datapipe
        self.indices = list(range(len(datapipe))) if indices is None else indices
        self._enabled = True
        self._seed: int | None = None
        self._rng = random.Random()
        self._order = self.indices

    def set_shuffle(self, shuffle: bool = True) -> ShufflerIterDataPipe:
        """Turns shuffling on or off; the pipe itself."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> ShufflerIterDataPipe:
        """Sets the seed of the next iterator; the pipe itself."""
        self._seed = seed
        return self

    def reset(self) -> None:
        """Draws the order, from a seed of the default generator unless one was set."""
        self._order = self.indices
        if self._enabled:
            if self._seed is None:
                self._seed = int(torch.empty((), dtype=torch.int64).random_().item())
            self._rng.seed(self._seed)
            self._seed = None
            self._order = list(self.indices)
            self._rng.shuffle(self._order)

    def __iter__(self) -> Iterator:
        for index in self._order:
            yield self.datapipe[index]

    def __len__(self) -> int:
        return len(self.datapipe)


SequenceWrapper = SequenceWrapperMapDataPipe
Mapper = MapperMapDataPipe
Concater = ConcaterMapDataPipe
Zipper = ZipperMapDataPipe
Batcher = BatcherMapDataPipe
Shuffler = ShufflerIterDataPipe
MapDataPipe.register_datapipe_as_function("shuffle", Shuffler)
