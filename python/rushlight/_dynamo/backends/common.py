"""Helpers for those who write back ends."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable


class AotAutograd:
    """A back end that compiles forward and backward graphs by functions of their own."""

    def __init__(self, **kwargs: object) -> None:
        self.__name__ = "compiler_fn"
        self.kwargs = kwargs

    def _compiler(self, gm) -> Callable:
        forward = self.kwargs.get("fw_compiler")
        if gm.meta.get("is_backward"):
            return self.kwargs.get("bw_compiler") or forward
        return forward

    def __call__(self, gm, example_inputs, **kwargs: object) -> Callable:
        compiler = self._compiler(gm)
        if compiler is None:
            raise TypeError("aot_autograd: fw_compiler is missing")
        for target, replacement in (self.kwargs.get("decompositions") or {}).items():
            _decompose(gm, target, replacement)
        return compiler(gm, example_inputs)


def _decompose(gm, target: Callable, replacement: Callable) -> None:
    """Puts the operators that `replacement` calls in the place of calls of `target`."""
    from rushlight import fx

    tracer = fx.proxy.GraphAppendingTracer(gm.graph)
    for node in list(gm.graph.nodes):
        if node.op != "call_function" or node.target != target:
            continue
        with gm.graph.inserting_before(node):
            args = fx.map_arg(node.args, lambda n: fx.Proxy(n, tracer))
            kwargs = fx.map_arg(node.kwargs, lambda n: fx.Proxy(n, tracer))
            made = replacement(*args, **kwargs)
        node.replace_all_uses_with(made.node)
        gm.graph.erase_node(node)
    gm.recompile()


def aot_autograd(**kwargs: object) -> AotAutograd:
    """A back end from fw_compiler= and bw_compiler=, each called with a graph and its inputs.

    Graphs are of aten operators already, and backward comes as a graph of its own.
    `decompositions=` are applied; partition_fn= and the like choose nothing here.
    """
    return AotAutograd(**kwargs)


def fake_tensor_unsupported(fn: Callable) -> Callable:
    """Marks a back end that needs real example inputs: they are always real here."""

    @functools.wraps(fn)
    def wrapper(model, inputs, **kwargs: object):
        return fn(model, inputs, **kwargs)

    return wrapper


def device_from_inputs(example_inputs: Iterable):
    """The device of the first tensor."""
    for item in example_inputs:
        if hasattr(item, "device"):
            return item.device
    return None


def dtype_from_inputs(example_inputs: Iterable):
    """The dtype of the first tensor."""
    for item in example_inputs:
        if hasattr(item, "dtype"):
            return item.dtype
    return None
