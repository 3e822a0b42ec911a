"""Full backward hooks: identity nodes at the inputs and outputs of a module, which tell when
gradients pass.
"""

from __future__ import annotations

import rushlight as torch
from rushlight import Tensor


class BackwardHookFunction(torch.autograd.Function):
    """Hands tensors on unchanged; on the way back gives their gradients to a callback."""

    @staticmethod
    def forward(ctx, on_backward, *tensors):
        ctx.set_materialize_grads(False)
        ctx.on_backward = on_backward
        return tuple(tensor.detach() for tensor in tensors)

    @staticmethod
    def backward(ctx, *grads):
        return (None, *ctx.on_backward(grads))


def _wrap(values: tuple, on_backward) -> tuple[tuple, list[int]]:
    """Passes the tensors among `values` that need gradients through a gate; also gives their
    positions.
    """
    positions = [
        index
        for index, value in enumerate(values)
        if isinstance(value, Tensor) and value.requires_grad
    ]
    if not positions or not torch.is_grad_enabled():
        return values, []
    wrapped = list(values)
    for index, tensor in zip(
        positions, BackwardHookFunction.apply(on_backward, *(values[i] for i in positions))
    ):
        wrapped[index] = tensor
    return tuple(wrapped), positions


def _spread(grads: tuple, positions: list[int], size: int) -> tuple:
    """Gradients of all `size` values, with None for those that need none."""
    spread = [None] * size
    for index, grad in zip(positions, grads):
        spread[index] = grad
    return tuple(spread)


class BackwardGates:
    """The backward hooks of one call of one module.

    `hooks` get (module, grad_input, grad_output), `pre_hooks` get (module, grad_output); either
    may replace the
    gradients. Only positional arguments count as inputs.
    """

    def __init__(self, module, hooks: list, pre_hooks: list) -> None:
        self.module = module
        self.hooks = hooks
        self.pre_hooks = pre_hooks
        self.grad_outputs: tuple | None = None
        self.input_count = 0
        self.input_positions: list[int] = []
        self.output_count = 0
        self.output_positions: list[int] = []

    def wrap_inputs(self, args: tuple) -> tuple:
        self.input_count = len(args)
        wrapped, self.input_positions = _wrap(args, self._on_inputs)
        return wrapped

    def wrap_outputs(self, result):
        if isinstance(result, Tensor):
            outputs: tuple = (result,)
        elif isinstance(result, tuple):
            outputs = result
        else:
            return result
        self.output_count = len(outputs)
        wrapped, self.output_positions = _wrap(outputs, self._on_outputs)
        if isinstance(result, Tensor):
            return wrapped[0]
        return type(result)(*wrapped) if hasattr(result, "_fields") else wrapped

    def _on_outputs(self, grads: tuple) -> tuple:
        grad_outputs = _spread(grads, self.output_positions, self.output_count)
        for hook in self.pre_hooks:
            grad_outputs = _replaced(hook(self.module, grad_outputs), grad_outputs, "grad_output")
        self.grad_outputs = grad_outputs
        if not self.input_positions:
            nothing = (None,) * self.input_count
            for hook in self.hooks:
                returned = hook(self.module, nothing, grad_outputs)
                if returned is not None and any(value is not None for value in _as_tuple(returned)):
                    raise RuntimeError(
                        "Backward hook for Modules where no input requires gradient should always "
                        "return None or None for all gradients."
                    )
        return tuple(grad_outputs[index] for index in self.output_positions)

    def _on_inputs(self, grads: tuple) -> tuple:
        grad_outputs = self.grad_outputs
        if (
            grad_outputs is None
        ):  # no gradient has reached an output: the inputs' come from elsewhere
            return grads
        grad_inputs = _spread(grads, self.input_positions, self.input_count)
        for hook in self.hooks:
            returned = hook(self.module, grad_inputs, grad_outputs)
            grad_inputs = _replaced(returned, grad_inputs, "grad_input")
        self.grad_outputs = None
        return tuple(grad_inputs[index] for index in self.input_positions)


def _as_tuple(value) -> tuple:
    return value if isinstance(value, tuple) else (value,)


def _replaced(returned, current: tuple, what: str) -> tuple:
    """What a hook returned, or `current` if that was None."""
    if returned is None:
        return current
    returned = _as_tuple(returned)
    if len(returned) != len(current):
        raise RuntimeError(
            f"Backward hook returned an invalid number of {what}, got {len(returned)}, "
            f"but expected {len(current)}"
        )
    return returned
