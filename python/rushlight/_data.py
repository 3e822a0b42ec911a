"""Tensors of whatever holds data: asarray, from_dlpack and from_file."""

from __future__ import annotations

import enum
import warnings

import rushlight as torch
from rushlight import _C


class DLDeviceType(enum.IntEnum):
    """DLPack's device types."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17


def from_dlpack(
    ext_tensor: object,
    *,
    device: torch.device | str | None = None,
    copy: bool | None = None,
) -> torch.Tensor:
    """A tensor over the memory of another library's array.

    Args:
        ext_tensor: an object with `__dlpack__`, or a DLPack capsule.
        device: where the tensor shall be; only the CPU is offered.
        copy: True copies always, False never; None lets the producer decide.
    """
    if not hasattr(ext_tensor, "__dlpack__"):
        if device is not None or copy is not None:
            raise AssertionError("device and copy kwargs not supported when ext_tensor is capsule")
        return _C._from_dlpack(ext_tensor)
    kind = ext_tensor.__dlpack_device__()[0]
    if kind != DLDeviceType.kDLCPU:
        raise RuntimeError(f"from_dlpack: device type {int(kind)} is not offered, only the CPU's")
    if device is not None and torch.device(device).type != "cpu":
        raise RuntimeError(f"from_dlpack: cannot import to device {device}, only to the CPU")
    keywords: dict[str, object] = {"max_version": (1, 0)}
    if copy is not None:
        keywords["copy"] = copy
    try:
        capsule = ext_tensor.__dlpack__(**keywords)
    except TypeError:  # a producer older than DLPack 1.0
        if copy is not None:
            raise
        capsule = ext_tensor.__dlpack__()
    return _C._from_dlpack(capsule)


def asarray(
    obj: object,
    *,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
) -> torch.Tensor:
    """A tensor of a tensor, an array, a buffer, a number or nested sequences.

    Args:
        obj: the data.
        dtype: the elements' type; None keeps it, or infers it from numbers.
        device: where the tensor shall be; None keeps it.
        copy: True copies always, False never (ValueError where a copy is needed).
        requires_grad: whether gradients are wanted of the result; None: where they are of obj.
    """
    source = _shared(obj, dtype)
    if source is None:
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        made = torch.tensor(obj, dtype=dtype, device=device)
    else:
        made = _placed(source, dtype, device, copy)
        if requires_grad is None:
            if made.requires_grad:
                warnings.warn(
                    "torch.asarray: unspecified requires_grad now defaults to obj.requires_grad "
                    "instead of False. Pass requires_grad=False explicitly to get the old behavior "
                    "and silence this warning.",
                    stacklevel=2,
                )
            return made
        if made.requires_grad and not requires_grad:
            made = made.detach()
    return made.requires_grad_() if requires_grad else made


def _shared(obj: object, dtype: torch.dtype | None) -> torch.Tensor | None:
    """A tensor over the memory of obj, where it has memory to share."""
    if isinstance(obj, torch.Tensor):
        return obj
    if type(obj).__module__ == "numpy" and hasattr(obj, "__array_interface__"):
        return torch.as_tensor(obj)
    if hasattr(obj, "__dlpack__"):
        return from_dlpack(obj)
    if type(obj).__name__ == "PyCapsule":
        return _C._from_dlpack(obj)
    try:
        memoryview(obj)
    except TypeError:
        return None
    return torch.frombuffer(obj, dtype=dtype or torch.get_default_dtype())


def _placed(
    source: torch.Tensor,
    dtype: torch.dtype | None,
    device: torch.device | str | None,
    copy: bool | None,
) -> torch.Tensor:
    if copy is False:
        if device is not None and torch.device(device) != source.device:
            raise ValueError(
                f"can't alias tensor from device '{source.device}' to '{torch.device(device)}'."
            )
        if dtype is not None and dtype != source.dtype:
            names = [torch.empty(0, dtype=kind).type() for kind in (source.dtype, dtype)]
            short = [name.removeprefix("torch.").removesuffix("Tensor") for name in names]
            raise ValueError(f"can't alias tensor with dtype '{short[0]}' into dtype '{short[1]}'.")
        return source
    return source.to(device=device, dtype=dtype, copy=bool(copy))


def from_file(
    filename: str,
    shared: bool | None = None,
    size: int | None = 0,
    *,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | str | None = None,
    pin_memory: bool | None = False,
    requires_grad: bool | None = False,
) -> torch.Tensor:
    """A tensor of `size` elements over a file's bytes.

    shared: what is written reaches the file, which is made, or made longer, where it is too short;
    else writing changes the tensor's copies of pages only.
    """
    import mmap
    import os

    dtype = torch.get_default_dtype() if dtype is None else dtype
    wanted = (size or 0) * dtype.itemsize
    flags = os.O_RDWR | os.O_CREAT if shared else os.O_RDONLY
    try:
        descriptor = os.open(filename, flags, 0o666)
    except OSError as error:
        mode = "read-write" if shared else "read-only"
        raise RuntimeError(
            f"unable to open file <{filename}> in {mode} mode: {error.strerror} ({error.errno})"
        ) from error
    try:
        own = os.fstat(descriptor).st_size
        if own < wanted and not shared:
            raise RuntimeError(
                f"file <{filename}> size <{own}> is smaller than the required mapping size "
                f"<{wanted}>"
            )
        if own < wanted:
            os.ftruncate(descriptor, wanted)
        if wanted == 0:
            return torch.empty(0, dtype=dtype, device=device, requires_grad=bool(requires_grad))
        access = mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY
        bytes_of_file = mmap.mmap(descriptor, wanted, access=access)
    finally:
        os.close(descriptor)
    made = torch.frombuffer(bytes_of_file, dtype=dtype)
    if device is not None:
        made = made.to(device)
    return made.requires_grad_() if requires_grad else made
