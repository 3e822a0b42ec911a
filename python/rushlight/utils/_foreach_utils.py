"""Lists of tensors in groups that operators of lists take."""

from __future__ import annotations

from rushlight import Tensor


def _group_tensors_by_device_and_dtype(
    tensorlistlist: list[list[Tensor | None]], with_indices: bool = False
) -> dict:
    """The rows of several lists, by device and dtype of the first list's tensor: for each group
    the lists, and the places where with_indices.
    """
    groups: dict = {}
    for place, row in enumerate(zip(*tensorlistlist, strict=True)):
        first = row[0]
        if first is None:
            raise RuntimeError("the first list must have a tensor in each place")
        lists, places = groups.setdefault(
            (first.device, first.dtype), ([[] for _ in tensorlistlist], [])
        )
        for column, item in zip(lists, row, strict=True):
            column.append(item)
        if with_indices:
            places.append(place)
    return groups
