"""Calls of functions in other processes; there are none in this build."""

from __future__ import annotations

from rushlight.distributed._absent import define

__all__ = define(
    globals(),
    "get_worker_info init_rpc remote rpc_async rpc_sync shutdown",
    "BackendType PyRRef RRef RpcBackendOptions TensorPipeRpcBackendOptions WorkerInfo",
)
__all__ += ["is_available"]


def is_available() -> bool:
    """False: this build has no distributed training."""
    return False
