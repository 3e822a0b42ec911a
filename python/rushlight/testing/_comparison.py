"""assert_close: tensors, numbers and containers of them are equal up to tolerances."""

from __future__ import annotations

import cmath
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import rushlight as torch
from rushlight import Tensor

# (rtol, atol) for each dtype; others must be equal.
_TOLERANCES = {
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
    torch.float32: (1.3e-6, 1e-5),
    torch.float64: (1e-7, 1e-7),
    torch.complex64: (1.3e-6, 1e-5),
    torch.complex128: (1e-7, 1e-7),
}
_NUMBER_DTYPES = {int: torch.int64, float: torch.float64, complex: torch.complex128}
_OLD_TOLERANCES = {  # assert_allclose's
    torch.float16: (1e-3, 1e-3),
    torch.float32: (1e-4, 1e-5),
    torch.float64: (1e-5, 1e-8),
}


@dataclasses.dataclass(frozen=True)
class _Options:
    allow_subclasses: bool
    rtol: float | None
    atol: float | None
    equal_nan: bool
    check_device: bool
    check_dtype: bool
    check_layout: bool
    check_stride: bool

    def tolerances(self, *dtypes: torch.dtype) -> tuple[float, float]:
        """The tolerances given, or the widest that the dtypes have."""
        if self.rtol is not None:
            return self.rtol, self.atol
        known = [_TOLERANCES.get(dtype, (0.0, 0.0)) for dtype in dtypes]
        return max(rtol for rtol, _ in known), max(atol for _, atol in known)


class _Mismatch(Exception):
    """What does not match, to become the error that assert_close raises."""


def _fail(text: str) -> NoReturn:
    raise _Mismatch(text)


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """AssertionError unless |actual - expected| <= atol + rtol * |expected| everywhere.

    Tensors, what as_tensor takes, numbers, bools and None are compared, and sequences and mappings
    of them item by item. Tolerances not given follow from the dtype. `msg` replaces the message,
    or makes one of the generated one.
    """
    if (rtol is None) != (atol is None):
        missing = "rtol" if rtol is None else "atol"
        raise ValueError(
            f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}."
        )
    options = _Options(
        allow_subclasses,
        rtol,
        atol,
        equal_nan,
        check_device,
        check_dtype,
        check_layout,
        check_stride,
    )
    path: list = []
    try:
        for one, other in list(_pairs(actual, expected, path)):
            path[:] = other[1]
            _compare(one, other[0], options)
    except _Mismatch as mismatch:
        text = str(mismatch)
        if path:
            text += f"\n\nThe failure occurred for item {''.join(f'[{item!r}]' for item in path)}"
        if msg is not None:
            text = msg(text) if callable(msg) else msg
        raise AssertionError(text) from None


def _pairs(actual: Any, expected: Any, path: list) -> Iterator[tuple[Any, tuple[Any, list]]]:
    """What stands in the same places of two trees, with the place."""
    if _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            _fail(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}")
        keys: Any = range(len(actual))
    elif isinstance(actual, Mapping) and isinstance(expected, Mapping):
        keys = _common_keys(actual, expected)
    else:
        yield actual, (expected, list(path))
        return
    for key in keys:
        path.append(key)
        yield from _pairs(actual[key], expected[key], path)
        path.pop()


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _common_keys(actual: Mapping, expected: Mapping) -> list:
    missing, additional = expected.keys() - actual.keys(), actual.keys() - expected.keys()
    if missing or additional:
        _fail(
            "The keys of the mappings do not match:\n"
            f"Missing keys in the actual mapping: {_sorted(missing)}\n"
            f"Additional keys in the actual mapping: {_sorted(additional)}"
        )
    return _sorted(actual.keys())


def _sorted(keys: Any) -> list:
    try:
        return sorted(keys)
    except TypeError:
        return list(keys)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool) or type(value).__name__ in ("bool_", "bool")


def _is_number(value: Any) -> bool:
    import numbers

    return isinstance(value, numbers.Number)


def _compare(actual: Any, expected: Any, options: _Options) -> None:
    if actual is None or expected is None:
        if actual is not expected:
            _fail(f"None mismatch: {actual} is not {expected}")
    elif _is_bool(actual) and _is_bool(expected):
        if bool(actual) is not bool(expected):
            _fail(f"Booleans mismatch: {bool(actual)} is not {bool(expected)}")
    elif _is_number(actual) and _is_number(expected):
        _compare_numbers(_number(actual), _number(expected), options)
    else:
        _compare_tensors(*_as_tensors(actual, expected, options), options)


def _number(value: Any) -> Any:
    if type(value) in (int, float, complex, bool):
        return value
    for kind in (int, float, complex):  # NumPy's
        if isinstance(value, kind):
            return kind(value)
    return value.item()


def _compare_numbers(actual: Any, expected: Any, options: _Options) -> None:
    if options.check_dtype and type(actual) is not type(expected):
        _fail(f"The (d)types do not match: {type(actual)} != {type(expected)}.")
    dtypes = [_NUMBER_DTYPES.get(type(value), torch.bool) for value in (actual, expected)]
    rtol, atol = options.tolerances(*dtypes)
    if actual == expected or (options.equal_nan and cmath.isnan(actual) and cmath.isnan(expected)):
        return
    difference = abs(actual - expected)
    if cmath.isfinite(difference) and difference <= atol + rtol * abs(expected):
        return
    _fail_scalars(actual, expected, rtol, atol)


