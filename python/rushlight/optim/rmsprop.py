"""RMSprop (Hinton, 2012)."""

from __future__ import annotations

from rushlight import Tensor

from . import _common
from .optimizer import Optimizer, _evaluate, _use_grad_for_differentiable

__all__ = ["RMSprop", "rmsprop"]


class RMSprop(Optimizer):
    """Divides by the root of the mean square; `centered`, by the standard deviation (Graves,
    2013).
    """

    def __init__(
        self,
        params,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        _common.check_lr(lr)
        _common.check_at_least_zero(eps, "epsilon value")
        _common.check_at_least_zero(momentum, "momentum value")
        _common.check_at_least_zero(weight_decay, "weight_decay value")
        _common.check_at_least_zero(alpha, "alpha value")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict) -> None:
        super().__setstate__(state)
        defaults = {
            "momentum": 0,
            "centered": False,
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
            params, grads, has_complex = _common.collect(group, "RMSprop")
            for parameter in params:
                state = self.state[parameter]
                if not state:
                    state["step"] = _common.new_step(parameter, group["capturable"])
                    state["square_avg"] = _common.zeros_for(parameter)
                    if group["momentum"] > 0:
                        state["momentum_buffer"] = _common.zeros_for(parameter)
                    if group["centered"]:
                        state["grad_avg"] = _common.zeros_for(parameter)
            states = [self.state[parameter] for parameter in params]
            rmsprop(
                params,
                grads,
                [state["square_avg"] for state in states],
                [state["grad_avg"] for state in states] if group["centered"] else [],
                [state["momentum_buffer"] for state in states] if group["momentum"] > 0 else [],
                [state["step"] for state in states],
                lr=group["lr"],
                alpha=group["alpha"],
                eps=group["eps"],
                weight_decay=group["weight_decay"],
                momentum=group["momentum"],
                centered=group["centered"],
                foreach=group["foreach"],
                maximize=group["maximize"],
                differentiable=group["differentiable"],
                capturable=group["capturable"],
                has_complex=has_complex,
            )
        return loss


def rmsprop(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    grad_avgs: list[Tensor],
    momentum_buffer_list: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    centered: bool,
) -> None:
    """One step for lists of parameters, gradients and state."""
    _common.check_steps(state_steps)
    _common.check_differentiable_foreach(foreach, differentiable)
    if capturable:
        _common.check_capturable(params, state_steps)
    for index, (param, grad, square_avg, step) in enumerate(
        zip(params, grads, square_avgs, state_steps)
    ):
        grad = -grad if maximize else grad
        step += 1
        if weight_decay != 0:
            grad = grad.add(param, alpha=weight_decay)
        param, grad, square_avg = _common.as_real(param, grad, square_avg)
        square_avg.mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if centered:
            (grad_avg,) = _common.as_real(grad_avgs[index])
            grad_avg.lerp_(grad, 1 - alpha)
            root = square_avg.addcmul(grad_avg, grad_avg, value=-1).sqrt_()
        else:
            root = square_avg.sqrt()
        root = root.add(eps) if differentiable else root.add_(eps)
        if momentum > 0:
            (buffer,) = _common.as_real(momentum_buffer_list[index])
            buffer.mul_(momentum).addcdiv_(grad, root)
            param.add_(buffer, alpha=-lr)
        else:
            param.addcdiv_(grad, root, value=-lr)
