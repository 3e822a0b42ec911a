"""Functions under rushlight that old programs call, or that say what this build is."""

from __future__ import annotations

import operator
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


class TensorType:
    """The type of tensors in annotations of programs for jit."""

    @staticmethod
    def get() -> TensorType:
        """The type of any tensor."""
        return _ANY_TENSOR

    @property
    def annotation_str(self) -> str:
        """The type as source says it."""
        return "Tensor"

    def __repr__(self) -> str:
        return "Tensor"


_ANY_TENSOR = TensorType()


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


def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Powers of the elements as columns (N, N), the highest first. See linalg.vander."""
    if not isinstance(x, Tensor):
        raise TypeError(f"vander(): argument 'x' must be Tensor, not {type(x).__name__}")
    if not isinstance(increasing, bool):
        raise TypeError(
            "vander(): argument 'increasing' (position 3) must be bool, not "
            f"{type(increasing).__name__}"
        )
    if x.dim() != 1:
        raise RuntimeError(f"x must be a one-dimensional tensor, got {x.dim()} dimensions")
    count = x.numel() if N is None else operator.index(N)
    if count < 0:
        raise RuntimeError(f"N must be non-negative, got {count}")
    if count < 2:
        dtype = x.dtype if x.is_floating_point() or x.is_complex() else torch.int64
        return torch.ones((x.numel(), count), dtype=dtype, device=x.device)
    powers = torch.linalg.vander(x, N=count)
    return powers if increasing else powers.flip(-1)


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


def get_autocast_ipu_dtype() -> torch.dtype:
    """What autocast converts to on an IPU (deprecated: see get_autocast_dtype)."""
    return torch.get_autocast_dtype("ipu")


def get_autocast_xla_dtype() -> torch.dtype:
    """What autocast converts to on an XLA device (deprecated: see get_autocast_dtype)."""
    return torch.get_autocast_dtype("xla")


def is_autocast_ipu_enabled() -> bool:
    """Whether autocast is on for IPUs (deprecated: see is_autocast_enabled)."""
    return torch.is_autocast_enabled("ipu")


def is_autocast_xla_enabled() -> bool:
    """Whether autocast is on for XLA devices (deprecated: see is_autocast_enabled)."""
    return torch.is_autocast_enabled("xla")


def set_autocast_cpu_dtype(dtype: torch.dtype) -> None:
    """Sets what autocast converts to on the CPU (deprecated: see set_autocast_dtype)."""
    torch.set_autocast_dtype("cpu", dtype)


def set_autocast_gpu_dtype(dtype: torch.dtype) -> None:
    """Sets what autocast converts to on a GPU (deprecated: see set_autocast_dtype)."""
    torch.set_autocast_dtype("cuda", dtype)


def set_autocast_ipu_dtype(dtype: torch.dtype) -> None:
    """Sets what autocast converts to on an IPU (deprecated: see set_autocast_dtype)."""
    torch.set_autocast_dtype("ipu", dtype)


def set_autocast_xla_dtype(dtype: torch.dtype) -> None:
    """Sets what autocast converts to on an XLA device (deprecated: see set_autocast_dtype)."""
    torch.set_autocast_dtype("xla", dtype)


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Turns autocast on or off for the CPU (deprecated: see set_autocast_enabled)."""
    torch.set_autocast_enabled("cpu", enabled)


def set_autocast_ipu_enabled(enabled: bool) -> None:
    """Turns autocast on or off for IPUs (deprecated: see set_autocast_enabled)."""
    torch.set_autocast_enabled("ipu", enabled)


def set_autocast_xla_enabled(enabled: bool) -> None:
    """Turns autocast on or off for XLA devices (deprecated: see set_autocast_enabled)."""
    torch.set_autocast_enabled("xla", enabled)


def cudnn_is_acceptable(input: Tensor) -> bool:
    """False: there is no cuDNN for tensors on the CPU."""
    return False


def dsmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices: (M, K) by (K, N)."""
    return torch.mm(input, mat2)


def spmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices: (M, K) by (K, N)."""
    return torch.mm(input, mat2)


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


