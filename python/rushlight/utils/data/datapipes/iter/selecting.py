"""Pipes that leave items out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rushlight.utils.data.datapipes._decorator import functional_datapipe
from rushlight.utils.data.datapipes.datapipe import IterDataPipe

__all__ = ["FilterIterDataPipe"]


@functional_datapipe("filter")
class FilterIterDataPipe(IterDataPipe):
    """The items for which filter_fn, of the item or of some of its columns, is true."""

    def __init__(self, datapipe: IterDataPipe, filter_fn: Callable, input_col: Any = None) -> None:
        super().__init__()
        self.datapipe = datapipe
        self.filter_fn = filter_fn
        self.input_col = input_col

    def _condition(self, data: Any) -> bool:
        if self.input_col is None:
            result = self.filter_fn(data)
        elif isinstance(self.input_col, (list, tuple)):
            result = self.filter_fn(*(data[column] for column in self.input_col))
        else:
            result = self.filter_fn(data[self.input_col])
        if not isinstance(result, bool):
            raise ValueError(
                "Boolean output is required for `filter_fn` of FilterIterDataPipe, got "
                f"{type(result)}"
            )
        return result

    def __iter__(self) -> Iterator:
        for data in self.datapipe:
            if self._condition(data):
                yield data
