"""Modules that run at the same time, each in a thread."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import rushlight as torch
from rushlight import Tensor
from rushlight.nn.modules.module import Module

__all__ = ["get_a_var", "parallel_apply"]


def get_a_var(obj: Any) -> Tensor | None:
    """Some tensor in a tree, or None."""
    if isinstance(obj, Tensor):
        return obj
    if isinstance(obj, dict):
        obj = list(obj.values())
    if isinstance(obj, (list, tuple)):
        for item in obj:
            found = get_a_var(item)
            if found is not None:
                return found
    return None


def parallel_apply(
    modules: Sequence[Module],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict] | None = None,
    devices: Sequence[Any] | None = None,
) -> list[Any]:
    """What each module gives for its inputs; an error of one is raised, with its place."""
    if len(modules) != len(inputs):
        raise AssertionError(
            f"The number of modules {len(modules)} is not equal to the number of inputs "
            f"{len(inputs)}"
        )
    keywords = [{} for _ in modules] if kwargs_tup is None else list(kwargs_tup)
    if len(keywords) != len(modules) or (devices is not None and len(devices) != len(modules)):
        raise AssertionError("parallel_apply: as many kwargs and devices as modules are expected")
    results: list = [None] * len(modules)
    errors: list = [None] * len(modules)
    enabled = torch.is_grad_enabled()

    def run(place: int) -> None:
        given = inputs[place]
        given = given if isinstance(given, (list, tuple)) else (given,)
        try:
            with torch.set_grad_enabled(enabled):
                results[place] = modules[place](*given, **keywords[place])
        except Exception as error:
            errors[place] = error

    if len(modules) == 1:
        run(0)
    else:
        threads = [threading.Thread(target=run, args=(i,)) for i in range(len(modules))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for place, error in enumerate(errors):
        if error is not None:
            error.add_note(f"in replica {place}") if hasattr(error, "add_note") else None
            raise error
    return results
