"""Compares gradients with finite differences."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import rushlight as torch
from rushlight._C import Tensor
from rushlight.autograd._jacobians import (
    get_analytical_jacobian,
    get_numerical_jacobian,
    get_numerical_jacobian_wrt_specific_input,
)

__all__ = [
    "GradcheckError",
    "get_analytical_jacobian",
    "get_numerical_jacobian",
    "get_numerical_jacobian_wrt_specific_input",
    "gradcheck",
    "gradgradcheck",
]


class GradcheckError(RuntimeError):
    """The gradients differ from what finite differences give."""


def _tuple(values: Any) -> tuple:
    if isinstance(values, Tensor):
        return (values,)
    return tuple(values) if isinstance(values, (list, tuple)) else (values,)


def _is_differentiable(value: Any) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


def _differentiable_outputs(outputs: Any) -> tuple:
    return tuple(output for output in _tuple(outputs) if _is_differentiable(output))


def _plain_outputs(outputs: Any, mask: Sequence[bool]) -> tuple:
    return tuple(output for output, wanted in zip(_tuple(outputs), mask, strict=False) if wanted)


def _check_inputs(inputs: tuple) -> None:
    if not any(_is_differentiable(value) for value in inputs):
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them "
            "have requires_grad=True."
        )
    for index, value in enumerate(inputs):
        if not _is_differentiable(value):
            continue
        if value.dtype not in (torch.float64, torch.complex128):
            warnings.warn(
                f"Input #{index} requires gradient and is not a double precision floating point "
                "or complex. This check will likely fail if all the inputs are not of double "
                "precision floating point or complex. ",
                stacklevel=3,
            )
        overlapping = any(
            stride == 0 and size > 1
            for stride, size in zip(value.stride(), value.shape, strict=False)
        )
        if overlapping:
            raise RuntimeError(
                f"The {index}th input has a dimension with stride 0. gradcheck only supports "
                "inputs that are non-overlapping to be able to compute the numerical gradients "
                "correctly. You should call .contiguous on the input before passing it to "
                "gradcheck."
            )


def _is_complex(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_complex()


def _on_pairs(function: Callable, inputs: tuple) -> tuple[Callable, tuple]:
    """The function and its inputs with pairs of real numbers in place of complex ones, for which
    the convention of gradients is that of real numbers.
    """
    complex_at = [_is_differentiable(value) and value.is_complex() for value in inputs]

    def on_pairs(*values: Any) -> tuple:
        with torch.enable_grad():
            given = [
                torch.view_as_complex(value) if pairs else value
                for value, pairs in zip(values, complex_at, strict=True)
            ]
        outputs = _tuple(function(*given))
        return tuple(torch.view_as_real(o) if _is_complex(o) else o for o in outputs)

    pairs = tuple(
        torch.view_as_real(value.detach()).requires_grad_() if pairs else value
        for value, pairs in zip(inputs, complex_at, strict=True)
    )
    return on_pairs, pairs


class _Function:
    """The function with its differentiable inputs and outputs picked out."""

    def __init__(self, function: Callable, inputs: tuple) -> None:
        self.function = function
        self.inputs = inputs
        self.positions = [i for i, value in enumerate(inputs) if _is_differentiable(value)]
        self.outputs = _tuple(function(*inputs))
        self.mask = [_is_differentiable(output) for output in self.outputs]

    def differentiable(self) -> tuple:
        return _plain_outputs(self.outputs, self.mask)

    def run(self) -> tuple:
        """The outputs for the inputs' values of now, as copies outside the graph."""
        with torch.no_grad():
            outputs = _plain_outputs(self.function(*self.inputs), self.mask)
        return tuple(output.detach().clone() for output in outputs)

    def run_with_graph(self) -> tuple:
        return _plain_outputs(self.function(*self.inputs), self.mask)


def _elements(tensor: Tensor) -> list[tuple[int, ...]]:
    indices: list[tuple[int, ...]] = [()]
    for size in tensor.shape:
        indices = [(*index, i) for index in indices for i in range(size)]
    return indices


def _numerical_jacobians(checked: _Function, position: int, eps: float) -> list[Tensor]:
    """d output / d input as (input elements, output elements), one an output."""
    data = checked.inputs[position].data  # writes to it pass unseen by the graph
    columns: list[list[Tensor]] = [[] for _ in checked.differentiable()]
    for index in _elements(data):
        original = data[index].item()
        with torch.no_grad():
            data[index] = original - eps
            low = checked.run()
            data[index] = original + eps
            high = checked.run()
            data[index] = original
        for column, a, b in zip(columns, low, high, strict=False):
            column.append(((b - a) / (2 * eps)).reshape(-1))
    return [
        torch.stack(column) if column else output.new_zeros((0, output.numel())).detach()
        for column, output in zip(columns, checked.differentiable(), strict=False)
    ]


def _gradient_or_zeros(gradient: Tensor | None, like: Tensor) -> Tensor:
    return torch.zeros_like(like) if gradient is None else gradient


