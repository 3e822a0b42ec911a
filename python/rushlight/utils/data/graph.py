"""What pipes a pipe is made of."""

from __future__ import annotations

from typing import Any

from rushlight.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe

__all__ = ["traverse", "traverse_dps"]

DataPipeGraph = dict  # of id: (pipe, the graph of what it is made of)


def _inside(value: Any, found: list, seen: set[int]) -> None:
    """The pipes that are nearest in an attribute: through containers and plain objects."""
    if isinstance(value, (IterDataPipe, MapDataPipe)):
        found.append(value)
        return
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple, set)):
        for item in value:
            _inside(item, found, seen)
    elif type(value).__module__.startswith("rushlight.utils.data") and hasattr(value, "__dict__"):
        _inside(vars(value), found, seen)


def traverse_dps(datapipe: Any) -> DataPipeGraph:
    """The pipe and what it is made of, as nested dicts by id."""
    return _graph(datapipe, set())


def _graph(datapipe: Any, above: set[int]) -> DataPipeGraph:
    if id(datapipe) in above:
        return {}
    found: list = []
    _inside(list(vars(datapipe).values()), found, set())
    inner: DataPipeGraph = {}
    for pipe in found:
        inner.update(_graph(pipe, above | {id(datapipe)}))
    return {id(datapipe): (datapipe, inner)}


def traverse(datapipe: Any, only_datapipe: bool | None = None) -> DataPipeGraph:
    """The old name of traverse_dps."""
    import warnings

    warnings.warn(
        "`traverse` function and only_datapipe argument will be removed after 1.13. Please use "
        "`traverse_dps` instead.",
        FutureWarning,
        stacklevel=2,
    )
    return traverse_dps(datapipe)
