"""A loop."""

from __future__ import annotations

from collections.abc import Callable

from rushlight import Tensor


def while_loop(cond_fn: Callable, body_fn: Callable, carried_inputs: tuple | list) -> object:
    """carried = body_fn(*carried) for as long as cond_fn(*carried) holds; the last `carried`."""
    carried = carried_inputs
    while _holds(cond_fn(*carried)):
        following = body_fn(*carried)
        if not isinstance(following, (tuple, list)) or len(following) != len(carried_inputs):
            raise RuntimeError(
                "while_loop: body_fn should return a tuple or list of as many values as "
                f"carried_inputs has, {len(carried_inputs)}, but returned {following}"
            )
        carried = following
    return carried


def _holds(value: object) -> bool:
    if isinstance(value, Tensor) and value.numel() != 1:
        raise RuntimeError(f"cond_fn must return a bool or a single-element tensor but got {value}")
    return bool(value)