def _analytical_jacobians(
    checked: _Function, output: Tensor, which: int, allow_none: bool = True
) -> list[Tensor]:
    """The same by backward, for one output and all inputs."""
    inputs = [checked.inputs[i] for i in checked.positions]
    rows: list[list[Tensor]] = [[] for _ in inputs]
    for index in _elements(output):
        seed = torch.zeros_like(output)
        seed[index] = 1
        gradients = torch.autograd.grad(
            output, inputs, seed, retain_graph=True, allow_unused=allow_none
        )
        for row, gradient, value in zip(rows, gradients, inputs, strict=False):
            if gradient is not None and gradient.shape != value.shape:
                raise GradcheckError(
                    f"Analytical gradient has incorrect size: got {tuple(gradient.shape)} for an "
                    f"input of {tuple(value.shape)}"
                )
            row.append(_gradient_or_zeros(gradient, value.detach()).reshape(-1))
    return [
        torch.stack(row).t() if row else value.detach().new_zeros((value.numel(), 0))
        for row, value in zip(rows, inputs, strict=False)
    ]


def _close(a: Tensor, b: Tensor, rtol: float, atol: float) -> bool:
    """Whether |a - b| <= atol + rtol * |b| for each element."""
    if a.numel() == 0:
        return True
    return bool(((a - b).abs() <= atol + rtol * b.abs()).all())


def _mismatch_text(which: int, position: int, numerical: Any, analytical: Any) -> str:
    return (
        f"Jacobian mismatch for output {which} with respect to input {position},\n"
        f"numerical:{numerical}\nanalytical:{analytical}\n"
    )


def _check_slow(checked: _Function, settings: dict) -> None:
    outputs = checked.differentiable()
    numerical = [
        _numerical_jacobians(checked, position, settings["eps"]) for position in checked.positions
    ]
    for which, output in enumerate(outputs):
        analytical = _analytical_jacobians(checked, output, which)
        again = _analytical_jacobians(checked, output, which)
        for column, position in enumerate(checked.positions):
            if not _close(analytical[column], again[column], 0.0, settings["nondet_tol"]):
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input and "
                    "grad_output multiple times gives different values, although analytical "
                    "gradient matches numerical gradient.The tolerance for nondeterminism was "
                    f"{settings['nondet_tol']}."
                )
            expected = numerical[column][which].to(analytical[column].dtype)
            if not _close(analytical[column], expected, settings["rtol"], settings["atol"]):
                raise GradcheckError(_mismatch_text(which, position, expected, analytical[column]))


def _check_fast(checked: _Function, settings: dict) -> None:
    """One random projection of each jacobian in place of all its elements."""
    generator = torch.Generator()
    generator.manual_seed(0)
    eps = settings["eps"]
    for which, output in enumerate(checked.differentiable()):
        weights = torch.rand(output.shape, generator=generator, dtype=output.dtype)
        gradients = torch.autograd.grad(
            output,
            [checked.inputs[i] for i in checked.positions],
            weights,
            retain_graph=True,
            allow_unused=True,
        )
        for position, gradient in zip(checked.positions, gradients, strict=False):
            value = checked.inputs[position]
            direction = torch.rand(value.shape, generator=generator, dtype=value.dtype)
            data = value.data
            original = data.clone()
            data.copy_(original - eps * direction)
            low = checked.run()[which]
            data.copy_(original + eps * direction)
            high = checked.run()[which]
            data.copy_(original)
            numerical = (((high - low) / (2 * eps)) * weights).sum()
            analytical = (_gradient_or_zeros(gradient, data) * direction).sum()
            count = max(1, output.numel() * value.numel())
            if not _close(analytical, numerical, settings["rtol"], settings["atol"] * count):
                text = _mismatch_text(which, position, numerical.item(), analytical.item())
                raise GradcheckError(
                    text + "\nThe above quantities relating the numerical and analytical "
                    "jacobians are computed in fast mode."
                )


def _check_undefined(checked: _Function) -> None:
    """A gradient that is not there must count as zeros."""
    outputs = checked.run_with_graph()
    if len(outputs) < 2:
        return
    inputs = [checked.inputs[i] for i in checked.positions]
    for missing in range(len(outputs)):
        kept = [output for i, output in enumerate(outputs) if i != missing]
        ones = [torch.ones_like(output) for output in kept]
        by_none = torch.autograd.grad(kept, inputs, ones, retain_graph=True, allow_unused=True)
        seeds = [
            torch.zeros_like(output) if i == missing else torch.ones_like(output)
            for i, output in enumerate(outputs)
        ]
        by_zero = torch.autograd.grad(
            list(outputs), inputs, seeds, retain_graph=True, allow_unused=True
        )
        for position, a, b in zip(checked.positions, by_none, by_zero, strict=False):
            value = checked.inputs[position].detach()
            if not _close(_gradient_or_zeros(a, value), _gradient_or_zeros(b, value), 0.0, 1e-12):
                raise GradcheckError(
                    "Expected undefined output grads to be treated as zeros: the gradient of "
                    f"input {position} differs where that of output {missing} is not given"
                )


