"""What the transforms of functions need of the tape: inputs to differentiate, and gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight as torch
from rushlight import Tensor
from rushlight._functorch._batched import active_levels, batch_over, physical, rewrap


def fresh(value: Any) -> Tensor:
    """An input to differentiate: connected to the caller's graph where there is one. Under vmap
    each element of the batch has one of its own, so that gradients stay apart.
    """
    if not isinstance(value, Tensor):
        raise ValueError(f"Thing passed to transform API must be Tensor, got {type(value)}")
    if not (value.is_floating_point() or value.is_complex()):
        raise RuntimeError("only Tensors of floating point dtype can require gradients")
    for level in active_levels():
        value = batch_over(value, level)
    raw = physical(value)
    made = raw.view_as(raw) if raw.requires_grad else raw.detach().requires_grad_()
    return rewrap(made, value)


def depends_on_others(outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> bool:
    """Whether outputs depend on tensors that require grad other than through these inputs."""
    leaves = {id(physical(value)) for value in inputs if physical(value).grad_fn is None}
    if any(physical(value).grad_fn is not None for value in inputs):
        return True
    pending = [physical(output).grad_fn for output in outputs if isinstance(output, Tensor)]
    pending += [None]
    seen: set = set()
    for output in outputs:
        raw = physical(output)
        if raw.requires_grad and raw.grad_fn is None and id(raw) not in leaves:
            return True
    while pending:
        node = pending.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        variable = getattr(node, "variable", None)
        if variable is not None and id(variable) not in leaves:
            return True
        pending += [function for function, _ in node.next_functions]
    return False


def gradients(
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    given: Sequence[Tensor],
    *,
    retain_graph: bool | None = None,
    create_graph: bool = False,
) -> tuple[Tensor, ...]:
    """The gradients, zeros for inputs that do not matter; batched as the inputs are."""
    kept = [(o, g) for o, g in zip(outputs, given, strict=True) if o.requires_grad]
    found: tuple = (None,) * len(inputs)
    if kept and inputs:
        found = torch.autograd.grad(
            [output for output, _ in kept],
            list(inputs),
            [gradient for _, gradient in kept],
            retain_graph=retain_graph,
            create_graph=create_graph,
            allow_unused=True,
        )
    return tuple(
        torch.zeros_like(value) if gradient is None else gradient
        for gradient, value in zip(found, inputs, strict=True)
    )


def release(value: Any, keep: bool) -> Any:
    """A result that leaves a transform: cut from the tape, unless others are on it."""
    return value if keep or not isinstance(value, Tensor) else value.detach()
