"""Automatic differentiation: backward, grad, custom functions, hooks and modes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight import _C
from rushlight._C import Tensor
from rushlight.autograd import anomaly_mode, function, grad_mode, graph
from rushlight.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
from rushlight.autograd.function import Function, NestedIOFunction
from rushlight.autograd.grad_mode import (
    enable_grad,
    enforce_grad_layout_policy,
    inference_mode,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from rushlight.autograd.gradcheck import gradcheck, gradgradcheck
from rushlight.autograd.graph import GradientEdge
from rushlight.autograd.variable import Variable

__all__ = [
    "Function",
    "NestedIOFunction",
    "Variable",
    "anomaly_mode",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "enforce_grad_layout_policy",
    "forward_ad",
    "function",
    "functional",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
    "variable",
]


def variable(*args: Any, **kwargs: Any) -> None:
    """An error: tensors took the place of variables."""
    raise RuntimeError("torch.autograd.variable(...) is deprecated, use torch.tensor(...) instead")


def _as_tuple(tensors: Any) -> tuple:
    if tensors is None:
        return ()
    if isinstance(tensors, (Tensor, GradientEdge)):
        return (tensors,)
    return tuple(tensors)


def _gradients(gradients: Any, count: int) -> tuple:
    if gradients is None:
        return (None,) * count
    return _as_tuple(gradients)


def backward(
    tensors: Tensor | Sequence[Tensor] | GradientEdge | Sequence[GradientEdge],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Tensor | Sequence[Tensor | None] | None = None,
    inputs: Any = None,
) -> None:
    """Accumulates the gradients of `tensors` into the leaves, or into `inputs` only.

    Tensors with one element need no gradient given. The graph is released unless retained, which
    `create_graph` implies.
    """
    if grad_variables is not None:
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to "
                "`backward()`. Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    if isinstance(inputs, dict):
        inputs = tuple(inputs.values())
    if inputs is not None and not isinstance(inputs, (Tensor, GradientEdge)):
        inputs = tuple(inputs)
        if not inputs:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    roots = _as_tuple(tensors)
    retain = create_graph if retain_graph is None else retain_graph
    gradients = _gradients(grad_tensors, len(roots))
    _C._run_backward(roots, gradients, retain, create_graph, _as_tuple(inputs), True, True)


def grad(
    outputs: Tensor | Sequence[Tensor] | GradientEdge | Sequence[GradientEdge],
    inputs: Any,
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...] | dict[str, Tensor]:
    """The gradients of the sum of `outputs` with respect to `inputs`.

    An input that was not used is an error, or None where allow_unused, or zeros where
    materialize_grads. A dict of inputs gives a dict of gradients.
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
            "allow_unused=False."
        )
    keys = tuple(inputs) if isinstance(inputs, dict) else None
    wanted = tuple(inputs.values()) if isinstance(inputs, dict) else _as_tuple(inputs)
    if not wanted:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    roots = _as_tuple(outputs)
    seeds = _gradients(grad_outputs, len(roots))
    options = {
        "retain_graph": retain_graph,
        "create_graph": create_graph,
        "allow_unused": allow_unused,
        "materialize_grads": materialize_grads,
    }
    if is_grads_batched:
        result = _rows_of_gradients(roots, wanted, seeds, options)
        return dict(zip(keys, result, strict=True)) if keys is not None else result
    relevant = tuple(value for value in (*roots, *wanted, *seeds) if isinstance(value, Tensor))
    if _C._has_torch_function(relevant):
        result = _C._handle_torch_function(grad, relevant, (roots, wanted, seeds), options)
        return dict(zip(keys, result, strict=True)) if keys is not None else result
    retain = create_graph if retain_graph is None else retain_graph
    allowed = materialize_grads if allow_unused is None else allow_unused
    result = _C._run_backward(
        roots,
        seeds,
        retain,
        create_graph,
        wanted,
        allowed,
        False,
    )
    if materialize_grads:
        if any(
            g is None and not isinstance(i, Tensor) for g, i in zip(result, wanted, strict=False)
        ):
            raise RuntimeError(
                "materialize_grads cannot be used when the given input is a GradientEdge"
            )
        result = tuple(
            wanted[i].new_zeros(wanted[i].shape, requires_grad=create_graph) if g is None else g
            for i, g in enumerate(result)
        )
    return dict(zip(keys, result, strict=False)) if keys is not None else result


def _rows_of_gradients(roots: tuple, wanted: tuple, seeds: tuple, options: dict) -> tuple:
    """The gradients for each row of the gradients given, stacked."""
    sizes = {seed.shape[0] for seed in seeds if seed is not None}
    if len(sizes) != 1 or 0 in sizes:
        raise ValueError(
            "grad(): is_grads_batched=True expects grad_outputs with one and the same first "
            f"dimension, not empty, but got sizes {sorted(sizes)}"
        )
    options = {**options, "retain_graph": True}
    rows = [
        grad(roots, wanted, [None if seed is None else seed[i] for seed in seeds], **options)
        for i in range(sizes.pop())
    ]
    return tuple(
        None if column[0] is None else _C._VariableFunctions.stack(column)
        for column in zip(*rows, strict=True)
    )


def _is_checkpoint_valid() -> bool:
    return True


def __getattr__(name: str) -> Any:
    if name in ("forward_ad", "functional", "profiler"):  # loaded at first use
        import importlib

        return importlib.import_module(f"rushlight.autograd.{name}")
    raise AttributeError(f"module 'rushlight.autograd' has no attribute '{name}'")
