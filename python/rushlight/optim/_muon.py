"""Muon (Jordan et al., 2024): momentum made orthogonal."""

from __future__ import annotations

import math

import rushlight as torch
from rushlight import Tensor

from .optimizer import Optimizer, _evaluate, _without_grad

__all__ = ["Muon"]

_COEFFICIENTS = (3.4445, -4.7750, 2.0315)


def _orthogonalize(update: Tensor, coefficients: tuple, steps: int, eps: float) -> Tensor:
    """The nearest matrix with equal singular values, by Newton-Schulz iterations in bfloat16."""
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if update.ndim != 2:
        raise ValueError("Input tensor gradient must be a 2D matrix")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    x = update.bfloat16()
    tall = x.size(0) > x.size(1)
    if tall:
        x = x.T
    x.div_(x.norm().clamp(min=eps))
    for _ in range(steps):
        gram = x @ x.T
        polynomial = torch.addmm(gram, gram, gram, beta=b, alpha=c)
        x = torch.addmm(x, polynomial, x, beta=a)
    return x.T if tall else x


def _adjust_lr(lr: float, name: str | None, shape) -> float:
    rows, columns = shape[:2]
    if name is None or name == "original":
        return lr * math.sqrt(max(1, rows / columns))
    if name == "match_rms_adamw":
        return lr * 0.2 * math.sqrt(max(rows, columns))
    return lr


class Muon(Optimizer):
    """Momentum whose singular values are made equal, for the matrices of hidden layers.

    `adjust_lr_fn` is "original" or "match_rms_adamw": how the rate depends on the shape.
    """

    def __init__(
        self,
        params,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = _COEFFICIENTS,
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not 0.0 <= lr:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not 0.0 <= momentum:
            raise ValueError(f"momentum should be >= 0 but is: {momentum}")
        if not 0.0 <= weight_decay:
            raise ValueError(f"weight decay should be >= 0 but is: {weight_decay}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.ndim != 2:
                    raise ValueError(
                        "Muon only supports 2D parameters whereas we found a parameter with size: "
                        f"{parameter.size()}"
                    )

    @_without_grad
    def step(self, closure=None):
        """Updates the parameters once."""
        loss = _evaluate(closure)
        for group in self.param_groups:
            for parameter in group["params"]:
                gradient = parameter.grad
                if gradient is None:
                    continue
                if torch.is_complex(parameter):
                    raise RuntimeError("Muon does not support complex parameters")
                if gradient.is_sparse:
                    raise RuntimeError("Muon does not support sparse gradients")
                state = self.state[parameter]
                if "momentum_buffer" not in state:
                    state["momentum_buffer"] = torch.zeros_like(
                        gradient, memory_format=torch.preserve_format
                    )
                _update(parameter, gradient, state["momentum_buffer"], group)
        return loss


def _update(param: Tensor, grad: Tensor, buffer: Tensor, group: dict) -> None:
    lr, momentum = group["lr"], group["momentum"]
    buffer.lerp_(grad, 1 - momentum)
    update = grad.lerp(buffer, momentum) if group["nesterov"] else buffer
    update = _orthogonalize(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
    rate = _adjust_lr(lr, group["adjust_lr_fn"], param.shape)
    param.mul_(1 - lr * group["weight_decay"])
    param.add_(update, alpha=-rate)
