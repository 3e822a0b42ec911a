"""Operators of the table with a mask: invalid elements give way to what changes nothing.

Every function takes `mask`, a tensor that broadcasts to the input; False marks an element that is
left out, None leaves out nothing. Where a whole slice is left out the result is the identity of the
reduction (0, 1, an infinity), or NaN where there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import rushlight as torch
from rushlight import Tensor

DimOrDims = int | Sequence[int] | None
DType = torch.dtype


def _dims(dim: DimOrDims, ndim: int) -> tuple[int, ...]:
    """The dimensions meant, counted from the front; None and () mean all."""
    if dim is None or (not isinstance(dim, int) and len(dim) == 0):
        return tuple(range(ndim))
    limit = max(ndim, 1)
    found: list[int] = []
    for d in (dim,) if isinstance(dim, int) else dim:
        if not -limit <= d < limit:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], "
                f"but got {d})"
            )
        at = d % limit
        if at in found:
            raise RuntimeError(f"dim={at} appears multiple times in the list of dims")
        found.append(at)
    return tuple(found)


def _input_mask(input: Tensor, mask: Tensor) -> Tensor:
    """`mask` as booleans in the shape of `input`."""
    if mask.ndim > input.ndim:
        raise IndexError(
            "_input_mask expected broadcastable mask "
            "(got mask dimensionality higher than of the input)"
        )
    if mask.shape != input.shape:
        mask = torch.broadcast_to(mask, input.shape)
    return mask if mask.dtype == torch.bool else mask.bool()


def _identity(op: str, dtype: DType) -> float:
    """What leaves the greatest (or least) of numbers of this dtype unchanged."""
    least = op not in ("amin", "argmin")
    if dtype.is_floating_point or (dtype.is_complex and op == "logsumexp"):
        return -torch.inf if least else torch.inf
    if dtype.is_complex:
        raise TypeError(f"masked.{op}: {dtype} numbers have no order, expected real ones")
    if dtype == torch.bool:
        raise NotImplementedError(f"identity of {op} on {dtype} input")
    info = torch.iinfo(dtype)
    return info.min if least else info.max


def _filled(input: Tensor, mask: Tensor | None, value: Callable[[], float] | float) -> Tensor:
    """`input` with `value` where it is left out."""
    if mask is None:
        return input
    fill = value() if callable(value) else value
    return torch.where(_input_mask(input, mask), input, torch.tensor(fill, dtype=input.dtype))


def _cast(input: Tensor, dtype: DType | None) -> Tensor:
    return input if dtype is None else input.to(dtype=dtype)


def sum(
    input: Tensor,
    dim: DimOrDims = None,
    *,
    keepdim: bool | None = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The sum of the valid elements over `dim`; small integers are summed as int64."""
    if dtype is None and not (input.is_floating_point() or input.is_complex()):
        dtype = torch.int64
    x = _filled(_cast(input, dtype), mask, 0)
    return torch.sum(x, _dims(dim, input.ndim), keepdim=bool(keepdim), dtype=dtype)


