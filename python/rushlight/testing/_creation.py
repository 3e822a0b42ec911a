"""make_tensor: random tensors of any dtype."""

from __future__ import annotations

import math
import warnings
from typing import Any

import rushlight as torch

_UNSIGNED = (torch.uint8, torch.uint16, torch.uint32, torch.uint64)


def make_tensor(
    *shape: int | torch.Size | list[int] | tuple[int, ...],
    dtype: torch.dtype,
    device: str | torch.device,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: torch.memory_format | None = None,
) -> torch.Tensor:
    """A tensor of random values from [low, high): by default [-9, 9) for floats, [-9, 10) for
    integers, [0, 10) for unsigned ones, both values for bools. `exclude_zero` puts the smallest
    positive value in zeros' places; `noncontiguous` leaves every second element of memory unused.
    """
    sizes = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
            f"noncontiguous={noncontiguous} and memory_format={memory_format}"
        )
    if not isinstance(dtype, torch.dtype):
        raise TypeError(
            f"The requested dtype '{dtype}' is not supported by torch.testing.make_tensor()."
        )
    fractional = dtype.is_floating_point or dtype.is_complex
    if requires_grad and not fractional:
        raise ValueError(
            "`requires_grad=True` is not supported for boolean and integral dtypes, but got "
            f"dtype={dtype}"
        )
    result = _drawn(sizes, dtype, device, low, high, fractional)
    if noncontiguous and result.numel() > 1:
        result = torch.repeat_interleave(result, 2, dim=-1)[..., ::2]
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        smallest = torch.finfo(dtype).tiny if fractional else 1
        result.masked_fill_(result == 0, smallest)
    return result.requires_grad_(requires_grad) if fractional else result


def _drawn(
    sizes: tuple, dtype: torch.dtype, device: Any, low: Any, high: Any, fractional: bool
) -> torch.Tensor:
    if fractional:
        info = torch.finfo(dtype)
        low, high = _interval(low, high, (info.min, info.max, info.max), (-9, 9), dtype, True)
        result = torch.empty(sizes, dtype=dtype, device=device)
        if low == high:
            return result.fill_(low)
        parts = torch.view_as_real(result) if dtype.is_complex else result
        if dtype.is_floating_point and dtype.itemsize == 1:
            return torch.empty(sizes, device=device).uniform_(low, high).to(dtype)
        parts.uniform_(low, high)
        return result
    if dtype == torch.bool:
        bounds, default = (0, 2, 2), (0, 2)
    else:
        info = torch.iinfo(dtype)
        # randint takes no bound beyond int64.
        bounds = (info.min, min(info.max, 2**63 - 1), info.max + 1)
        default = (0, 10) if dtype in _UNSIGNED else (-9, 10)
    low, high = _interval(low, high, bounds, default, dtype, False)
    return torch.randint(math.ceil(low), math.ceil(high), sizes, device=device, dtype=dtype)


def _interval(
    low: Any, high: Any, bounds: tuple, default: tuple, dtype: torch.dtype, fractional: bool
) -> tuple:
    """The interval to draw from: what was given, cut to what the dtype can hold."""
    lowest, greatest, end = bounds
    if any(isinstance(value, float) and math.isnan(value) for value in (low, high)):
        raise ValueError(f"`low` and `high` cannot be NaN, but got low={low} and high={high}")
    low = default[0] if low is None else low
    high = default[1] if high is None else high
    if low == high and fractional:
        warnings.warn(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is "
            "deprecated since 2.1 and will be removed in 2.3. Use `torch.full(...)` instead.",
            FutureWarning,
            stacklevel=4,
        )
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high <= lowest or low >= end:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} "
            f"only supports [{lowest}, {end})"
        )
    return max(low, lowest), min(high, greatest if fractional else min(end, 2**63 - 1))
