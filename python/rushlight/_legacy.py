"""Functions under rushlight that old programs call, or that say what this build is."""

from __future__ import annotations

from typing import Any

import rushlight as torch
from rushlight import _C, Tensor
from rushlight._tensor import DisableTorchFunction, DisableTorchFunctionSubclass
from rushlight.storage import FloatStorage as Storage

__all__ = ["DisableTorchFunction", "DisableTorchFunctionSubclass", "Storage"]

has_lapack = True
has_mkl = False
has_openmp = False
has_spectral = True


class AcceleratorError(RuntimeError):
    """An error of a device's library."""


class FatalError(Exception):
    """An error that only the process that made it can handle."""


class JITException(Exception):
    """An error of a program that was compiled by jit."""


def compiled_with_cxx11_abi() -> bool:
    """Whether the library was built with the C++11 ABI: always."""
    return True


def get_device(input: Tensor) -> int:
    """The index of the tensor's device, -1 for the CPU."""
    return input.get_device()


def is_conj(input: Tensor) -> bool:
    """Whether the tensor is a conjugate that has not been computed."""
    return input.is_conj()


def is_neg(input: Tensor) -> bool:
    """Whether the tensor is a negative that has not been computed."""
    return input.is_neg()


def is_distributed(input: Tensor) -> bool:
    """False: no tensor is spread over processes by itself."""
    return input.is_distributed()


def is_vulkan_available() -> bool:
    """False: there is no Vulkan device."""
    return False


def detach_(input: Tensor) -> Tensor:
    """Cuts the tensor itself from the tape."""
    return input.detach_()


def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """The product of matrices (deprecated: see linalg.multi_dot)."""
    if len(matrices) == 1 and not isinstance(matrices[0], Tensor):
        matrices = tuple(matrices[0])
    if _C._has_torch_function(matrices):
        return _C._handle_torch_function(chain_matmul, matrices, matrices, {"out": out})
    if len(matrices) == 1:
        return matrices[0]
    if out is None:
        return torch.linalg.multi_dot(matrices)
    return torch.linalg.multi_dot(matrices, out=out)


def frobenius_norm(
    input: Tensor, dim: Any, keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """The root of the sum of squares over dimensions; over all where dim is empty."""
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    return torch.linalg.vector_norm(input, 2, dims or None, keepdim, out=out)


def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """The norm over all dimensions but one, kept for broadcasting; over all where dim is -1."""
    if dim == -1:
        return v.norm(pow)
    others = [d for d in range(v.dim()) if d != dim % v.dim()]
    return torch.linalg.vector_norm(v, pow, others, keepdim=True) if others else v.abs()


def get_autocast_cpu_dtype() -> torch.dtype:
    """What autocast converts to on the CPU (deprecated: see get_autocast_dtype)."""
    return torch.get_autocast_dtype("cpu")


def get_autocast_gpu_dtype() -> torch.dtype:
    """What autocast converts to on a GPU (deprecated: see get_autocast_dtype)."""
    return torch.get_autocast_dtype("cuda")


def is_autocast_cpu_enabled() -> bool:
    """Whether autocast is on for the CPU (deprecated: see is_autocast_enabled)."""
    return torch.is_autocast_enabled("cpu")


_REMOVED = (
    "This function was deprecated since version 1.9 and is now removed. "
    "Use `torch.linalg.{}`{} instead."
)


def lstsq(input: Tensor, A: Tensor, *, out: Any = None) -> Any:
    """Removed: linalg.lstsq has its place."""
    raise RuntimeError(_REMOVED.format("lstsq", ", whose arguments are reversed,"))


def solve(input: Tensor, A: Tensor, *, out: Any = None) -> Any:
    """Removed: linalg.solve has its place."""
    raise RuntimeError(_REMOVED.format("solve", ", whose arguments are reversed,"))


def eig(self: Tensor, /, eigenvectors: bool = False, *, e: Any = None, v: Any = None) -> Any:
    """Removed: linalg.eig has its place."""
    raise RuntimeError(_REMOVED.format("eig", ", whose results are complex,"))


def matrix_rank(
    input: Tensor, tol: float | None = None, symmetric: bool = False, *, out: Any = None
) -> Any:
    """Removed: linalg.matrix_rank has its place."""
    raise RuntimeError(_REMOVED.format("matrix_rank", ", where symmetric is called hermitian,"))
