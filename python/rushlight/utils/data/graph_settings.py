"""Settings of all pipes that a pipe is made of: shares, shuffling, seeds."""

from __future__ import annotations

from typing import Any

import rushlight as torch
from rushlight.utils.data.datapipes.iter.sharding import SHARDING_PRIORITIES
from rushlight.utils.data.graph import traverse_dps

__all__ = [
    "apply_random_seed",
    "apply_sharding",
    "apply_shuffle_seed",
    "apply_shuffle_settings",
    "get_all_graph_pipes",
]


def get_all_graph_pipes(graph: dict) -> list:
    """The pipes of a graph that traverse_dps gave, each once."""
    found: dict[int, Any] = {}

    def visit(inner: dict) -> None:
        for key, (pipe, rest) in inner.items():
            if key not in found:
                found[key] = pipe
                visit(rest)

    visit(graph)
    return list(found.values())


def apply_sharding(
    datapipe: Any,
    num_of_instances: int,
    instance_id: int,
    sharding_group: SHARDING_PRIORITIES = SHARDING_PRIORITIES.DEFAULT,
) -> Any:
    """Makes the pipes that share items give those of one of several readers; the pipe itself."""
    for pipe in get_all_graph_pipes(traverse_dps(datapipe)):
        if hasattr(pipe, "apply_sharding"):
            pipe.apply_sharding(num_of_instances, instance_id, sharding_group)
    return datapipe


def _shufflers(datapipe: Any) -> list:
    pipes = get_all_graph_pipes(traverse_dps(datapipe))
    return [pipe for pipe in pipes if hasattr(pipe, "set_shuffle") and hasattr(pipe, "set_seed")]


def apply_shuffle_settings(datapipe: Any, shuffle: bool | None = None) -> Any:
    """Turns shuffling of the pipes on or off; one is added where there is none to turn on."""
    if shuffle is None:
        return datapipe
    shufflers = _shufflers(datapipe)
    if not shufflers and shuffle:
        import warnings

        warnings.warn(
            "`shuffle=True` was set, but the datapipe does not contain a `Shuffler`. Adding one at "
            "the end. Be aware that the default buffer size might not be sufficient for your task.",
            stacklevel=2,
        )
        datapipe = datapipe.shuffle()
        shufflers = [datapipe]
    for shuffler in shufflers:
        shuffler.set_shuffle(shuffle)
    return datapipe


def apply_shuffle_seed(datapipe: Any, rng: Any) -> Any:
    """The old name of apply_random_seed."""
    return apply_random_seed(datapipe, rng)


def apply_random_seed(datapipe: Any, rng: torch.Generator) -> Any:
    """Gives every pipe that draws random numbers a seed; the pipe itself."""
    for pipe in get_all_graph_pipes(traverse_dps(datapipe)):
        if hasattr(pipe, "set_seed"):
            seed = int(torch.empty((), dtype=torch.int64).random_(generator=rng).item())
            pipe.set_seed(seed)
    return datapipe
