"""Modules whose parameters are spread over processes; there are none in this build."""

from __future__ import annotations

from rushlight.distributed._absent import define

__all__ = define(
    globals(),
    "fully_shard register_fsdp_forward_method",
    "CPUOffload CPUOffloadPolicy FSDPModule FullOptimStateDictConfig FullStateDictConfig "
    "FullyShardedDataParallel LocalStateDictConfig MixedPrecision MixedPrecisionPolicy "
    "OffloadPolicy ShardedOptimStateDictConfig ShardedStateDictConfig UnshardHandle",
)
