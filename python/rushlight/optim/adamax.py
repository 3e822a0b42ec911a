"""Adamax (Kingma & Ba, 2014)."""

from __future__ import annotations

import rushlight as torch
from rushlight import Tensor

from . import _common
from .optimizer import Optimizer, _evaluate, _get_value, _use_grad_for_differentiable

__all__ = ["Adamax", "adamax"]


class Adamax(Optimizer):
    """Adam with the largest decayed gradient in place of the root of the mean square."""

    def __init__(
        self,
        params,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        _common.check_lr(lr)
        _common.check_at_least_zero(eps, "epsilon value")
        _common.check_betas(betas)
        _common.check_at_least_zero(weight_decay, "weight_decay value")
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
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

    @_use_grad_for_differentiable
    def step(self, closure=None):
        """Updates the parameters once."""
        loss = _evaluate(closure)
        for group in self.param_groups:
            params, grads, has_complex = _common.collect(group, "Adamax")
            for parameter in params:
                state = self.state[parameter]
                if not state:
                    state["step"] = _common.new_step(parameter, group["capturable"])
                    state["exp_avg"] = _common.zeros_for(parameter)
                    state["exp_inf"] = _common.zeros_for(parameter)
            states = [self.state[parameter] for parameter in params]
            beta1, beta2 = group["betas"]
            adamax(
                params,
                grads,
                [state["exp_avg"] for state in states],
                [state["exp_inf"] for state in states],
                [state["step"] for state in states],
                eps=group["eps"],
                beta1=beta1,
                beta2=beta2,
                lr=group["lr"],
                weight_decay=group["weight_decay"],
                foreach=group["foreach"],
                maximize=group["maximize"],
                differentiable=group["differentiable"],
                capturable=group["capturable"],
                has_complex=has_complex,
            )
        return loss


def adamax(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_infs: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
) -> None:
    """One step for lists of parameters, gradients and state."""
    _common.check_steps(state_steps)
    _common.check_differentiable_foreach(foreach, differentiable)
    if capturable:
        _common.check_capturable(params, state_steps)
    for param, grad, exp_avg, exp_inf, step in zip(params, grads, exp_avgs, exp_infs, state_steps):
        grad = -grad if maximize else grad
        step += 1
        if weight_decay != 0:
            grad = grad.add(param, alpha=weight_decay)
        param, grad, exp_avg, exp_inf = _common.as_real(param, grad, exp_avg, exp_inf)
        exp_avg.lerp_(grad, 1 - beta1)
        magnitude = grad.abs().add_(eps)
        decayed = exp_inf * beta2 if differentiable else exp_inf.mul_(beta2)
        exp_inf.copy_(torch.maximum(decayed, magnitude))
        if differentiable:
            # What the graph saves must not change at the next step.
            exp_avg, exp_inf = exp_avg.clone(), exp_inf.clone()
        if capturable:
            param.addcdiv_(exp_avg, exp_inf * ((beta1**step - 1) / lr))
        else:
            rate = lr / (1 - beta1 ** _get_value(step))
            param.addcdiv_(exp_avg, exp_inf, value=-_get_value(rate))
