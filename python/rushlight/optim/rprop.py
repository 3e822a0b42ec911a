"""Resilient backpropagation (Riedmiller & Braun, 1993)."""

from __future__ import annotations

import rushlight as torch
from rushlight import Tensor

from . import _common
from .optimizer import Optimizer, _evaluate, _use_grad_for_differentiable

__all__ = ["Rprop", "rprop"]


class Rprop(Optimizer):
    """Steps by the sign of the gradient; each element's step grows while its sign stays, else
    shrinks.
    """

    def __init__(
        self,
        params,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        _common.check_lr(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict) -> None:
        super().__setstate__(state)
        defaults = {
            "foreach": None,
            "maximize": False,
            "differentiable": False,
            "capturable": False,
        }
        _common.upgrade_steps(self.state, self.param_groups, defaults)

    def _start(self, group: dict, parameter: Tensor, gradient: Tensor) -> dict:
        rate = group["lr"]
        if parameter.is_complex():  # both parts start with the same step
            rate = complex(rate, rate)
        first = torch.full_like(gradient, float(rate) if isinstance(rate, Tensor) else rate)
        return {
            "step": _common.new_step(parameter, group["capturable"]),
            "prev": _common.zeros_for(parameter),
            "step_size": first,
        }

    @_use_grad_for_differentiable
    def step(self, closure=None):
        """Updates the parameters once."""
        loss = _evaluate(closure)
        for group in self.param_groups:
            params, grads, has_complex = _common.collect(group, "Rprop")
            for parameter, gradient in zip(params, grads):
                if not self.state[parameter]:
                    self.state[parameter] = self._start(group, parameter, gradient)
            states = [self.state[parameter] for parameter in params]
            etaminus, etaplus = group["etas"]
            step_size_min, step_size_max = group["step_sizes"]
            rprop(
                params,
                grads,
                [state["prev"] for state in states],
                [state["step_size"] for state in states],
                [state["step"] for state in states],
                step_size_min=step_size_min,
                step_size_max=step_size_max,
                etaminus=etaminus,
                etaplus=etaplus,
                foreach=group["foreach"],
                maximize=group["maximize"],
                differentiable=group["differentiable"],
                capturable=group["capturable"],
                has_complex=has_complex,
            )
        return loss


def rprop(
    params: list[Tensor],
    grads: list[Tensor],
    prevs: list[Tensor],
    step_sizes: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    capturable: bool = False,
    maximize: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    step_size_min: float,
    step_size_max: float,
    etaminus: float,
    etaplus: float,
) -> None:
    """One step for lists of parameters, gradients and state."""
    _common.check_steps(state_steps)
    _common.check_differentiable_foreach(foreach, differentiable)
    if capturable:
        _common.check_capturable(params, state_steps)
    for param, grad, prev, step_size, step in zip(params, grads, prevs, step_sizes, state_steps):
        grad = -grad if maximize else grad
        step += 1
        param, grad, prev, step_size = _common.as_real(param, grad, prev, step_size)
        product = grad.mul(prev.clone() if differentiable else prev)
        turned = product < 0
        factor = torch.ones_like(product).masked_fill_(product > 0, etaplus)
        factor.masked_fill_(turned, etaminus)
        step_size.mul_(factor).clamp_(step_size_min, step_size_max)
        # Where the sign has turned, stay for a step.
        grad = grad.masked_fill(turned, 0.0)
        param.addcmul_(grad.sign(), step_size, value=-1)
        prev.copy_(grad)
