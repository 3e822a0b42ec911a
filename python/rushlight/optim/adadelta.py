"""Adadelta (Zeiler, 2012)."""

from __future__ import annotations

import rushlight as torch
from rushlight import Tensor

from . import _common
from .optimizer import Optimizer, _evaluate, _use_grad_for_differentiable

__all__ = ["Adadelta", "adadelta"]


class Adadelta(Optimizer):
    """Steps as large as recent steps, by the ratio of their roots of mean squares."""

    def __init__(
        self,
        params,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        _common.check_lr(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        _common.check_at_least_zero(eps, "epsilon value")
        _common.check_at_least_zero(weight_decay, "weight_decay value")
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
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
            params, grads, has_complex = _common.collect(group, "Adadelta")
            for parameter in params:
                state = self.state[parameter]
                if not state:
                    state["step"] = _common.new_step(parameter, group["capturable"])
                    state["square_avg"] = _common.zeros_for(parameter)
                    state["acc_delta"] = _common.zeros_for(parameter)
            states = [self.state[parameter] for parameter in params]
            adadelta(
                params,
                grads,
                [state["square_avg"] for state in states],
                [state["acc_delta"] for state in states],
                [state["step"] for state in states],
                lr=group["lr"],
                rho=group["rho"],
                eps=group["eps"],
                weight_decay=group["weight_decay"],
                foreach=group["foreach"],
                maximize=group["maximize"],
                differentiable=group["differentiable"],
                capturable=group["capturable"],
                has_complex=has_complex,
            )
        return loss


def adadelta(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    acc_deltas: list[Tensor],
    state_steps: list[Tensor],
    capturable: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    rho: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """One step for lists of parameters, gradients and state."""
    _common.check_steps(state_steps)
    _common.check_differentiable_foreach(foreach, differentiable)
    if capturable:
        _common.check_capturable(params, state_steps)
    for param, grad, square_avg, acc_delta, step in zip(
        params, grads, square_avgs, acc_deltas, state_steps
    ):
        step += 1
        grad = -grad if maximize else grad
        if weight_decay != 0:
            grad = grad.add(param, alpha=weight_decay)
        grad, square_avg, acc_delta = _common.as_real(grad, square_avg, acc_delta)
        square_avg.mul_(rho).addcmul_(grad, grad, value=1 - rho)
        root = square_avg.add(eps).sqrt_()
        delta = acc_delta.add(eps).sqrt_()
        if differentiable:
            delta = delta.clone()
        delta.div_(root).mul_(grad)
        acc_delta.mul_(rho).addcmul_(delta, delta, value=1 - rho)
        if torch.is_complex(param):
            delta = torch.view_as_complex(delta)
        param.add_(delta, alpha=-lr)