def _check_dtypes(checked: _Function) -> None:
    inputs = [checked.inputs[i] for i in checked.positions]
    for output in checked.differentiable():
        gradients = torch.autograd.grad(
            output, inputs, torch.ones_like(output), retain_graph=True, allow_unused=True
        )
        for position, value, gradient in zip(checked.positions, inputs, gradients, strict=False):
            if gradient is not None and gradient.dtype != value.dtype:
                raise GradcheckError(
                    f"the gradient of input {position} has dtype {gradient.dtype}, expected "
                    f"{value.dtype}"
                )


def _check(function: Callable, inputs: tuple, settings: dict) -> None:
    _check_inputs(inputs)
    checked = _Function(*_on_pairs(function, inputs))
    if not any(isinstance(output, Tensor) for output in checked.outputs):
        raise ValueError(
            "Expected at least one of the outputs to be a tensor, got "
            f"{[type(output).__name__ for output in checked.outputs]}"
        )
    if not any(checked.mask):
        _check_constant(checked, settings)
        return
    (_check_fast if settings["fast_mode"] else _check_slow)(checked, settings)
    if settings["check_undefined_grad"]:
        _check_undefined(checked)
    if settings["check_grad_dtypes"]:
        _check_dtypes(checked)


def _check_constant(checked: _Function, settings: dict) -> None:
    """No output requires grad: then none may depend on the inputs."""
    checked.mask = [
        isinstance(output, Tensor) and output.is_floating_point() for output in checked.outputs
    ]
    for position in checked.positions:
        for which, jacobian in enumerate(_numerical_jacobians(checked, position, settings["eps"])):
            if not _close(jacobian, torch.zeros_like(jacobian), 0.0, settings["atol"]):
                raise GradcheckError(
                    f"Numerical gradient for function expected to be zero: output {which} does "
                    f"not require grad but depends on input {position}"
                )


def gradcheck(
    func: Callable,
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether the gradients of func, for inputs in float64 or complex128 that require grad, are
    those of finite differences of step `eps`: |analytical - numerical| <= atol + rtol
    * |numerical|.

    Raises GradcheckError where not, or gives False where raise_exception is off.
    """
    if not check_backward_ad and not check_forward_ad:
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad")
    if check_forward_ad or check_batched_grad or check_batched_forward_grad:
        raise NotImplementedError(
            "gradcheck(): check_forward_ad, check_batched_grad and check_batched_forward_grad "
            "need forward mode or vmap, which are not offered"
        )
    settings = {
        "eps": eps,
        "atol": atol,
        "rtol": rtol,
        "nondet_tol": nondet_tol,
        "check_undefined_grad": check_undefined_grad,
        "check_grad_dtypes": check_grad_dtypes,
        "fast_mode": fast_mode,
    }
    try:
        _check(func, _tuple(inputs), settings)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _random_gradients(outputs: tuple, non_contiguous: bool) -> tuple:
    gradients = []
    for output in outputs:
        gradient = torch.randn(output.shape, dtype=output.dtype)
        if non_contiguous and gradient.numel() > 1:
            gradient = torch.stack([gradient, gradient], -1).select(-1, 0)
        gradients.append(gradient.requires_grad_())
    return tuple(gradients)


def gradgradcheck(
    func: Callable,
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """gradcheck of the gradients of func with respect to `inputs` and `grad_outputs` (random where
    not given).
    """
    if check_fwd_over_rev:
        raise NotImplementedError("gradgradcheck(): check_fwd_over_rev needs forward mode")
    values = _tuple(inputs)
    if grad_outputs is None:
        outputs = _differentiable_outputs(func(*values))
        gradients = _random_gradients(outputs, gen_non_contig_grad_outputs)
    else:
        gradients = _tuple(grad_outputs)
    count = len(gradients)

    def gradient_of(*arguments: Any) -> tuple:
        arguments, given = arguments[:-count], arguments[-count:]
        outputs = _differentiable_outputs(func(*arguments))
        wanted = tuple(value for value in arguments if _is_differentiable(value))
        results = torch.autograd.grad(outputs, wanted, given, create_graph=True, allow_unused=True)
        return tuple(result for result in results if result is not None)

    with torch.enable_grad():
        return gradcheck(
            _with_grad(gradient_of),
            (*values, *gradients),
            eps=eps,
            atol=atol,
            rtol=rtol,
            raise_exception=raise_exception,
            nondet_tol=nondet_tol,
            check_undefined_grad=check_undefined_grad,
            check_grad_dtypes=check_grad_dtypes,
            check_batched_grad=check_batched_grad,
            fast_mode=fast_mode,
        )


def _with_grad(function: Callable) -> Callable:
    """The function with recording on: it differentiates inside."""

    def wrapper(*arguments: Any) -> Any:
        with torch.enable_grad():
            return function(*arguments)

    return wrapper
