"""The Jacobians that gradcheck compares, one by one, as old programs ask for them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import rushlight as torch
from rushlight._C import Tensor

__all__ = [
    "get_analytical_jacobian",
    "get_numerical_jacobian",
    "get_numerical_jacobian_wrt_specific_input",
]


def _tensors(values: object) -> tuple[Tensor, ...]:
    items = values if isinstance(values, (list, tuple)) else (values,)
    return tuple(item for item in items if isinstance(item, Tensor))


def _differentiable(values: object) -> tuple[Tensor, ...]:
    return tuple(tensor for tensor in _tensors(values) if tensor.requires_grad)


def _refuse(name: str, outputs: Sequence[Tensor], grad_out: float) -> None:
    if grad_out != 1.0:
        raise ValueError(
            f"Expected grad_out to be 1.0. {name} no longer supports values of grad_out != 1.0, "
            f"got {grad_out}."
        )
    if any(output.is_complex() for output in outputs):
        raise ValueError(
            f"Expected output to be non-complex. {name} no longer supports functions that return "
            "complex outputs."
        )


def _quotients(run: Callable[[], tuple[Tensor, ...]], target: Tensor, eps: float) -> list[Tensor]:
    """Of each output, (elements of target, elements of output): central differences in steps of
    `eps`, and for complex targets in the imaginary direction, too.
    """
    rows: list[list[Tensor]] = []
    data = target.detach()
    for index in itertools.product(*map(range, target.shape)):
        parts = []
        for step in (eps, eps * 1j) if target.is_complex() else (eps,):
            before = data[index].clone()
            data[index] = before + step
            above = run()
            data[index] = before - step
            below = run()
            data[index] = before
            parts.append([(a - b) / (2 * eps) for a, b in zip(above, below, strict=True)])
        if len(parts) == 2:
            parts = [[torch.complex(re, im) for re, im in zip(*parts, strict=True)]]
        rows.append([part.reshape(-1) for part in parts[0]])
    if not rows:
        return [output.new_zeros(0, output.numel()) for output in run()]
    return [torch.stack(column) for column in zip(*rows, strict=True)]


def get_numerical_jacobian_wrt_specific_input(
    fn: Callable,
    input_idx: int,
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    eps: float,
    input: Tensor | None = None,
    is_forward_ad: bool = False,
) -> tuple[Tensor, ...]:
    """The Jacobians of fn(*inputs) with respect to one input, one for each of its outputs.

    Each is (elements of the input, elements of the output). `input`: the tensor that is changed,
    where it is not inputs[input_idx].
    """
    target = inputs[input_idx] if input is None else input
    wanted = len(_tensors(outputs))

    def run() -> tuple[Tensor, ...]:
        with torch.no_grad():
            return tuple(made.detach().clone() for made in _tensors(fn(*inputs)))[:wanted]

    return tuple(_quotients(run, target, eps))


def get_numerical_jacobian(
    fn: Callable,
    inputs: Tensor | Sequence[Tensor],
    target: Tensor | Sequence[Tensor] | None = None,
    eps: float = 1e-3,
    grad_out: float = 1.0,
) -> tuple[Tensor, ...]:
    """The Jacobians of the first output of fn(inputs), one for each target that requires grad.

    Deprecated: see gradcheck. `target`: what is changed; None: the inputs.
    """
    _refuse("get_numerical_jacobian", _tensors(fn(inputs)), grad_out)

    def run() -> tuple[Tensor, ...]:
        with torch.no_grad():
            return (_tensors(fn(inputs))[0].detach().clone(),)

    targets = _differentiable(inputs if target is None else target)
    return tuple(_quotients(run, tensor, eps)[0] for tensor in targets)


def get_analytical_jacobian(
    inputs: Tensor | Sequence[Tensor],
    output: Tensor,
    nondet_tol: float = 0.0,
    grad_out: float = 1.0,
) -> tuple[tuple[Tensor, ...], bool, bool, bool]:
    """What backward gives, in place of differences: (Jacobians, whether a second backward gives the
    same up to nondet_tol, whether sizes are those of the inputs, whether dtypes are).

    Deprecated: see gradcheck.
    """
    _refuse("get_analytical_jacobian", (output,), grad_out)
    targets = _differentiable(inputs)
    sizes_fit = dtypes_fit = True
    passes: list[tuple[Tensor, ...]] = []
    for _ in range(2):
        columns: list[list[Tensor]] = [[] for _ in targets]
        for at in range(output.numel()):
            chosen = torch.zeros(output.numel(), dtype=output.dtype)
            chosen[at] = 1
            gradients = torch.autograd.grad(
                output, targets, chosen.reshape(output.shape), retain_graph=True, allow_unused=True
            )
            for column, gradient, tensor in zip(columns, gradients, targets, strict=True):
                if gradient is None:
                    gradient = torch.zeros_like(tensor)
                sizes_fit = sizes_fit and gradient.shape == tensor.shape
                dtypes_fit = dtypes_fit and gradient.dtype == tensor.dtype
                column.append(gradient.reshape(-1))
        passes.append(
            tuple(
                torch.stack(column, 1) if column else tensor.new_zeros(tensor.numel(), 0)
                for column, tensor in zip(columns, targets, strict=True)
            )
        )
    same = all(
        (one - other).abs().max() <= nondet_tol
        for one, other in zip(*passes, strict=True)
        if one.numel()
    )
    return passes[0], same, sizes_fit, dtypes_fit
