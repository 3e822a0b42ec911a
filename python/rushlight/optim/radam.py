"""RAdam (Liu et al., 2019)."""

from __future__ import annotations

from rushlight import Tensor

from . import _common
from .optimizer import Optimizer, _evaluate, _get_value, _use_grad_for_differentiable

__all__ = ["RAdam", "radam"]


class RAdam(Optimizer):
    """Adam that divides by the mean square only once enough of it is known, and corrects its
    variance.
    """

    def __init__(
        self,
        params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
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
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict) -> None:
        super().__setstate__(state)
        defaults = {
            "foreach": None,
            "maximize": False,
            "differentiable": False,
            "decoupled_weight_decay": False,
            "capturable": False,
        }
        _common.upgrade_steps(self.state, self.param_groups, defaults)

    @_use_grad_for_differentiable
    def step(self, closure=None):
        """Updates the parameters once."""
        loss = _evaluate(closure)
        for group in self.param_groups:
            params, grads, has_complex = _common.collect(group, "RAdam")
            for parameter in params:
                state = self.state[parameter]
                if not state:
                    state["step"] = _common.new_step(parameter, group["capturable"])
                    state["exp_avg"] = _common.zeros_for(parameter)
                    state["exp_avg_sq"] = _common.zeros_for(parameter)
            states = [self.state[parameter] for parameter in params]
            beta1, beta2 = group["betas"]
            radam(
                params,
                grads,
                [state["exp_avg"] for state in states],
                [state["exp_avg_sq"] for state in states],
                [state["step"] for state in states],
                beta1=beta1,
                beta2=beta2,
                lr=group["lr"],
                weight_decay=group["weight_decay"],
                eps=group["eps"],
                maximize=group["maximize"],
                foreach=group["foreach"],
                capturable=group["capturable"],
                differentiable=group["differentiable"],
                decoupled_weight_decay=group["decoupled_weight_decay"],
                has_complex=has_complex,
            )
        return loss


def radam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor],
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
    eps: float,
) -> None:
    """One step for lists of parameters, gradients and state."""
    _common.check_steps(state_steps)
    _common.check_differentiable_foreach(foreach, differentiable)
    if capturable:
        _common.check_capturable(params, state_steps)
    for param, grad, exp_avg, exp_avg_sq, step in zip(
        params, grads, exp_avgs, exp_avg_sqs, state_steps
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
        exp_avg.lerp_(grad, 1 - beta1)
        exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        correction2 = 1 - beta2**count
        mean = exp_avg / (1 - beta1**count)
        # The length of the average of squares, and its limit.
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * count * (beta2**count) / correction2

        def rectified(length=length, longest=longest, square=exp_avg_sq, correction=correction2):
            """The factor for the variance, over the root of the mean square."""
            numerator = (length - 4) * (length - 2) * longest
            factor = (numerator / ((longest - 4) * (longest - 2) * length)) ** 0.5
            root = square.sqrt()
            root = root.add(eps) if differentiable else root.add_(eps)
            return (correction**0.5) / root * factor

        if capturable:
            update = (length > 5.0).where(rectified(), 1.0)
            param.add_(mean * lr * update, alpha=-1.0)
        elif length > 5.0:
            param.add_(mean * lr * rectified(), alpha=-1.0)
        else:
            param.add_(mean * lr, alpha=-1.0)
