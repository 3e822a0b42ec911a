"""Distributed training is not part of this build; these functions say so.

Programs ask `is_available()` and `is_initialized()` before they use more. What needs a group of
processes raises the error that PyTorch raises before `init_process_group`.
"""

from __future__ import annotations

import enum
import importlib
from datetime import timedelta
from typing import Any, NoReturn

from rushlight.distributed._absent import define, no_group
from rushlight.distributed.device_mesh import DeviceMesh, init_device_mesh

__all__ = [
    "Backend", "DeviceMesh", "GroupMember", "ReduceOp", "default_pg_timeout",
    "destroy_process_group", "group", "init_device_mesh", "init_process_group", "is_available",
    "is_backend_available", "is_gloo_available", "is_initialized", "is_mpi_available",
    "is_nccl_available", "is_torchelastic_launched", "is_ucc_available", "is_xccl_available",
]  # fmt: skip
__all__ += define(
    globals(),
    "all_gather all_gather_coalesced all_gather_into_tensor all_gather_object all_reduce "
    "all_reduce_coalesced all_to_all all_to_all_single barrier batch_isend_irecv broadcast "
    "broadcast_object_list gather gather_object get_backend get_backend_config get_global_rank "
    "get_group_rank get_process_group_ranks get_rank get_world_size irecv isend "
    "monitored_barrier new_group new_subgroups new_subgroups_by_enumeration recv "
    "recv_object_list reduce reduce_scatter reduce_scatter_tensor rendezvous scatter "
    "scatter_object_list send send_object_list split_group",
    "FileStore HashStore P2POp PrefixStore ProcessGroup Store TCPStore Work",
)

default_pg_timeout = timedelta(minutes=30)


class Backend(str):
    """The name of a back end, in small letters."""

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    UCC = "ucc"
    MPI = "mpi"
    XCCL = "xccl"

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string-ish: {name}")
        return super().__new__(cls, name.lower())


class GroupMember:
    """Who belongs to a group: there is none, so WORLD is None."""

    WORLD = None
    NON_GROUP_MEMBER = -100


group = GroupMember


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


def destroy_process_group(group: Any = None) -> None:
    """Raises ValueError: there is no group of processes."""
    no_group("destroy_process_group")


def __getattr__(name: str) -> Any:
    if name in ("distributed_c10d", "fsdp", "nn", "rpc", "tensor"):
        return importlib.import_module(f"rushlight.distributed.{name}")
    raise AttributeError(f"module 'rushlight.distributed' has no attribute '{name}'")
