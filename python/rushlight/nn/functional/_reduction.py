"""How a loss is reduced: names, their numbers in native operators, and the older pair of flags."""

from __future__ import annotations

_NUMBERS = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """The number of a reduction: none 0, mean 1, sum 2."""
    if reduction == "elementwise_mean":
        _warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.")
    if not isinstance(reduction, str) or reduction not in _NUMBERS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return _NUMBERS[reduction]


def legacy_get_string(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> str:
    """The reduction that the flags from before there were names stand for."""
    size_average = True if size_average is None else size_average
    reduce = True if reduce is None else reduce
    name = "none" if not reduce else "mean" if size_average else "sum"
    if emit_warning:
        _warn(
            "size_average and reduce args will be deprecated, please use "
            f"reduction='{name}' instead."
        )
    return name


def legacy_get_enum(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> int:
    """The number of the reduction that the older flags stand for."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))


def choose(size_average: bool | None, reduce: bool | None, reduction: str) -> int:
    """The number of the reduction that a loss was asked for, by name or by the older flags."""
    if size_average is not None or reduce is not None:
        return legacy_get_enum(size_average, reduce)
    return get_enum(reduction)


def _warn(message: str) -> None:
    import warnings

    warnings.warn(message, stacklevel=4)
