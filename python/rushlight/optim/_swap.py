"""Other tensors in an optimizer's place for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rushlight import Tensor

from .optimizer import Optimizer

__all__ = ["swap_in_optimizer_params_and_state"]


@contextmanager
def swap_in_optimizer_params_and_state(
    optimizer: Optimizer,
    swapin_parameters: dict[str, Tensor],
    swapin_optim_state: dict[str, Any],
) -> Iterator[None]:
    """Context in which an optimizer has these parameters and this state; then its own again.

    Args:
        optimizer: one that has made a step, so that it has state.
        swapin_parameters: tensors by name, in the order of the optimizer's parameters.
        swapin_optim_state: as state_dict gives it: state by the numbers of parameters, and groups
            of numbers with their options. Of what happens inside, writes to its tensors alone
            are seen after it.
    """
    if not optimizer.state:
        raise RuntimeError(
            "swap_in_optimizer_params_and_state requires initialized optimizer state."
        )
    groups = optimizer.param_groups
    given = list(swapin_parameters.values())
    if len(given) != sum(len(group["params"]) for group in groups):
        raise RuntimeError(
            "swap_in_optimizer_params_and_state requires the explicit parameter state to match "
            "optimizer.param_groups ordering: it has "
            f"{sum(len(group['params']) for group in groups)} parameters, got {len(given)}"
        )
    wanted = swapin_optim_state["param_groups"]
    if [len(group["params"]) for group in wanted] != [len(group["params"]) for group in groups]:
        raise RuntimeError(
            "swap_in_optimizer_params_and_state requires groups of as many parameters as "
            "optimizer.param_groups has."
        )
    numbers = [number for group in wanted for number in group["params"]]
    by_number = dict(zip(numbers, given, strict=True))
    saved_groups, saved_state = optimizer.param_groups, optimizer.state
    optimizer.param_groups = [
        {**group, "params": [by_number[number] for number in group["params"]]} for group in wanted
    ]
    optimizer.state = type(saved_state)(saved_state.default_factory)
    for number, values in swapin_optim_state["state"].items():
        optimizer.state[by_number[number]] = dict(values)
    try:
        yield
    finally:
        optimizer.param_groups, optimizer.state = saved_groups, saved_state
