"""What distributions share: broadcasting of parameters, probabilities and logits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

import rushlight as torch
from rushlight import Tensor

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

euler_constant = 0.57721566490153286060


def broadcast_all(*values: Tensor | int | float | bool) -> tuple[Tensor, ...]:
    """The values as tensors of one shape; numbers take dtype and device of the first tensor."""
    if not all(isinstance(v, (Tensor, int, float, bool)) or _foreign(v) for v in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects "
            "implementing __torch_function__."
        )
    if all(isinstance(v, Tensor) or _foreign(v) for v in values):
        return torch.broadcast_tensors(*values)
    options: dict[str, Any] = {"dtype": torch.get_default_dtype()}
    for value in values:
        if isinstance(value, Tensor):
            options = {"dtype": value.dtype, "device": value.device}
            break
    tensors = [
        v if isinstance(v, Tensor) or _foreign(v) else torch.tensor(v, **options) for v in values
    ]
    return torch.broadcast_tensors(*tensors)


def _foreign(value: object) -> bool:
    return hasattr(type(value), "__torch_function__")


def _standard_normal(
    shape: Sequence[int], dtype: torch.dtype | None, device: torch.device | str | int | None
) -> Tensor:
    return torch.normal(
        torch.zeros(shape, dtype=dtype, device=device),
        torch.ones(shape, dtype=dtype, device=device),
    )


def _sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """The sum over the `dim` rightmost dimensions."""
    if dim == 0:
        return value
    return value.reshape(value.shape[: value.dim() - dim] + (-1,)).sum(-1)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities: the sigmoid of log odds where binary, else softmax over the last dimension."""
    return torch.sigmoid(logits) if is_binary else torch.softmax(logits, dim=-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """`probs` kept away from 0 and 1 by the dtype's resolution."""
    eps = torch.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """The inverse of `logits_to_probs`, with the probabilities kept away from 0 and 1."""
    clamped = clamp_probs(probs)
    if is_binary:
        return torch.log(clamped) - torch.log1p(-clamped)
    return torch.log(clamped)


class lazy_property:
    """A method that runs once and leaves its result as an attribute in its place."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        update_wrapper(self, wrapped)  # type: ignore[arg-type]

    def __get__(self, instance: Any, obj_type: Any = None) -> Any:
        if instance is None:
            return _lazy_property_and_property(self.wrapped)
        with torch.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class _lazy_property_and_property(lazy_property, property):
    """What a lazy property is on the class, where tools look for properties."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        property.__init__(self, wrapped)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The lower triangle of (..., D, D), row by row; `diag` as in `torch.tril`."""
    n = mat.shape[-1]
    if diag < -n or diag >= n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    arange = torch.arange(n, device=mat.device)
    mask = arange < arange.view(-1, 1) + (diag + 1)
    return mat[..., mask]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """A lower triangular matrix whose elements, row by row, are `vec`."""
    length = vec.shape[-1]
    step = 1 + 2 * diag
    n = (-step + (step**2 + 8 * length + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    if round(n) - n > torch.finfo(vec.dtype).eps:
        raise ValueError(
            f"The size of last dimension is {vec.shape[-1]} which cannot be expressed as "
            "the lower triangular part of a square D x D matrix."
        )
    size = round(n)
    mat = vec.new_zeros(vec.shape[:-1] + torch.Size((size, size)))
    arange = torch.arange(size, device=vec.device)
    mask = arange < arange.view(-1, 1) + (diag + 1)
    mat[..., mask] = vec
    return mat


def _shape_of(parameter: Tensor, *given: object) -> torch.Size:
    """The batch shape of a parameter; empty where only numbers were given."""
    if all(isinstance(g, (int, float, bool)) for g in given):
        return torch.Size()
    return parameter.size()