def _relation(rtol: float, atol: float) -> str:
    return "close" if rtol or atol else "equal"


def _allowed(tolerance: float, rtol: float, atol: float) -> str:
    return f" (up to {tolerance} allowed)" if rtol or atol else ""


def _fail_scalars(actual: Any, expected: Any, rtol: float, atol: float) -> NoReturn:
    difference = abs(actual - expected)
    relative = difference / abs(expected) if expected != 0 else float("inf")
    _fail(
        f"Scalars are not {_relation(rtol, atol)}!\n\n"
        f"Expected {expected} but got {actual}.\n"
        f"Absolute difference: {difference}{_allowed(atol, rtol, atol)}\n"
        f"Relative difference: {relative}{_allowed(rtol, rtol, atol)}"
    )


def _as_tensors(actual: Any, expected: Any, options: _Options) -> tuple[Tensor, Tensor]:
    kinds = type(actual), type(expected)
    related = isinstance(actual, kinds[1]) or isinstance(expected, kinds[0])
    if not options.allow_subclasses:
        related = kinds[0] is kinds[1]
    if related and not any(_is_number(x) or isinstance(x, str) for x in (actual, expected)):
        try:
            return torch.as_tensor(actual), torch.as_tensor(expected)
        except (TypeError, ValueError, RuntimeError):
            pass
    raise TypeError(
        f"No comparison pair was able to handle inputs of type {kinds[0]} and {kinds[1]}."
    )


def _compare_tensors(actual: Tensor, expected: Tensor, options: _Options) -> None:
    _check_attribute("shape", actual.shape, expected.shape)
    if options.check_layout:
        _check_attribute("layout", actual.layout, expected.layout)
    if options.check_device:
        _check_attribute("device", actual.device, expected.device)
    if options.check_dtype:
        _check_attribute("dtype", actual.dtype, expected.dtype)
    if options.check_stride:
        _check_attribute("stride()", actual.stride(), expected.stride())
    if actual.is_meta or expected.is_meta:  # nothing but attributes
        return
    rtol, atol = options.tolerances(actual.dtype, expected.dtype)
    actual, expected = actual.detach().cpu(), expected.detach().cpu()
    if actual.dtype != expected.dtype:
        common = torch.promote_types(actual.dtype, expected.dtype)
        actual, expected = actual.to(common), expected.to(common)
    if actual.dtype.itemsize == 1 and actual.dtype.is_floating_point:
        actual, expected = actual.float(), expected.float()
    matches = torch.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=options.equal_nan)
    if bool(matches.all()):
        return
    if actual.dim() == 0:
        _fail_scalars(actual.item(), expected.item(), rtol, atol)
    _fail_tensors(actual, expected, matches, rtol, atol)


def _check_attribute(name: str, actual: Any, expected: Any) -> None:
    if actual != expected:
        _fail(f"The values for attribute '{name}' do not match: {actual} != {expected}.")


def _fail_tensors(
    actual: Tensor, expected: Tensor, matches: Tensor, rtol: float, atol: float
) -> NoReturn:
    total = actual.numel()
    wrong = total - int(matches.sum())
    one, other, same = actual.flatten(), expected.flatten(), matches.flatten()
    if not one.dtype.is_floating_point and not one.dtype.is_complex:
        one, other = one.to(torch.int64), other.to(torch.int64)
    difference = (one - other).abs()
    relative = difference / other.abs()
    lines = [
        f"Tensor-likes are not {_relation(rtol, atol)}!\n",
        f"Mismatched elements: {wrong} / {total} ({wrong / total:.1%})",
    ]
    for what, values, tolerance in (("absolute", difference, atol), ("relative", relative, rtol)):
        values = torch.where(same, torch.zeros_like(values), values)
        greatest, position = torch.max(values, 0)
        index = tuple(int(i) for i in torch.unravel_index(position, actual.shape))
        lines.append(
            f"Greatest {what} difference: {greatest.item()} at index {index}"
            f"{_allowed(tolerance, rtol, atol)}"
        )
    _fail("\n".join(lines))


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """Superseded by assert_close: numbers and arrays become tensors, whose dtypes may differ."""
    import warnings

    warnings.warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a "
        "future release. Please use `torch.testing.assert_close()` instead.",
        FutureWarning,
        stacklevel=2,
    )
    if not isinstance(actual, Tensor):
        actual = torch.tensor(actual)
    if not isinstance(expected, Tensor):
        expected = torch.tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        known = [_OLD_TOLERANCES.get(x.dtype, (0.0, 0.0)) for x in (actual, expected)]
        rtol, atol = max(r for r, _ in known), max(a for _, a in known)
    assert_close(
        actual,
        expected,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_device=True,
        check_dtype=False,
        check_stride=False,
        msg=msg or None,
    )
