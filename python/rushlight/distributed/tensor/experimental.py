"""What may change about tensors in parts; there are none in this build."""

from __future__ import annotations

from rushlight.distributed._absent import define

__all__ = define(globals(), "implicit_replication local_map register_sharding")
