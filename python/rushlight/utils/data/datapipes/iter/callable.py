"""Pipes that call a function for each item."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rushlight.utils.data._utils.collate import default_collate
from rushlight.utils.data.datapipes._decorator import functional_datapipe
from rushlight.utils.data.datapipes.datapipe import IterDataPipe

__all__ = ["CollatorIterDataPipe", "MapperIterDataPipe"]


@functional_datapipe("map")
class MapperIterDataPipe(IterDataPipe):
    """fn of each item; of some columns of it, put into a column, where those are given."""

    def __init__(
        self, datapipe: IterDataPipe, fn: Callable, input_col: Any = None, output_col: Any = None
    ) -> None:
        super().__init__()
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        if isinstance(output_col, (list, tuple)):
            if len(output_col) > 1:
                raise ValueError("`output_col` must be a single-element list or tuple")
            output_col = output_col[0]
        self.datapipe = datapipe
        self.fn = fn
        self.input_col = input_col
        self.output_col = output_col

    def _applied(self, data: Any) -> Any:
        if self.input_col is None:
            return self.fn(data)
        several = isinstance(self.input_col, (list, tuple))
        columns = self.input_col if several else [self.input_col]
        result = self.fn(*(data[column] for column in columns))
        changed = list(data) if isinstance(data, tuple) else data
        if self.output_col is None:
            changed[columns[0]] = result
            for column in sorted(columns[1:], reverse=True) if several else ():
                del changed[column]
        elif self.output_col == -1:
            changed.append(result)
        else:
            changed[self.output_col] = result
        return tuple(changed) if isinstance(data, tuple) else changed

    def __iter__(self) -> Iterator:
        for data in self.datapipe:
            yield self._applied(data)

    def __len__(self) -> int:
        return len(self.datapipe)


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe):
    """Batches as tensors: collate_fn of each, default_collate unless given."""

    def __init__(
        self,
        datapipe: IterDataPipe,
        conversion: Callable | None = default_collate,
        collate_fn: Callable | None = None,
    ) -> None:
        super().__init__(datapipe, fn=collate_fn or conversion)
