"""Distributed training is not part of this build; these functions say so.

Programs ask `is_available()` and `is_initialized()` before they use more. What needs a group of
processes raises the error that PyTorch raises before `init_process_group`.
"""

from __future__ import annotations

import enum
from typing import Any, NoReturn

__all__ = [
    "ReduceOp", "barrier", "destroy_process_group", "get_backend", "get_rank", "get_world_size",
    "init_process_group", "is_available", "is_backend_available", "is_gloo_available",
    "is_initialized", "is_mpi_available", "is_nccl_available", "is_torchelastic_launched",
    "is_ucc_available", "is_xccl_available",
]  # fmt: skip


class ReduceOp:
    """How values of several processes are combined."""

    class RedOpType(enum.IntEnum):
        """The operations."""

        SUM = 0
        AVG = 1
        PRODUCT = 2
        MIN = 3
        MAX = 4
        BAND = 5
        BOR = 6
        BXOR = 7
        PREMUL_SUM = 8

    SUM = RedOpType.SUM
    AVG = RedOpType.AVG
    PRODUCT = RedOpType.PRODUCT
    MIN = RedOpType.MIN
    MAX = RedOpType.MAX
    BAND = RedOpType.BAND
    BOR = RedOpType.BOR
    BXOR = RedOpType.BXOR
    PREMUL_SUM = RedOpType.PREMUL_SUM


def is_available() -> bool:
    """False: this build has no distributed training."""
    return False


def is_initialized() -> bool:
    """False: there is no group of processes."""
    return False


def is_torchelastic_launched() -> bool:
    """False: no launcher of processes started this one for a group."""
    return False


def is_backend_available(backend: str) -> bool:
    """False, whatever the back end."""
    return False


def is_nccl_available() -> bool:
    """False."""
    return False


def is_gloo_available() -> bool:
    """False."""
    return False


def is_mpi_available() -> bool:
    """False."""
    return False


def is_ucc_available() -> bool:
    """False."""
    return False


def is_xccl_available() -> bool:
    """False."""
    return False


def init_process_group(backend: str | None = None, *args: Any, **kwargs: Any) -> NoReturn:
    """Raises RuntimeError: this build has no distributed training."""
    raise RuntimeError(
        "init_process_group: Rushlight was built without distributed training; "
        f"back end {backend!r} cannot be used, torch.distributed.is_available() is False"
    )


def _no_group(name: str) -> NoReturn:
    raise ValueError(
        "Default process group has not been initialized, please make sure to call "
        f"init_process_group. ({name}: Rushlight was built without distributed training)"
    )


def get_rank(group: Any = None) -> int:
    """Raises ValueError: there is no group of processes."""
    _no_group("get_rank")


def get_world_size(group: Any = None) -> int:
    """Raises ValueError: there is no group of processes."""
    _no_group("get_world_size")


def get_backend(group: Any = None) -> str:
    """Raises ValueError: there is no group of processes."""
    _no_group("get_backend")


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> None:
    """Raises ValueError: there is no group of processes."""
    _no_group("barrier")


def destroy_process_group(group: Any = None) -> None:
    """Raises ValueError: there is no group of processes."""
    _no_group("destroy_process_group")
