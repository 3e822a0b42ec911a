"""How memory is handed over to another process."""

from __future__ import annotations

import sys

# macOS has no /proc, and so no names of descriptors.
_all_sharing_strategies = {"file_descriptor", *(("file_system",) * (sys.platform != "darwin"))}
_sharing_strategy = "file_descriptor"


def set_sharing_strategy(new_strategy: str) -> None:
    """Sets how memory is handed over: by `file_descriptor`, or by `file_system`, as the name that
    the system has for the sender's descriptor. The sender must live until the receiver has it.
    """
    global _sharing_strategy
    if new_strategy not in _all_sharing_strategies:
        raise AssertionError(
            f"invalid sharing strategy {new_strategy!r}, expected one of {_all_sharing_strategies}"
        )
    _sharing_strategy = new_strategy


def get_sharing_strategy() -> str:
    """How memory is handed over."""
    return _sharing_strategy


def get_all_sharing_strategies() -> set[str]:
    """The ways in which memory can be handed over here."""
    return _all_sharing_strategies
