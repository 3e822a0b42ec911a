"""Pipes that put items together, and take batches apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from rushlight.utils.data.datapipes._decorator import functional_datapipe
from rushlight.utils.data.datapipes.datapipe import DataChunk, IterDataPipe

__all__ = ["BatcherIterDataPipe", "GrouperIterDataPipe", "UnBatcherIterDataPipe"]


@functional_datapipe("batch")
class BatcherIterDataPipe(IterDataPipe):
    """The items in batches; the last one smaller, or dropped."""

    def __init__(
        self,
        datapipe: IterDataPipe,
        batch_size: int,
        drop_last: bool = False,
        wrapper_class: type = DataChunk,
    ) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        super().__init__()
        self.datapipe = datapipe
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.wrapper_class = wrapper_class

    def __iter__(self) -> Iterator:
        batch: list = []
        for item in self.datapipe:
            batch.append(item)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)

    def __len__(self) -> int:
        extra = 0 if self.drop_last else self.batch_size - 1
        return (len(self.datapipe) + extra) // self.batch_size


@functional_datapipe("unbatch")
class UnBatcherIterDataPipe(IterDataPipe):
    """The items of batches, one after another; unbatch_level: how deep, -1 for all the way."""

    def __init__(self, datapipe: IterDataPipe, unbatch_level: int = 1) -> None:
        if unbatch_level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        self.datapipe = datapipe
        self.unbatch_level = unbatch_level

    def __iter__(self) -> Iterator:
        for element in self.datapipe:
            yield from self._opened(element, self.unbatch_level)

    def _opened(self, element: Any, level: int) -> Iterator:
        if level == 0 or (level < 0 and not isinstance(element, (list, DataChunk))):
            yield element
            return
        if not isinstance(element, (list, DataChunk)):
            raise IndexError(
                f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe"
            )
        for item in element:
            yield from self._opened(item, level - 1 if level > 0 else level)


@functional_datapipe("groupby")
class GrouperIterDataPipe(IterDataPipe):
    """Batches of the items with the same key, given when they are full, or when the buffer is."""

    def __init__(
        self,
        datapipe: IterDataPipe,
        group_key_fn: Callable,
        *,
        keep_key: bool = False,
        buffer_size: int = 10000,
        group_size: int | None = None,
        guaranteed_group_size: int | None = None,
        drop_remaining: bool = False,
    ) -> None:
        if group_size is not None and not 0 < group_size <= buffer_size:
            raise ValueError("group_size must be > 0 and <= buffer_size")
        if guaranteed_group_size is None:
            guaranteed_group_size = group_size
        elif group_size is None or not 0 < guaranteed_group_size <= group_size:
            raise ValueError("guaranteed_group_size must be > 0 and <= group_size")
        self.datapipe = datapipe
        self.group_key_fn = group_key_fn
        self.keep_key = keep_key
        self.max_buffer_size = buffer_size
        self.group_size = group_size
        self.guaranteed_group_size = guaranteed_group_size
        self.drop_remaining = drop_remaining
        self.wrapper_class = DataChunk
        self.reset()

    def reset(self) -> None:
        """Empties the buffer."""
        self.buffer_elements: dict[Any, list] = defaultdict(list)
        self.curr_buffer_size = 0

    def _given(self, key: Any) -> Any:
        items = self.buffer_elements.pop(key)
        self.curr_buffer_size -= len(items)
        chunk = self.wrapper_class(items)
        return (key, chunk) if self.keep_key else chunk

    def _largest(self) -> Any:
        """The key of the largest group, to be given or dropped where the buffer is full."""
        key = max(self.buffer_elements, key=lambda key: len(self.buffer_elements[key]))
        size = len(self.buffer_elements[key])
        too_small = self.guaranteed_group_size is not None and size < self.guaranteed_group_size
        if too_small and not self.drop_remaining:
            raise RuntimeError(f"Failed to group items {self.buffer_elements[key]}")
        return key, not too_small

    def __iter__(self) -> Iterator:
        for item in self.datapipe:
            key = self.group_key_fn(item)
            self.buffer_elements[key].append(item)
            self.curr_buffer_size += 1
            if self.group_size is not None and self.group_size == len(self.buffer_elements[key]):
                yield self._given(key)
            if self.curr_buffer_size == self.max_buffer_size:
                largest, is_wanted = self._largest()
                result = self._given(largest)
                if is_wanted:
                    yield result
        for key in list(self.buffer_elements):
            yield self._given(key)
