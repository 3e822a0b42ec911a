"""The order of contractions in einsum, which the package opt_einsum would choose."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rushlight import backends as _backends

_values: dict[str, Any] = {"enabled": False, "strategy": None}


def is_available() -> bool:
    """False: einsum contracts from left to right."""
    return False


def get_opt_einsum() -> None:
    """None: the package is not used."""
    return None


def _enabled(value: Any) -> bool:
    if value:
        raise ValueError(
            "opt_einsum is not available, so setting `enabled` to True will not reap the benefits "
            "of calculating an optimal path for einsum: contractions go from left to right"
        )
    return False


def _strategy(value: Any) -> None:
    if value is not None:
        raise ValueError(
            f"opt_einsum is not available, so setting `strategy` to {value} will not be "
            "meaningful: contractions go from left to right"
        )


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
