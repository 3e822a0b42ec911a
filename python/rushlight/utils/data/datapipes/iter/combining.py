"""Pipes of several pipes, and several pipes of one."""

from __future__ import annotations

import copy as copying
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from rushlight.utils.data.datapipes._decorator import functional_datapipe
from rushlight.utils.data.datapipes.datapipe import IterDataPipe

__all__ = [
    "ConcaterIterDataPipe",
    "DemultiplexerIterDataPipe",
    "ForkerIterDataPipe",
    "MultiplexerIterDataPipe",
    "ZipperIterDataPipe",
]


def _checked(datapipes: tuple) -> tuple:
    if not datapipes:
        raise ValueError("Expected at least one DataPipe, but got nothing")
    if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
        raise TypeError("Expected all inputs to be `IterDataPipe`")
    return datapipes


@functional_datapipe("concat")
class ConcaterIterDataPipe(IterDataPipe):
    """The items of one pipe after those of another."""

    def __init__(self, *datapipes: IterDataPipe) -> None:
        self.datapipes = _checked(datapipes)

    def __iter__(self) -> Iterator:
        for pipe in self.datapipes:
            yield from pipe

    def __len__(self) -> int:
        return sum(len(pipe) for pipe in self.datapipes)


@functional_datapipe("zip")
class ZipperIterDataPipe(IterDataPipe):
    """Tuples of an item of each pipe, until one ends."""

    def __init__(self, *datapipes: IterDataPipe) -> None:
        super().__init__()
        self.datapipes = _checked(datapipes)

    def __iter__(self) -> Iterator:
        yield from zip(*self.datapipes, strict=False)

    def __len__(self) -> int:
        return min(len(pipe) for pipe in self.datapipes)


@functional_datapipe("mux")
class MultiplexerIterDataPipe(IterDataPipe):
    """An item of each pipe in turn, until one ends."""

    def __init__(self, *datapipes: IterDataPipe) -> None:
        self.datapipes = _checked(datapipes)

    def reset(self) -> None:
        """Nothing is kept between iterators."""

    def __iter__(self) -> Iterator:
        for row in zip(*self.datapipes, strict=False):
            yield from row

    def __len__(self) -> int:
        return min(len(pipe) for pipe in self.datapipes) * len(self.datapipes)


class _Source:
    """One stream that several pipes read, each at its own pace: a queue for each."""

    def __init__(
        self, datapipe: IterDataPipe, count: int, buffer_size: int, send: Callable
    ) -> None:
        self.datapipe = datapipe
        self.count = count
        self.buffer_size = buffer_size
        self.send = send
        self.rounds = [0] * count
        self.round = 0
        self.iterator: Any = None
        self.queues: list[deque] = [deque() for _ in range(count)]

    def start(self, place: int) -> int:
        """A reader begins again; the stream with it, where that reader has begun it already."""
        if self.rounds[place] >= self.round:
            self.round += 1
            self.iterator = iter(self.datapipe)
            self.queues = [deque() for _ in range(self.count)]
        self.rounds[place] = self.round
        return self.round

    def read(self, place: int) -> Iterator:
        number = self.start(place)
        while True:
            if number != self.round:
                raise RuntimeError(
                    "This iterator has been invalidated, because a new iterator has been created "
                    "from one of the pipes that read the same stream"
                )
            if self.queues[place]:
                yield self.queues[place].popleft()
                continue
            try:
                item = next(self.iterator)
            except StopIteration:
                return
            self.send(item, self.queues)
            held = sum(map(len, self.queues))
            if 0 <= self.buffer_size < held and not self.queues[place]:
                raise BufferError(
                    f"{type(self.datapipe).__name__}: the buffer of {self.buffer_size} items "
                    "overflows: read all pipes at a similar pace, or give a larger buffer_size"
                )


class _ChildDataPipe(IterDataPipe):
    """One of several pipes that read a stream."""

    def __init__(self, main_datapipe: _Source, instance_id: int) -> None:
        self.main_datapipe = main_datapipe
        self.instance_id = instance_id

    def __iter__(self) -> Iterator:
        return self.main_datapipe.read(self.instance_id)

    def __len__(self) -> int:
        if isinstance(self.main_datapipe.send, _ToAll):
            return len(self.main_datapipe.datapipe)
        raise TypeError(f"object of type '{type(self).__name__}' has no len()")


class _ToAll:
    """Sends each item to every reader."""

    def __init__(self, copy: Callable | None) -> None:
        self.copy = copy

    def __call__(self, item: Any, queues: list[deque]) -> None:
        for queue in queues:
            queue.append(item if self.copy is None else self.copy(item))


class _ToOne:
    """Sends each item to the reader that a function says."""

    def __init__(self, classifier_fn: Callable, drop_none: bool) -> None:
        self.classifier_fn = classifier_fn
        self.drop_none = drop_none

    def __call__(self, item: Any, queues: list[deque]) -> None:
        place = self.classifier_fn(item)
        if place is None and self.drop_none:
            return
        if place is None or not 0 <= place < len(queues):
            raise ValueError(
                f"Output of the classification fn should be between 0 and {len(queues) - 1}. "
                f"{place} is returned."
            )
        queues[place].append(item)


def _check_sizes(num_instances: int, buffer_size: int) -> None:
    if num_instances < 1:
        raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")
    if buffer_size == 0:
        raise ValueError("Expected `buffer_size` other than 0: -1 means that there is no limit")


@functional_datapipe("fork")
class ForkerIterDataPipe(IterDataPipe):
    """Several pipes of the same items. copy: None, 'shallow' or 'deep'."""

    def __new__(
        cls,
        datapipe: IterDataPipe,
        num_instances: int,
        buffer_size: int = 1000,
        copy: str | None = None,
    ) -> Any:
        _check_sizes(num_instances, buffer_size)
        copies = {None: None, "shallow": copying.copy, "deep": copying.deepcopy}
        if copy not in copies:
            raise ValueError(
                f"Unknown copy method `{copy}` requested, choose one of None, `shallow` or `deep`."
            )
        source = _Source(datapipe, num_instances, buffer_size, _ToAll(copies[copy]))
        if num_instances == 1 and copy is None:
            return [datapipe]
        return [_ChildDataPipe(source, place) for place in range(num_instances)]


@functional_datapipe("demux")
class DemultiplexerIterDataPipe(IterDataPipe):
    """Several pipes, each with the items for which classifier_fn gives its number."""

    def __new__(
        cls,
        datapipe: IterDataPipe,
        num_instances: int,
        classifier_fn: Callable,
        drop_none: bool = False,
        buffer_size: int = 1000,
    ) -> Any:
        _check_sizes(num_instances, buffer_size)
        send = _ToOne(classifier_fn, drop_none)
        source = _Source(datapipe, num_instances, buffer_size, send)
        return [_ChildDataPipe(source, place) for place in range(num_instances)]
