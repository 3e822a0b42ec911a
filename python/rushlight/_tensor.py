"""The parts of Tensor that are written in Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from rushlight import _C
from rushlight._C import Tensor


class DisableTorchFunctionSubclass:
    """Context in which classes' __torch_function__ is not asked; modes still are."""

    _state = 1

    def __init__(self) -> None:
        self._saved: list[int] = []

    def __enter__(self) -> None:
        self._saved.append(_C._set_torch_function_state(max(self._state, _current_state())))

    def __exit__(self, *_: object) -> None:
        _C._set_torch_function_state(self._saved.pop())


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """Context in which no __torch_function__ is asked, neither of classes nor of modes."""

    _state = 2


def _current_state() -> int:
    return _C._get_torch_function_state()


_C.DisableTorchFunctionSubclass = DisableTorchFunctionSubclass
_C.DisableTorchFunction = DisableTorchFunction


def _is_torch_function_enabled() -> bool:
    return _current_state() == 0


_C._is_torch_function_enabled = _is_torch_function_enabled
_C._is_torch_function_all_disabled = lambda: _current_state() == 2
_C._is_torch_function_mode_enabled = lambda: _C._len_torch_function_stack() > 0


def _is_alias_of(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors share a storage."""
    return _C._storage_id(one) == _C._storage_id(other)


def _get_default_device() -> str:
    """The device of new tensors by its name."""
    from rushlight._device import get_default_device

    return str(get_default_device())


_C._is_alias_of = _is_alias_of
_C._get_default_device = _get_default_device
_C._get_accelerator = lambda check=None: _C.device("cpu")


def _convert(result: object, cls: type) -> object:
    """The result with its plain tensors as objects of class `cls`; sequences item by item."""
    if cls is Tensor:
        return result
    if isinstance(result, Tensor) and not isinstance(result, cls):
        return result.as_subclass(cls)
    if isinstance(result, tuple) and hasattr(result, "n_fields"):
        return type(result)(tuple(_convert(item, cls) for item in result))
    if isinstance(result, (tuple, list)) and type(result) in (tuple, list):
        return type(result)(_convert(item, cls) for item in result)
    return result


_nowrap: set | None = None


def _default_nowrap_functions() -> set:
    """Functions whose result keeps the class it has."""
    global _nowrap
    if _nowrap is None:
        names = [name for name in ("_base", "grad", "_grad") if hasattr(Tensor, name)]
        _nowrap = {getattr(Tensor, name).__get__ for name in names}
    return _nowrap


@classmethod
def _torch_function(
    cls: type,
    func: Callable,
    types: Iterable[type],
    args: tuple = (),
    kwargs: dict | None = None,
) -> object:
    """Runs func on plain tensors and gives the results the class that the call is for."""
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        result = func(*args, **(kwargs or {}))
    if func in _default_nowrap_functions():
        return result
    return _convert(result, cls)


def _construct(*args: object, **kwargs: object) -> Tensor:
    """What the class call Tensor(...) makes: from sizes, from data, or from another tensor."""
    import rushlight as torch

    device = kwargs.pop("device", None)
    if not args and "size" in kwargs:
        args = tuple(kwargs.pop("size"))
    elif not args and "data" in kwargs:
        args = (kwargs.pop("data"),)
    if kwargs:
        raise TypeError(f"Tensor() got an unexpected keyword argument '{next(iter(kwargs))}'")
    dtype = torch.get_default_dtype()
    if not args:
        return torch.empty(0, dtype=dtype, device=device)
    first = args[0]
    if len(args) == 1 and isinstance(first, Tensor):
        return first.detach()
    if len(args) == 1 and isinstance(first, torch.Size):
        return torch.empty(first, dtype=dtype, device=device)
    if all(isinstance(size, int) for size in args):
        return torch.empty(args, dtype=dtype, device=device)
    if len(args) == 1:
        if isinstance(first, (float, complex)) or first is None:
            raise TypeError(f"new(): data must be a sequence (got {type(first).__name__})")
        return torch.tensor(first, dtype=dtype, device=device)
    raise TypeError("Tensor() takes sizes, or one sequence or tensor of data")


def _make_wrapper_subclass(
    cls: type,
    size: Iterable[int],
    strides: Iterable[int] | None = None,
    storage_offset: int | None = None,
    memory_format: object = None,
    dtype: object = None,
    layout: object = None,
    device: object = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    dispatch_sizes_strides_policy: str | None = None,
    dispatch_device: bool = False,
    dispatch_layout: bool = False,
    _extra_dispatch_keys: object = None,
    storage_size: int | None = None,
) -> Tensor:
    """A tensor of class cls with a shape and no memory: __torch_dispatch__ answers for it."""
    import rushlight as torch

    if dispatch_sizes_strides_policy is not None or dispatch_device or dispatch_layout:
        raise NotImplementedError(
            "_make_wrapper_subclass: sizes, strides, device and layout that the class computes "
            "(dispatch_sizes_strides_policy, dispatch_device, dispatch_layout) are not supported: "
            "they are given once"
        )
    if layout not in (None, torch.strided):
        raise NotImplementedError(f"_make_wrapper_subclass: layout {layout} is not supported")
    size = tuple(size)
    if strides is None:
        made = torch.empty(size, dtype=dtype, device="meta", memory_format=memory_format)
        strides = made.stride()
    offset = storage_offset or 0
    reach = sum((n - 1) * step for n, step in zip(size, strides)) + 1 if 0 not in size else 0
    with DisableTorchFunction(), torch.no_grad():
        base = torch.empty(offset + reach, dtype=dtype, device="meta")
        base = base.as_strided(size, tuple(strides), offset)
    made = _C._make_wrapper(cls, base, torch.device("cpu" if device is None else device))
    return made.requires_grad_() if requires_grad else made


def _dir(self: Tensor) -> list[str]:
    names = {*dir(type(self)), *self.__dict__} - {"volatile", "__cuda_array_interface__"}
    return sorted(names)


def _split(self: Tensor, split_size: int | list[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Views of this tensor cut along `dim`: into pieces of one size, or of the sizes given."""
    if _C._has_torch_function_unary(self):
        return _C._handle_torch_function(Tensor.split, (self,), (self, split_size), {"dim": dim})
    if isinstance(split_size, (list, tuple)):
        return _C._VariableFunctions.split_with_sizes(self, split_size, dim)
    return _C._VariableFunctions.split(self, split_size, dim)


def _norm(
    self: Tensor,
    p: float | str | None = "fro",
    dim: int | tuple[int, ...] | None = None,
    keepdim: bool = False,
    dtype: object = None,
) -> Tensor:
    """The matrix or vector norm; see rushlight.norm."""
    from rushlight.functional import norm

    return norm(self, p, dim, keepdim, dtype=dtype)


def _nonzero(self: Tensor, *, as_tuple: bool = False) -> Tensor | tuple[Tensor, ...]:
    """The positions of elements that are not zero; see rushlight.nonzero."""
    from rushlight.functional import nonzero

    return nonzero(self, as_tuple=as_tuple)


def _polygamma(self: Tensor, n: int) -> Tensor:
    """The n-th derivative of digamma; see rushlight.polygamma."""
    if _C._has_torch_function_unary(self):
        return _C._handle_torch_function(Tensor.polygamma, (self,), (self, n), {})
    return _C._VariableFunctions.polygamma(n, self)


def _polygamma_(self: Tensor, n: int) -> Tensor:
    """The n-th derivative of digamma, in place."""
    if _C._has_torch_function_unary(self):
        return _C._handle_torch_function(Tensor.polygamma_, (self,), (self, n), {})
    result = _C._VariableFunctions.polygamma(n, self)
    if not self.is_floating_point():
        raise RuntimeError(
            f"result type {result.dtype} can't be cast to the desired output type {self.dtype}"
        )
    return self.copy_(result)


def _real(self: Tensor) -> Tensor:
    """The real parts: the tensor itself, where it is real."""
    if _C._has_torch_function_unary(self):
        return _C._handle_torch_function(Tensor.real.__get__, (self,), (self,), {})
    return _C._VariableFunctions.real(self)


def _set_real(self: Tensor, value: Any) -> None:
    _C._VariableFunctions.real(self)[...] = value


def _imag(self: Tensor) -> Tensor:
    """The imaginary parts; an error for real dtypes, which have none."""
    if _C._has_torch_function_unary(self):
        return _C._handle_torch_function(Tensor.imag.__get__, (self,), (self,), {})
    return _C._VariableFunctions.imag(self)


def _set_imag(self: Tensor, value: Any) -> None:
    _C._VariableFunctions.imag(self)[...] = value


def _lu(self: Tensor, pivot: bool = True, get_infos: bool = False) -> tuple[Tensor, ...]:
    """L and U of P A = L U, and the rows exchanged; see rushlight.lu."""
    from rushlight.functional import lu

    return lu(self, pivot=pivot, get_infos=get_infos)


def _unique(
    self: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """The distinct elements, or slices along `dim`; see rushlight.unique."""
    from rushlight.functional import unique

    return unique(self, sorted, return_inverse, return_counts, dim)


def _unique_consecutive(
    self: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """The first of each run of equal elements; see rushlight.unique_consecutive."""
    from rushlight.functional import unique_consecutive

    return unique_consecutive(self, return_inverse, return_counts, dim)


def _rdiv(self: Tensor, other: Any) -> Tensor:
    """other / self, as old programs call it."""
    return self.reciprocal() * other


Tensor.__module__ = "rushlight"
Tensor.__torch_function__ = _torch_function
Tensor.__torch_dispatch__ = _C._disabled_torch_dispatch_impl
Tensor._make_wrapper_subclass = staticmethod(_make_wrapper_subclass)
Tensor.__dir__ = _dir
Tensor.__array_priority__ = 1000
Tensor.split = _split
Tensor.norm = _norm
Tensor.nonzero = _nonzero
Tensor.real = property(_real, _set_real)
Tensor.imag = property(_imag, _set_imag)
Tensor.polygamma = _polygamma
Tensor.polygamma_ = _polygamma_
Tensor.__rdiv__ = _rdiv
Tensor.lu = _lu
Tensor.unique = _unique
Tensor.unique_consecutive = _unique_consecutive
