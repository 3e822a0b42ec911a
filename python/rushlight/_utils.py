"""What pickles call to make tensors and parameters again, under the names in PyTorch's files."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

import rushlight as torch
from rushlight import _C


def _rebuild_tensor(storage, storage_offset: int, size: tuple, stride: tuple) -> torch.Tensor:
    return _C._tensor_of_storage(storage.untyped(), storage.dtype, storage_offset, size, stride)


def _rebuild_tensor_v2(
    storage,
    storage_offset: int,
    size: tuple,
    stride: tuple,
    requires_grad: bool,
    backward_hooks: OrderedDict,
    metadata: object = None,
) -> torch.Tensor:
    tensor = _rebuild_tensor(storage, storage_offset, size, stride)
    if requires_grad:
        tensor.requires_grad_()
    return tensor


def _rebuild_tensor_v3(
    storage,
    storage_offset: int,
    size: tuple,
    stride: tuple,
    requires_grad: bool,
    backward_hooks: OrderedDict,
    dtype: torch.dtype,
    metadata: object = None,
) -> torch.Tensor:
    tensor = _C._tensor_of_storage(storage, dtype, storage_offset, size, stride)
    if requires_grad:
        tensor.requires_grad_()
    return tensor


def _rebuild_meta_tensor_no_storage(
    dtype: torch.dtype, size: tuple, stride: tuple, requires_grad: bool
) -> torch.Tensor:
    tensor = torch.empty_strided(size, stride, dtype=dtype, device="meta")
    return tensor.requires_grad_() if requires_grad else tensor


def _rebuild_parameter(
    data: torch.Tensor, requires_grad: bool, backward_hooks: OrderedDict
) -> torch.Tensor:
    return torch.nn.Parameter(data, requires_grad)


def _set_obj_state(obj: object, state: object) -> object:
    """Puts back what `__getstate__` of an object with attributes and slots gave."""
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    if attributes:
        obj.__dict__.update(attributes)
    for name, value in (slots or {}).items():
        setattr(obj, name, value)
    return obj


def _rebuild_parameter_with_state(
    data: torch.Tensor, requires_grad: bool, backward_hooks: OrderedDict, state: object
) -> torch.Tensor:
    return _set_obj_state(torch.nn.Parameter(data, requires_grad), state)


def _get_available_device_type() -> str | None:
    """The accelerator that is there, None where there is none."""
    found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return None if found is None else found.type


def _get_device_module(device_type: str):
    """The module of a kind of device, as rushlight.cpu."""
    module = getattr(torch, device_type, None)
    if module is None:
        raise RuntimeError(
            f"Device '{device_type}' does not have a corresponding module registered as "
            f"'torch.{device_type}'."
        )
    return module


def _element_size(dtype: torch.dtype) -> int:
    """How many bytes an element takes."""
    return dtype.itemsize


def _flatten_dense_tensors(tensors: Iterable[torch.Tensor]) -> torch.Tensor:
    """The elements of all tensors in one vector, in their order; tensors of one dtype."""
    return torch.cat([tensor.contiguous().view(-1) for tensor in tensors])


def _unflatten_dense_tensors(
    flat: torch.Tensor, tensors: Iterable[torch.Tensor]
) -> tuple[torch.Tensor, ...]:
    """Parts of a vector, in the shapes of these tensors; views of it."""
    shapes = [tensor.shape for tensor in tensors]
    parts = flat.split([shape.numel() for shape in shapes])
    return tuple(part.view(shape) for part, shape in zip(parts, shapes, strict=True))
