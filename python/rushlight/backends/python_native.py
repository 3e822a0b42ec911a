"""Operators written in languages embedded in Python: none of them replaces an operator here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

all_dsls: list[str] = []
available_dsls: list[str] = []


def get_dsl_operations(dsl_name: str) -> list[str]:
    """An error: there is no such language."""
    raise ValueError(f"Unknown DSL {dsl_name!r}: none is known")


def is_dsl_disabled(dsl_name: str) -> bool:
    """An error: there is no such language."""
    raise ValueError(f"Unknown DSL {dsl_name!r}: none is known")


def is_operation_disabled(op_symbol: str) -> bool:
    """False: no operator has a replacement to disable."""
    return False


def disable_operations(*op_symbols: str) -> None:
    """Nothing to do: no operator has a replacement."""


def enable_operations(*op_symbols: str) -> None:
    """Nothing to do: no operator has a replacement."""


def disable_dispatch_keys(*dispatch_keys: str) -> None:
    """Nothing to do: no operator has a replacement."""


def enable_dispatch_keys(*dispatch_keys: str) -> None:
    """Nothing to do: no operator has a replacement."""


@contextmanager
def operations_disabled(*op_symbols: str) -> Iterator[None]:
    """A region without replacements, which no operator has anyway."""
    yield
