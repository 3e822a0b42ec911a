"""The order of contractions in einsum: from left to right, or as the package opt_einsum says.

Where that package is installed it is asked about every einsum of three operands or more, unless
`enabled` is False; `strategy` is its argument `optimize`: how it searches, such as "greedy".
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from rushlight import backends as _backends


def is_available() -> bool:
    """Whether the package opt_einsum is installed."""
    return importlib.util.find_spec("opt_einsum") is not None


_values: dict[str, Any] = {
    "enabled": is_available(),
    "strategy": "auto" if is_available() else None,
}


def get_opt_einsum() -> ModuleType | None:
    """The package, or None where it is not installed."""
    return importlib.import_module("opt_einsum") if is_available() else None


def _enabled(value: Any) -> bool:
    if value and not is_available():
        raise ValueError(
            "opt_einsum is not available, so setting `enabled` to True will not reap the benefits "
            "of calculating an optimal path for einsum: contractions go from left to right"
        )
    return bool(value)


def _strategy(value: Any) -> str | None:
    if value is not None and not is_available():
        raise ValueError(
            f"opt_einsum is not available, so setting `strategy` to {value} will not be "
            "meaningful: contractions go from left to right"
        )
    return value


def contraction_path(equation: str, operands: tuple) -> list[int] | None:
    """Places of pairs to contract, in a row, for einsum; None: from left to right."""
    if len(operands) < 3 or not _values["enabled"]:
        return None
    shapes = [tuple(operand.shape) for operand in operands]
    search = importlib.import_module("opt_einsum").contract_path
    pairs, _ = search(equation, *shapes, shapes=True, optimize=_values["strategy"] or "auto")
    return [place for pair in pairs for place in pair]


def set_flags(_enabled: bool | None = None, _strategy: str | None = None) -> tuple:
    """Sets those that are not None; gives what both were."""
    before = tuple(_values.values())
    if _enabled is not None:
        _values["enabled"] = _check_enabled(_enabled)
    if _strategy is not None:
        _values["strategy"] = _check_strategy(_strategy)
    return before


_check_enabled, _check_strategy = _enabled, _strategy


@contextmanager
def flags(enabled: bool | None = None, strategy: str | None = None) -> Iterator[None]:
    """Sets both within the context."""
    before = dict(_values)
    set_flags(enabled, strategy)
    try:
        with _backends._changes_allowed():
            yield
    finally:
        _values.update(before)


class OptEinsumModule(_backends.PropModule):
    """This module, with its settings."""

    enabled = _backends._setting(_values, "enabled", _check_enabled)
    strategy = _backends._setting(_values, "strategy", _check_strategy)


_backends._install(__name__, OptEinsumModule)
