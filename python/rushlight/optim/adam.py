"""Adam (Kingma & Ba, 2014)."""

from __future__ import annotations

import rushlight as torch
from rushlight import Tensor

from . import _common
from .optimizer import Optimizer, _evaluate, _get_value, _use_grad_for_differentiable

__all__ = ["Adam", "adam"]


def _check_tensor_options(lr, betas, foreach, capturable: bool) -> None:
    if isinstance(lr, Tensor):
        if foreach and not capturable:
            raise ValueError(
                "lr as a Tensor is not supported for capturable=False and foreach=True"
            )
        if lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
    kinds = [isinstance(beta, Tensor) for beta in betas]
    if kinds[0] != kinds[1]:
        raise ValueError("betas must be either both floats or both Tensors")
    for index, beta in enumerate(betas):
        if isinstance(beta, Tensor):
            if not capturable and foreach:
                raise ValueError(
                    f"betas[{index}] as a Tensor is not supported for capturable=False and "
                    "foreach=True"
                )
            if beta.numel() != 1:
                raise ValueError(f"Tensor betas[{index}] must be 1-element")


class Adam(Optimizer):
    """Steps of the mean gradient over the root of the mean squared gradient.

    `amsgrad` divides by the largest mean square so far (Reddi et al., 2018);
    `decoupled_weight_decay`
    makes it AdamW.
    """

    def __init__(
        self,
        params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        _check_tensor_options(lr, betas, foreach, capturable)
        _common.check_at_least_zero(lr, "learning rate")
        _common.check_at_least_zero(eps, "epsilon value")
        _common.check_betas(betas)
        _common.check_at_least_zero(weight_decay, "weight_decay value")
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)
        _common.check_fused(fused, foreach, differentiable)
        if fused:
            self._step_supports_amp_scaling = True
            _common.check_fused_params(self.param_groups)

    def __setstate__(self, state: dict) -> None:
        super().__setstate__(state)
        _common.upgrade_steps(
            self.state,
            self.param_groups,
            {
                "amsgrad": False,
                "maximize": False,
                "foreach": None,
                "capturable": False,
                "differentiable": False,
                "decoupled_weight_decay": False,
                "fused": None,
            },
        )

    def _init_group(
        self, group, params_with_grad, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps
    ) -> bool:
        has_complex = False
        amsgrad = group["amsgrad"]
        for parameter in group["params"]:
            gradient = parameter.grad
            if gradient is None:
                continue
            has_complex = has_complex or parameter.is_complex()
            if gradient.is_sparse:
                raise RuntimeError(
                    "Adam does not support sparse gradients, please consider SparseAdam instead"
                )
            params_with_grad.append(parameter)
            grads.append(gradient)
            state = self.state[parameter]
            if not state:
                state["step"] = _common.new_step(parameter, group["capturable"], group["fused"])
                state["exp_avg"] = _common.zeros_for(parameter)
                state["exp_avg_sq"] = _common.zeros_for(parameter)
                if amsgrad:
                    state["max_exp_avg_sq"] = _common.zeros_for(parameter)
            exp_avgs.append(state["exp_avg"])
            exp_avg_sqs.append(state["exp_avg_sq"])
            if amsgrad:
                max_exp_avg_sqs.append(state["max_exp_avg_sq"])
            if group["differentiable"] and state["step"].requires_grad:
                raise RuntimeError(
                    "`requires_grad` is not supported for `step` in differentiable mode"
                )
            state_steps.append(state["step"])
        return has_complex

    @_use_grad_for_differentiable
    def step(self, closure=None):
        """Updates the parameters once."""
        loss = _evaluate(closure)
        for group in self.param_groups:
            lists: tuple[list, ...] = ([], [], [], [], [], [])
            has_complex = self._init_group(group, *lists)
            beta1, beta2 = group["betas"]
            adam(
                *lists,
                amsgrad=group["amsgrad"],
                has_complex=has_complex,
                beta1=beta1,
                beta2=beta2,
                lr=group["lr"],
                weight_decay=group["weight_decay"],
                eps=group["eps"],
                maximize=group["maximize"],
                foreach=group["foreach"],
                capturable=group["capturable"],
                differentiable=group["differentiable"],
                fused=group["fused"],
                grad_scale=getattr(self, "grad_scale", None),
                found_inf=getattr(self, "found_inf", None),
                decoupled_weight_decay=group["decoupled_weight_decay"],
            )
        return loss