def symeig(
    input: Tensor, eigenvectors: bool = False, upper: bool = True, *, out: Any = None
) -> Any:
    """Removed: linalg.eigh has its place."""
    raise RuntimeError(_REMOVED.format("eigh", " or `torch.linalg.eigvalsh`"))


def matrix_rank(
    input: Tensor, tol: float | None = None, symmetric: bool = False, *, out: Any = None
) -> Any:
    """Removed: linalg.matrix_rank has its place."""
    raise RuntimeError(_REMOVED.format("matrix_rank", ", where symmetric is called hermitian,"))


def _assert(condition: Any, message: str) -> None:
    """An AssertionError with the message, unless the condition holds."""
    if type(condition) is not Tensor and _C._has_torch_function((condition,)):
        given = (condition,)
        return _C._handle_torch_function(_assert, given, (condition, message), {})
    if not condition:
        raise AssertionError(message)
    return None


def _assert_async(condition: Tensor, message: str | None = None) -> None:
    """A RuntimeError, unless the one element of the tensor is not zero."""
    if condition.numel() != 1:
        raise RuntimeError(
            f"_assert_async: expected a tensor with one element, got {condition.numel()}"
        )
    if not condition:
        default = "Expected Tensor with single nonzero value, but got zero"
        raise RuntimeError(default if message is None else message)


def _shape_as_tensor(self: Tensor) -> Tensor:
    """The sizes, as a tensor of integers."""
    return torch.tensor(tuple(self.shape), dtype=torch.int64)


def _text(message: Any, otherwise: str) -> str:
    if message is None:
        return otherwise
    return str(message() if callable(message) else message)


_UNTOLD = "Expected cond to be True, but got False."


def _check_with(error_type: type, cond: Any, message: Any = None) -> None:
    """An error of a type, with what message() gives, unless the condition holds."""
    if not isinstance(cond, (bool, torch.SymBool)):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if not cond:
        raise error_type(_text(message, _UNTOLD))


def _check(cond: Any, message: Any = None) -> None:
    """A RuntimeError, with what message() gives, unless the condition holds."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond: Any, message: Any = None) -> None:
    """An IndexError, unless the condition holds."""
    _check_with(IndexError, cond, message)


def _check_value(cond: Any, message: Any = None) -> None:
    """A ValueError, unless the condition holds."""
    _check_with(ValueError, cond, message)


def _check_type(cond: Any, message: Any = None) -> None:
    """A TypeError, unless the condition holds."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: Any, message: Any = None) -> None:
    """A NotImplementedError, unless the condition holds."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i: Any, message: Any = None, *, max: int | None = None) -> None:
    """A RuntimeError, unless the number can be a size."""
    _check(i >= 0 and (max is None or i <= max), message)


def _check_tensor_all_with(error_type: type, cond: Any, message: Any = None) -> None:
    """An error of a type, unless all elements of a bool tensor hold."""
    if not isinstance(cond, Tensor) or cond.dtype != torch.bool:
        raise TypeError(f"cond must be a bool tensor, but got {getattr(cond, 'dtype', type(cond))}")
    _check_with(error_type, bool(cond.all()), message)


def _check_tensor_all(cond: Any, message: Any = None) -> None:
    """A RuntimeError, unless all elements of a bool tensor hold."""
    _check_tensor_all_with(RuntimeError, cond, message)


def _convert_indices_from_coo_to_csr(
    input: Tensor, size: int, *, out_int32: bool = False
) -> Tensor:
    """Where each of `size` rows begins in sorted row numbers (N,), and N itself: (size + 1,)."""
    starts = torch.zeros(size + 1, dtype=torch.int32 if out_int32 else torch.int64)
    starts[1:] = torch.bincount(input, minlength=size).cumsum(0)
    return starts


def _convert_indices_from_csr_to_coo(
    crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    """Row and column of each element, (2, N), from where rows begin; transposed, column and row."""
    rows = torch.repeat_interleave(crow_indices.diff())
    pair = (col_indices, rows) if transpose else (rows, col_indices)
    return torch.stack([part.to(torch.int32 if out_int32 else torch.int64) for part in pair])
