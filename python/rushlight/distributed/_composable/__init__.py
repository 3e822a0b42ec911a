"""The older home of rushlight.distributed.fsdp.fully_shard."""

from __future__ import annotations

from rushlight.distributed.fsdp import fully_shard

__all__ = ["fully_shard"]
