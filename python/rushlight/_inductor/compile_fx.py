"""The built-in back end as a function, for back ends that hand graphs on."""

from __future__ import annotations

from collections.abc import Callable

from rushlight._dynamo.foreign import native_callable


def compile_fx(model_, example_inputs_, **kwargs: object) -> Callable:
    """A callable that runs the graph, compiled."""
    return native_callable(model_)


def compile_fx_inner(gm, example_inputs, **kwargs: object) -> Callable:
    """compile_fx, for graphs of aten operators: all are here."""
    return native_callable(gm)
