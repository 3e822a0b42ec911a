"""MaskedTensor: data, and a mask of the same shape that says which elements are there.

Functions of one element keep the mask; functions of two need equal masks; reductions leave out what
is not there, and where nothing is, nor is the result. Views and joins go to data and mask alike.
Other functions are errors. Gradients are masked tensors, too.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import rushlight as torch
from rushlight import Tensor
from rushlight._C import DisableTorchFunctionSubclass
from rushlight.masked.maskedtensor.text import masked_text

__all__ = ["MaskedTensor", "is_masked_tensor"]

_UNARY = frozenset(
    "abs absolute acos acosh angle arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan "
    "atanh bitwise_not ceil clamp clip conj_physical cos cosh deg2rad digamma erf erfc erfinv exp "
    "exp2 expm1 fix floor frac isnan lgamma log log10 log1p log2 logit nan_to_num neg negative "
    "positive rad2deg reciprocal round rsqrt sgn sigmoid sign signbit sin sinc sinh sqrt square "
    "tan tanh trunc __neg__ __abs__ __pos__ __invert__ "
    "bfloat16 bool byte char clone contiguous cpu detach double float half int long short to type "
    "to_dense ones_like".split()
)
_BINARY = frozenset(
    "add sub subtract mul multiply div divide true_divide floor_divide fmod remainder pow atan2 "
    "arctan2 bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift logaddexp "
    "logaddexp2 nextafter minimum maximum fmin fmax eq ne lt le gt ge greater greater_equal less "
    "less_equal not_equal __add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ "
    "__rtruediv__ __floordiv__ __mod__ __pow__ __rpow__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ "
    "__and__ __or__ __xor__ rsub".split()
)
_REDUCTIONS = frozenset("sum mean prod amax amin argmax argmin std var all".split())
_MOVES = frozenset(
    "__getitem__ cat chunk concat diagonal expand flatten flip index_select movedim narrow permute "
    "ravel reshape roll select split squeeze stack swapaxes swapdims t transpose unflatten "
    "unsqueeze view".split()
)
_VIEWS = ("H", "T", "data", "mH", "mT")  # properties
_AS_TENSORS = frozenset(
    "__get__ __hash__ __len__ __set__ backward data_ptr dim element_size get_device is_complex "
    "is_contiguous is_floating_point item ndimension nelement numel register_hook requires_grad_ "
    "retain_grad size storage_offset stride __bool__ __float__ __int__".split()
)


def is_masked_tensor(obj: object, /) -> bool:
    """Whether obj is a MaskedTensor."""
    return isinstance(obj, MaskedTensor)


def _check(data: Any, mask: Any) -> None:
    for name, value in (("data", data), ("mask", mask)):
        if not isinstance(value, Tensor) or isinstance(value, MaskedTensor):
            raise TypeError(f"{name} must be a Tensor")
    if mask.dtype != torch.bool:
        raise TypeError("mask must have dtype bool.")
    if data.dtype.is_complex or data.dtype.itemsize < 2 and data.is_floating_point():
        raise TypeError(f"{data.dtype} is not supported in MaskedTensor.")
    if data.shape != mask.shape:
        raise ValueError("data.size() must equal mask.size()")


def _data(value: Any) -> Any:
    return value.get_data() if isinstance(value, MaskedTensor) else value


class MaskedTensor(Tensor):
    """Data and a mask of its shape; True: the element is there.

    MaskedTensor(data, mask, requires_grad=False) is a leaf over the memory of data.
    """

    _mask: Tensor

    def __new__(cls, data: Tensor, mask: Tensor, requires_grad: bool = False) -> MaskedTensor:
        """A leaf, apart from the graph of data."""
        _check(data, mask)
        if data.requires_grad:
            warnings.warn(
                "It is not recommended to create a MaskedTensor with a tensor that requires_grad. "
                "To avoid this, you can use data.detach().clone()",
                UserWarning,
                stacklevel=2,
            )
        made = data.detach().as_subclass(cls).requires_grad_(requires_grad)
        made._mask = mask
        return made

    def __init__(self, data: Tensor, mask: Tensor, requires_grad: bool = False) -> None:
        pass

    @staticmethod
    def _from_values(data: Tensor, mask: Tensor) -> MaskedTensor:
        """data and mask, in the graph of data."""
        _check(data, mask)
        made = data.as_subclass(MaskedTensor)
        made._mask = mask
        return made

    def get_mask(self) -> Tensor:
        """Which elements are there."""
        return self._mask

    def get_data(self) -> Tensor:
        """The data, also of elements that are not there, within the graph."""
        with DisableTorchFunctionSubclass():
            return self.view_as(self).as_subclass(Tensor)

    def to_tensor(self, value: float) -> Tensor:
        """The data, with a value in the place of each element that is not there."""
        return self.get_data().masked_fill(~self._mask, value)

    @property
    def grad(self) -> MaskedTensor | None:
        """The gradient with the same mask, or None."""
        with DisableTorchFunctionSubclass():
            found = Tensor.grad.__get__(self)
        return None if found is None else MaskedTensor._from_values(_plain(found), self._mask)

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        with DisableTorchFunctionSubclass():
            Tensor.grad.__set__(self, value)

    def __repr__(self, *, tensor_contents: object = None) -> str:
        return f"MaskedTensor({masked_text(self.get_data().detach(), self._mask)})"

    __str__ = __repr__

    def __format__(self, form: str) -> str:
        return repr(self)

    @classmethod
    def __torch_function__(
        cls, func: Callable, types: tuple, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs = kwargs or {}
        name = func.__name__
        base = name[:-1] if name.endswith("_") and not name.endswith("__") else name
        if name == "__get__" and getattr(func.__self__, "__name__", "") in _VIEWS:
            return _move(func, args, kwargs)
        if name in _AS_TENSORS:
            with DisableTorchFunctionSubclass():
                return func(*args, **kwargs)
        if base in _UNARY:
            return _unary(func, name, args, kwargs)
        if base in _BINARY:
            return _binary(func, args, kwargs)
        if name in _REDUCTIONS:
            return _reduce(name, *args, **kwargs)
        if name in _MOVES:
            return _move(func, args, kwargs)
        if name in ("softmax", "_softmax"):
            return _softmax(*args, **kwargs)
        if name == "where" and len(args) == 3:
            return _where(*args)
        return NotImplemented


def _plain(value: Tensor) -> Tensor:
    with DisableTorchFunctionSubclass():
        return value.as_subclass(Tensor)


def _unary(func: Callable, name: str, args: tuple, kwargs: dict) -> Any:
    if kwargs.get("out") is not None:
        raise ValueError(f"{name}: a MaskedTensor cannot be written to `out`")
    given = args[0]
    if name.endswith("_") and not name.endswith("__"):
        with DisableTorchFunctionSubclass():
            func(*args, **kwargs)
        return given
    return MaskedTensor._from_values(func(_data(given), *args[1:], **kwargs), given._mask)


def _binary(func: Callable, args: tuple, kwargs: dict) -> Any:
    masks = [value._mask for value in args if isinstance(value, MaskedTensor)]
    if len(masks) == 2 and not torch.equal(*masks):
        raise ValueError(
            "Input masks must match. If you need support for this, please open an issue on Github."
        )
    if func.__name__.endswith("_") and not func.__name__.endswith("__"):
        with DisableTorchFunctionSubclass():
            func(args[0], *map(_data, args[1:]), **kwargs)
        return args[0]
    result = func(*map(_data, args), **kwargs)
    return MaskedTensor._from_values(result, masks[0].expand_as(result))


def _reduce(
    name: str, given: MaskedTensor, dim: Any = None, keepdim: bool = False, **kwargs: Any
) -> MaskedTensor:
    data, mask = given.get_data(), given._mask
    dims = {} if dim is None else {"dim": dim, "keepdim": keepdim}
    if name == "all":
        result = data.masked_fill(~mask, True).all(**dims)
    else:
        where = {"dim": dim, "keepdim": keepdim} if dim is not None else {"dim": None}
        result = getattr(torch.masked, name)(data, **where, mask=mask, **kwargs)
    return MaskedTensor._from_values(result, mask.any(**dims))


def _softmax(given: MaskedTensor, dim: int, *args: Any, **kwargs: Any) -> MaskedTensor:
    kwargs.pop("_stacklevel", None)
    data = torch.masked.softmax(given.get_data(), dim, mask=given._mask, dtype=kwargs.get("dtype"))
    return MaskedTensor._from_values(data, given._mask)


def _where(condition: Any, first: Any, second: Any) -> MaskedTensor:
    condition = _data(condition)
    masks = [
        value._mask if isinstance(value, MaskedTensor) else torch.ones_like(condition)
        for value in (first, second)
    ]
    data = torch.where(condition, _data(first), _data(second))
    return MaskedTensor._from_values(data, torch.where(condition, *masks))


def _move(func: Callable, args: tuple, kwargs: dict) -> Any:
    """The same for data and for mask."""

    def each(part: Callable) -> Any:
        def of(value: Any) -> Any:
            if isinstance(value, (list, tuple)):
                return type(value)(map(of, value))
            return part(value)

        return func(*map(of, args), **{name: of(value) for name, value in kwargs.items()})

    data = each(_data)
    mask = each(lambda value: value._mask if isinstance(value, MaskedTensor) else value)
    if isinstance(data, (tuple, list)):
        return type(data)(map(MaskedTensor._from_values, data, mask))
    return MaskedTensor._from_values(data, mask)