def prod(
    input: Tensor,
    dim: DimOrDims = None,
    *,
    keepdim: bool | None = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The product of the valid elements over `dim`; small integers are multiplied as int64."""
    if dtype is None and not (input.is_floating_point() or input.is_complex()):
        dtype = torch.int64
    x = _filled(_cast(input, dtype), mask, 1)
    for d in sorted(_dims(dim, input.ndim), reverse=True):
        x = x.prod(dim=d, keepdim=bool(keepdim))
    return x


def cumsum(
    input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """Sums of the valid elements so far along `dim`."""
    (at,) = _dims(dim, input.ndim)[:1]
    return torch.cumsum(_filled(_cast(input, dtype), mask, 0), at, dtype=dtype or input.dtype)


def cumprod(
    input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """Products of the valid elements so far along `dim`."""
    (at,) = _dims(dim, input.ndim)[:1]
    return torch.cumprod(_filled(_cast(input, dtype), mask, 1), at, dtype=dtype or input.dtype)


def amax(
    input: Tensor,
    dim: DimOrDims = None,
    *,
    keepdim: bool | None = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The greatest of the valid elements over `dim`."""
    x = _cast(input, dtype)
    x = _filled(x, mask, lambda: _identity("amax", x.dtype))
    return torch.amax(x, _dims(dim, input.ndim), bool(keepdim))


def amin(
    input: Tensor,
    dim: DimOrDims = None,
    *,
    keepdim: bool | None = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The least of the valid elements over `dim`."""
    x = _cast(input, dtype)
    x = _filled(x, mask, lambda: _identity("amin", x.dtype))
    return torch.amin(x, _dims(dim, input.ndim), bool(keepdim))


def argmax(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool | None = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Where the greatest valid element along `dim` lies, in the dtype of the input."""
    x = _cast(input, dtype)
    x = _filled(x, mask, lambda: _identity("argmax", x.dtype))
    return torch.argmax(x, dim, bool(keepdim)).to(dtype=x.dtype)


def argmin(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool | None = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Where the least valid element along `dim` lies, in the dtype of the input."""
    x = _cast(input, dtype)
    x = _filled(x, mask, lambda: _identity("argmin", x.dtype))
    return torch.argmin(x, dim, bool(keepdim)).to(dtype=x.dtype)


def _count(input: Tensor, dims: tuple[int, ...], keepdim: bool, mask: Tensor | None) -> Tensor:
    """How many elements are valid, as int64."""
    if mask is None:
        valid = torch.ones(input.shape, dtype=torch.int64, device=input.device)
    else:
        valid = _input_mask(input, mask)
    return torch.sum(valid, dims, keepdim=keepdim, dtype=torch.int64)


def mean(
    input: Tensor,
    dim: DimOrDims = None,
    *,
    keepdim: bool | None = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The mean of the valid elements over `dim`; NaN where there are none."""
    wanted = input.dtype if dtype is None else dtype
    if not (wanted.is_floating_point or wanted.is_complex):
        which = "Input" if dtype is None else "Optional"
        raise ValueError(
            f"mean(): Could not infer output dtype. {which} dtype must be either a floating point "
            f"or complex dtype. Got: {wanted}"
        )
    dims = _dims(dim, input.ndim)
    keep = bool(keepdim)
    if mask is None:
        return torch.mean(input, dims, keepdim=keep, dtype=wanted)
    total = sum(input, dims, keepdim=keep, dtype=dtype, mask=mask)
    return total / _count(input, dims, keep, mask)


def median(
    input: Tensor,
    dim: int = -1,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The lower median of the valid elements along `dim`; NaN where there are none."""
    wanted = input.dtype
    at = _dims(dim, input.ndim)[0]
    x = input if input.is_floating_point() else input.to(dtype=torch.float)
    x = _filled(x, mask, torch.nan)
    found = torch.nanmedian(x, at, keepdim).values
    if not wanted.is_floating_point and torch.any(torch.isnan(found)):
        raise ValueError(
            "masked median expects no fully masked out rows if dtype is not floating point"
        )
    return found if found.dtype == wanted else found.to(dtype=wanted)


def logsumexp(
    input: Tensor,
    dim: DimOrDims = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """log(sum(exp(x))) of the valid elements over `dim`, in the dtype of the input."""
    x = _cast(input, dtype)
    x = _filled(x, mask, lambda: _identity("logsumexp", x.dtype))
    found = torch.logsumexp(x, _dims(dim, input.ndim), keepdim=bool(keepdim))
    return found.to(dtype=x.dtype)


def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: DType | None = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """log(exp(input) + exp(other)), where an element that is left out counts as -infinity."""
    x, y = _cast(input, dtype), _cast(other, dtype)
    x = _filled(x, input_mask, lambda: _identity("logaddexp", x.dtype))
    y = _filled(y, other_mask, lambda: _identity("logaddexp", y.dtype))
    return torch.logaddexp(x, y).to(dtype=dtype or input.dtype)


def norm(
    input: Tensor,
    ord: float | None = 2.0,
    dim: DimOrDims = None,
    *,
    keepdim: bool | None = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The vector norm of the valid elements over `dim`."""
    fill = torch.inf if ord == -torch.inf else 0
    x = _filled(_cast(input, dtype), mask, fill)
    dims = _dims(dim, input.ndim)
    return torch.linalg.vector_norm(x, ord, dims, bool(keepdim), dtype=dtype)


def _deviation(
    input: Tensor,
    dim: DimOrDims,
    unbiased: bool | None,
    correction: float | None,
    keepdim: bool | None,
    dtype: DType | None,
    mask: Tensor | None,
    root: bool,
) -> Tensor:
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    wanted = input.dtype if dtype is None else dtype
    if not (wanted.is_floating_point or wanted.is_complex):
        wanted = torch.float32
    if input.dtype == torch.bool:
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are "
            "trying to invert a mask, use the `~` or `logical_not()` operator instead."
        )
    x = input.to(dtype=wanted)
    dims = _dims(dim, input.ndim)
    keep = bool(keepdim)
    if mask is None:
        function = torch.std if root else torch.var
        return function(x, dims, correction=correction, keepdim=keep).to(dtype=wanted)
    count = _count(x, dims, True, mask)
    centre = sum(x, dims, keepdim=True, dtype=wanted, mask=mask) / count
    spread = x - centre
    total = sum(spread * spread.conj(), dims, keepdim=keep, dtype=wanted, mask=mask)
    if not keep:
        count = count.reshape(total.shape)
    free = torch.clamp_min(count - correction, 0) if correction else count
    found = (total / free).to(dtype=wanted)
    return torch.sqrt(found) if root else found


def var(
    input: Tensor,
    dim: DimOrDims = None,
    unbiased: bool | None = None,
    *,
    correction: int | float | None = None,
    keepdim: bool | None = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The variance of the valid elements over `dim`, divided by their number less `correction`."""
    return _deviation(input, dim, unbiased, correction, keepdim, dtype, mask, root=False)


def std(
    input: Tensor,
    dim: DimOrDims = None,
    unbiased: bool | None = None,
    *,
    correction: int | None = None,
    keepdim: bool | None = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The standard deviation of the valid elements over `dim`: the square root of `var`."""
    return _deviation(input, dim, unbiased, correction, keepdim, dtype, mask, root=True)


def softmax(
    input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """softmax over the valid elements along `dim`; the others get 0."""
    at = _dims(dim, input.ndim)[0]
    x = _cast(input, dtype)
    x = _filled(x, mask, lambda: _identity("amax", x.dtype))
    return torch.softmax(x, at, dtype=dtype)


def log_softmax(
    input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """log_softmax over the valid elements along `dim`; the others get -infinity."""
    at = _dims(dim, input.ndim)[0]
    x = _cast(input, dtype)
    x = _filled(x, mask, lambda: _identity("amax", x.dtype))
    return torch.log_softmax(x, at, dtype=dtype)


def softmin(
    input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """softmin over the valid elements along `dim`; the others get 0."""
    at = _dims(dim, input.ndim)[0]
    x = _cast(input, dtype)
    x = _filled(x, mask, lambda: _identity("amin", x.dtype))
    return torch.nn.functional.softmin(x, at, dtype=dtype)


def normalize(
    input: Tensor,
    ord: float,
    dim: int,
    *,
    eps: float = 1e-12,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The valid elements divided by max(norm, eps) along `dim`; the others get 0."""
    at = _dims(dim, input.ndim)[0]
    x = _filled(_cast(input, dtype), mask, 0)
    length = norm(x, ord, at, keepdim=True, dtype=dtype, mask=mask)
    return x / length.clamp(min=eps).expand_as(x)
