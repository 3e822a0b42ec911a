"""How tensors and storages are pickled for another process: as a descriptor of shared memory."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from multiprocessing import reduction
from multiprocessing.reduction import ForkingPickler
from typing import Any

import rushlight as torch
from rushlight import _C, Tensor
from rushlight.multiprocessing._strategy import get_sharing_strategy
from rushlight.storage import TypedStorage, UntypedStorage

# Descriptors that others were told the names of. Old ones are closed: they must not run out.
_told: deque[int] = deque()
_TOLD_AT_MOST = 256


class _Named:
    """A descriptor of the sender, by the name that the system has for it."""

    def __init__(self, descriptor: int) -> None:
        own = os.dup(descriptor)
        _told.append(own)
        if len(_told) > _TOLD_AT_MOST:
            os.close(_told.popleft())
        self.path = f"/proc/{os.getpid()}/fd/{own}"

    def detach(self) -> int:
        """A descriptor of this process."""
        try:
            return os.open(self.path, os.O_RDWR)
        except OSError as error:
            raise RuntimeError(
                f"shared memory {self.path} cannot be opened ({error.strerror}): with the sharing "
                f"strategy 'file_system' the sender must live, and have sent no more than "
                f"{_TOLD_AT_MOST} tensors since"
            ) from error


def _sent(descriptor: int) -> Any:
    if get_sharing_strategy() == "file_system":
        return _Named(descriptor)
    return reduction.DupFd(descriptor)


def reduce_storage(storage: UntypedStorage) -> tuple[Callable, tuple]:
    """The function and arguments that open the same memory in another process."""
    if storage.device.type == "meta":
        raise RuntimeError("Cannot pickle meta storage; try pickling a meta tensor instead")
    if storage.nbytes() == 0:
        return UntypedStorage, (0,)
    return rebuild_storage, (_sent(storage._share()), storage.nbytes())


def rebuild_storage(descriptor: Any, nbytes: int) -> UntypedStorage:
    """A storage over the memory that a descriptor stands for."""
    own = descriptor.detach()
    try:
        return UntypedStorage._from_descriptor(own, nbytes)
    finally:
        os.close(own)


def reduce_typed_storage(storage: TypedStorage) -> tuple[Callable, tuple]:
    """A typed storage as its bytes and dtype."""
    return rebuild_typed_storage, (storage._untyped_storage, storage.dtype)


def rebuild_typed_storage(untyped: UntypedStorage, dtype: torch.dtype) -> TypedStorage:
    """A typed storage over bytes."""
    return TypedStorage(wrap_storage=untyped, dtype=dtype)


def reduce_tensor(tensor: Tensor) -> tuple[Callable, tuple]:
    """A tensor as its class, storage and geometry."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd "
            "does not support crossing process boundaries.  If you just want to transfer the data, "
            "call detach() on the tensor before serializing (e.g., putting it on the queue)."
        )
    size, stride = tuple(tensor.shape), tensor.stride()
    if tensor.is_meta:
        return rebuild_meta_tensor, (type(tensor), size, stride, tensor.dtype, tensor.requires_grad)
    geometry = (tensor.storage_offset(), size, stride)
    return rebuild_tensor, (
        type(tensor),
        tensor.untyped_storage(),
        tensor.dtype,
        geometry,
        tensor.requires_grad,
        tensor.__dict__ or None,
    )


def _as_class(cls: type, tensor: Tensor, requires_grad: bool) -> Tensor:
    if cls is torch.nn.Parameter:
        return torch.nn.Parameter(tensor, requires_grad=requires_grad)
    if cls is not Tensor:
        tensor = Tensor._make_subclass(cls, tensor)
    return tensor.requires_grad_() if requires_grad else tensor


def rebuild_tensor(
    cls: type,
    storage: UntypedStorage,
    dtype: torch.dtype,
    geometry: tuple,
    requires_grad: bool,
    state: dict | None,
) -> Tensor:
    """A tensor over memory that another process shares."""
    made = _as_class(cls, _C._tensor_of_storage(storage, dtype, *geometry), requires_grad)
    if state:
        made.__dict__.update(state)
    return made


def rebuild_meta_tensor(
    cls: type, size: tuple, stride: tuple, dtype: torch.dtype, requires_grad: bool
) -> Tensor:
    """A tensor without numbers."""
    made = torch.empty_strided(size, stride, dtype=dtype, device="meta")
    return _as_class(cls, made, requires_grad)


_REDUCTIONS = {
    UntypedStorage: reduce_storage,
    TypedStorage: reduce_typed_storage,
    Tensor: reduce_tensor,
    torch.nn.Parameter: reduce_tensor,
}


def init_reductions() -> None:
    """Teaches the picklers of multiprocessing what tensors are."""
    for cls, reduce in _REDUCTIONS.items():
        ForkingPickler.register(cls, reduce)


def forget_reductions() -> None:
    """Makes the picklers of multiprocessing copy tensors again, in this process."""
    for cls in _REDUCTIONS:
        ForkingPickler._extra_reducers.pop(cls, None)
