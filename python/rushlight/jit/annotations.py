"""Types that scripts are annotated with."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: UP035 (names of its own)

__all__ = [
    "BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "Dict", "List", "Optional",
    "Tuple", "Union",
]  # fmt: skip


class BroadcastingListCls:
    """`BroadcastingListN[int]`: a list of N numbers, or one number that stands for all."""

    def __getitem__(self, types: Any) -> None:
        return None


BroadcastingList1 = BroadcastingListCls()
BroadcastingList2 = BroadcastingListCls()
BroadcastingList3 = BroadcastingListCls()
