"""Averaged stochastic gradient descent (Polyak & Juditsky, 1992)."""

from __future__ import annotations

import rushlight as torch
from rushlight import Tensor

from . import _common
from .optimizer import Optimizer, _evaluate, _get_scalar_dtype, _use_grad_for_differentiable

__all__ = ["ASGD", "asgd"]


class ASGD(Optimizer):
    """Gradient descent with a falling rate; "ax" in the state averages the parameters from step
    `t0` on.
    """

    def __init__(
        self,
        params,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        _common.check_lr(lr)
        _common.check_at_least_zero(weight_decay, "weight_decay value")
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
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
        for value in self.state.values():
            for name in ("eta", "mu"):
                if value and not isinstance(value[name], Tensor):
                    value[name] = torch.tensor(value[name], dtype=_get_scalar_dtype())

    def _start(self, group: dict, parameter: Tensor) -> dict:
        dtype, device = _get_scalar_dtype(), parameter.device
        rate = torch.as_tensor(group["lr"], dtype=dtype, device=device).clone().detach()
        return {
            "step": torch.zeros((), dtype=dtype, device=device),
            "eta": rate,
            "mu": torch.ones((), dtype=dtype, device=device),
            "ax": _common.zeros_for(parameter),
        }

    @_use_grad_for_differentiable
    def step(self, closure=None):
        """Updates the parameters once."""
        loss = _evaluate(closure)
        for group in self.param_groups:
            params, grads, has_complex = _common.collect(group, "ASGD")
            for parameter in params:
                if not self.state[parameter]:
                    self.state[parameter] = self._start(group, parameter)
            states = [self.state[parameter] for parameter in params]
            asgd(
                params,
                grads,
                [state["ax"] for state in states],
                [state["mu"] for state in states],
                [state["eta"] for state in states],
                [state["step"] for state in states],
                lambd=group["lambd"],
                lr=group["lr"],
                t0=group["t0"],
                alpha=group["alpha"],
                weight_decay=group["weight_decay"],
                foreach=group["foreach"],
                maximize=group["maximize"],
                differentiable=group["differentiable"],
                capturable=group["capturable"],
                has_complex=has_complex,
            )
        return loss


def asgd(
    params: list[Tensor],
    grads: list[Tensor],
    axs: list[Tensor],
    mus: list[Tensor],
    etas: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lambd: float,
    lr: float,
    t0: float,
    alpha: float,
    weight_decay: float,
) -> None:
    """One step for lists of parameters, gradients and state."""
    _common.check_differentiable_foreach(foreach, differentiable)
    if capturable:
        _common.check_capturable(params, mus, etas, state_steps)
    lr = float(lr) if isinstance(lr, Tensor) else lr
    for param, grad, ax, mu, eta, step in zip(params, grads, axs, mus, etas, state_steps):
        grad = -grad if maximize else grad
        param, grad, ax = _common.as_real(param, grad, ax)
        step += 1
        if weight_decay != 0:
            grad = grad.add(param, alpha=weight_decay)
        if capturable:
            param.mul_(1 - lambd * eta)
            param.addcmul_(grad, eta, value=-1)
            ax.add_(param.sub(ax).mul_(mu))
            eta.copy_(lr / (1 + lambd * lr * step) ** alpha)
            mu.copy_(1 / torch.maximum(step - t0, torch.ones_like(step)))
            continue
        rate, count = eta.item(), step.item()
        param.mul_(1 - lambd * rate)
        param.add_(grad, alpha=-rate)
        weight = mu.item()
        if weight != 1:
            ax.add_(param.sub(ax).mul_(weight))
        else:
            ax.copy_(param)
        if foreach:  # the multi-tensor form computes the rate as a tensor, in its dtype
            eta.copy_(step.mul(lambd).mul_(lr).add_(1).pow_(alpha).reciprocal_().mul_(lr))
        else:
            eta.fill_(lr / ((1 + lambd * lr * count) ** alpha))
        mu.fill_(1 / max(1, count - t0))