def adam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    max_exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    decoupled_weight_decay: bool = False,
    *,
    amsgrad: bool,
    beta1: float | Tensor,
    beta2: float | Tensor,
    lr: float | Tensor,
    weight_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """One step for lists of parameters, gradients and state."""
    _common.check_steps(state_steps)
    if not params:
        return
    lists = (params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps)
    native = None
    if not (differentiable or capturable or has_complex or torch.is_grad_enabled()):
        if not isinstance(beta1, Tensor) and _common.fits_fused(params, grads):
            native = _common.fused("_fused_adamw_" if decoupled_weight_decay else "_fused_adam_")
    if native is None:
        _single_tensor_adam(
            *lists,
            amsgrad=amsgrad,
            beta1=beta1,
            beta2=beta2,
            lr=lr,
            weight_decay=weight_decay,
            eps=eps,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            decoupled_weight_decay=decoupled_weight_decay,
        )
        return
    _common.advance(state_steps)
    extra = {}
    if grad_scale is not None:
        extra = {"grad_scale": grad_scale, "found_inf": found_inf}
    native(
        *lists,
        lr=float(lr),
        beta1=beta1,
        beta2=beta2,
        weight_decay=weight_decay,
        eps=eps,
        amsgrad=amsgrad,
        maximize=maximize,
        **extra,
    )


def _single_tensor_adam(
    params,
    grads,
    exp_avgs,
    exp_avg_sqs,
    max_exp_avg_sqs,
    state_steps,
    *,
    amsgrad,
    beta1,
    beta2,
    lr,
    weight_decay,
    eps,
    maximize,
    capturable,
    differentiable,
    decoupled_weight_decay,
) -> None:
    if capturable:
        _common.check_capturable(params, state_steps)
    for index, param in enumerate(params):
        grad = -grads[index] if maximize else grads[index]
        exp_avg, exp_avg_sq, step = exp_avgs[index], exp_avg_sqs[index], state_steps[index]
        largest = max_exp_avg_sqs[index] if amsgrad else None
        step += 1
        if weight_decay != 0:
            if decoupled_weight_decay:
                param.mul_(1 - lr * weight_decay)
            else:
                grad = grad.add(param, alpha=weight_decay)
        if torch.is_complex(param):
            param, grad, exp_avg, exp_avg_sq = _common.as_real(param, grad, exp_avg, exp_avg_sq)
            if largest is not None:
                largest = torch.view_as_real(largest)
        exp_avg.lerp_(grad, 1 - beta1)
        if differentiable:
            # What the graph saves must not change at the next step.
            exp_avg = exp_avg.clone()
        if differentiable and isinstance(beta2, Tensor):
            exp_avg_sq.mul_(beta2).add_(grad * grad * (1 - beta2))
        else:
            exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=_get_value(1 - beta2))
        if largest is not None:
            pair = (largest, exp_avg_sq)
            if differentiable:
                pair = (largest.clone(), exp_avg_sq.clone())
            largest.copy_(torch.maximum(*pair))
        square = exp_avg_sq if largest is None else largest
        if capturable or differentiable:
            # All on the device, in the graph: tensors, where the other form has numbers.
            step_size = (lr / (1 - beta1**step)).neg()
            root = (1 - beta2**step).sqrt()
            denominator = (square.sqrt() / (root * step_size)).add_(eps / step_size)
            param.addcdiv_(exp_avg, denominator)
        else:
            count = _get_value(step)
            step_size = _get_value(lr / (1 - beta1**count))
            root = _get_value((1 - beta2**count) ** 0.5)
            denominator = (square.sqrt() / root).add_(eps)
            param.addcdiv_(exp_avg, denominator, value=-step_size)
