"""How long names are kept, as programs for PyTorch mark their own."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["compatibility"]


def compatibility(is_backward_compatible: bool) -> Callable:
    """Marks a function or class as kept from version to version, or as not; gives it back."""

    def mark(fn: Callable) -> Callable:
        fn._backward_compatible = is_backward_compatible
        return fn

    return mark
