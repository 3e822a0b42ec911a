"""NAdam (Dozat, 2016)."""

from __future__ import annotations

import rushlight as torch
from rushlight import Tensor

from . import _common
from .optimizer import Optimizer, _evaluate, _get_value, _use_grad_for_differentiable

__all__ = ["NAdam", "nadam"]


class NAdam(Optimizer):
    """Adam with Nesterov's momentum, which grows over the first steps."""

    def __init__(
        self,
        params,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        _common.check_lr(lr)
        _common.check_at_least_zero(eps, "epsilon value")
        _common.check_betas(betas)
        _common.check_at_least_zero(weight_decay, "weight_decay value")
        _common.check_at_least_zero(momentum_decay, "momentum_decay value")
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict) -> None:
        super().__setstate__(state)
        defaults = {
            "maximize": False,
            "foreach": None,
            "capturable": False,
            "differentiable": False,
            "decoupled_weight_decay": False,
        }
        _common.upgrade_steps(self.state, self.param_groups, defaults)
        for value in self.state.values():
            if value and not isinstance(value["mu_product"], Tensor):
                value["mu_product"] = torch.tensor(value["mu_product"], dtype=value["step"].dtype)

    @_use_grad_for_differentiable
    def step(self, closure=None):
        """Updates the parameters once."""
        loss = _evaluate(closure)
        for group in self.param_groups:
            params, grads, has_complex = _common.collect(group, "NAdam")
            for parameter in params:
                state = self.state[parameter]
                if not state:
                    state["step"] = _common.new_step(parameter, group["capturable"])
                    state["mu_product"] = torch.ones_like(state["step"])
                    state["exp_avg"] = _common.zeros_for(parameter)
                    state["exp_avg_sq"] = _common.zeros_for(parameter)
            states = [self.state[parameter] for parameter in params]
            beta1, beta2 = group["betas"]
            nadam(
                params,
                grads,
                [state["exp_avg"] for state in states],
                [state["exp_avg_sq"] for state in states],
                [state["mu_product"] for state in states],
                [state["step"] for state in states],
                beta1=beta1,
                beta2=beta2,
                lr=group["lr"],
                weight_decay=group["weight_decay"],
                momentum_decay=group["momentum_decay"],
                eps=group["eps"],
                maximize=group["maximize"],
                decoupled_weight_decay=group["decoupled_weight_decay"],
                foreach=group["foreach"],
                capturable=group["capturable"],
                differentiable=group["differentiable"],
                has_complex=has_complex,
            )
        return loss


def nadam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    mu_products: list[Tensor],
    state_steps: list[Tensor],
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
    momentum_decay: float,
    eps: float,
) -> None:
    """One step for lists of parameters, gradients and state."""
    _common.check_steps(state_steps)
    if not all(isinstance(product, Tensor) for product in mu_products):
        raise RuntimeError(
            "API has changed, `mu_products` argument must contain a list of singleton tensors"
        )
    _common.check_differentiable_foreach(foreach, differentiable)
    if capturable:
        _common.check_capturable(params, mu_products, state_steps)
    for param, grad, exp_avg, exp_avg_sq, mu_product, step in zip(
        params, grads, exp_avgs, exp_avg_sqs, mu_products, state_steps
    ):
        grad = -grad if maximize else grad
        param, grad, exp_avg, exp_avg_sq = _common.as_real(param, grad, exp_avg, exp_avg_sq)
        step += 1
        count = step if capturable else _get_value(step)
        if weight_decay != 0:
            if decoupled_weight_decay:
                param.mul_(1 - lr * weight_decay)
            else:
                grad = grad.add(param, alpha=weight_decay)
        mu = beta1 * (1.0 - 0.5 * 0.96 ** (count * momentum_decay))
        mu_next = beta1 * (1.0 - 0.5 * 0.96 ** ((count + 1) * momentum_decay))
        mu_product *= mu
        exp_avg.lerp_(grad, 1 - beta1)
        exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        root = exp_avg_sq.div(1 - beta2**count).sqrt()
        if differentiable or capturable:
            root = root.add(eps)
            gradient_rate = -lr * (1.0 - mu) / (1.0 - mu_product)
            average_rate = -lr * mu_next / (1.0 - mu_product * mu_next)
            param.addcdiv_(grad * gradient_rate, root)
            param.addcdiv_(exp_avg * average_rate, root)
        else:
            product = _get_value(mu_product)
            root.add_(eps)
            param.addcdiv_(grad, root, value=_get_value(-lr * (1.0 - mu) / (1.0 - product)))
            rate = _get_value(-lr * mu_next / (1.0 - product * mu_next))
            param.addcdiv_(exp_avg, root, value=rate)
