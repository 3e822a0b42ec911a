"""Pipes that give each of several readers its share."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Any

from rushlight.utils.data.datapipes._decorator import functional_datapipe
from rushlight.utils.data.datapipes.datapipe import IterDataPipe

__all__ = ["SHARDING_PRIORITIES", "ShardingFilterIterDataPipe"]


class SHARDING_PRIORITIES(IntEnum):
    """Who shares: processes of a job first, then workers of a loader."""

    DEFAULT = 1
    DISTRIBUTED = 2
    MULTIPROCESSING = 3


@functional_datapipe("sharding_filter")
class ShardingFilterIterDataPipe(IterDataPipe):
    """Every n-th item, where n readers share; a data loader says so to the pipes of its workers."""

    def __init__(self, source_datapipe: IterDataPipe, sharding_group_filter: Any = None) -> None:
        self.source_datapipe = source_datapipe
        self.sharding_group_filter = sharding_group_filter
        self.groups: dict[int, tuple[int, int]] = {}

    def is_shardable(self) -> bool:
        """True: apply_sharding is for this pipe."""
        return True

    def apply_sharding(
        self,
        num_of_instances: int,
        instance_id: int,
        sharding_group: SHARDING_PRIORITIES = SHARDING_PRIORITIES.DEFAULT,
    ) -> None:
        """Makes the pipe give the items of one of several readers."""
        if instance_id >= num_of_instances:
            raise ValueError(
                f"instance_id({instance_id}) should be smaller than num_of_instances"
                f"({num_of_instances})"
            )
        default = SHARDING_PRIORITIES.DEFAULT
        others = [
            group for group in self.groups if (group == default) != (sharding_group == default)
        ]
        if others:
            raise RuntimeError(
                "ShardingFilter cannot mix DEFAULT and non DEFAULT groups"
                if sharding_group != default
                else "ShardingFilter has been applied to other groups before"
            )
        self.groups[sharding_group] = (num_of_instances, instance_id)

    def _share(self) -> tuple[int, int]:
        """How many readers there are in all, and which one this is."""
        count, own = 1, 0
        for group in sorted(self.groups, reverse=True):
            if self.sharding_group_filter in (None, group):
                readers, number = self.groups[group]
                own += count * number
                count *= readers
        return count, own

    def __iter__(self) -> Iterator:
        count, own = self._share()
        for place, item in enumerate(self.source_datapipe):
            if place % count == own:
                yield item

    def __len__(self) -> int:
        count, own = self._share()
        whole = len(self.source_datapipe)
        return whole // count + (1 if own < whole % count else 0)
