"""Adagrad (Duchi et al., 2011)."""

from __future__ import annotations

import rushlight as torch
from rushlight import Tensor

from . import _common
from .optimizer import Optimizer, _evaluate, _get_value, _use_grad_for_differentiable

__all__ = ["Adagrad", "adagrad"]


class Adagrad(Optimizer):
    """Divides by the root of the sum of all squared gradients so far."""

    def __init__(
        self,
        params,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        _common.check_lr(lr)
        _common.check_at_least_zero(lr_decay, "lr_decay value")
        _common.check_at_least_zero(weight_decay, "weight_decay value")
        _common.check_at_least_zero(initial_accumulator_value, "initial_accumulator_value value")
        _common.check_at_least_zero(eps, "epsilon value")
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        _common.check_fused(fused, foreach, differentiable)
        if fused:
            _common.check_fused_params(self.param_groups)
        for group in self.param_groups:
            for parameter in group["params"]:
                state = self.state[parameter]
                state["step"] = _common.new_step(parameter, False, group["fused"])
                start = group["initial_accumulator_value"]
                if torch.is_complex(parameter):
                    start = complex(start, start)
                state["sum"] = torch.full_like(
                    parameter, start, memory_format=torch.preserve_format
                )

    def __setstate__(self, state: dict) -> None:
        super().__setstate__(state)
        _common.upgrade_steps(
            self.state,
            self.param_groups,
            {"foreach": None, "maximize": False, "differentiable": False, "fused": None},
        )

    def share_memory(self) -> None:
        """Moves the state to memory that other processes can map."""
        for group in self.param_groups:
            for parameter in group["params"]:
                self.state[parameter]["sum"].share_memory_()

    @_use_grad_for_differentiable
    def step(self, closure=None):
        """Updates the parameters once."""
        loss = _evaluate(closure)
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            adagrad(
                params,
                [p.grad for p in params],
                [self.state[p]["sum"] for p in params],
                [self.state[p]["step"] for p in params],
                has_sparse_grad=any(p.grad.is_sparse for p in params),
                lr=group["lr"],
                weight_decay=group["weight_decay"],
                lr_decay=group["lr_decay"],
                eps=group["eps"],
                foreach=group["foreach"],
                maximize=group["maximize"],
                differentiable=group["differentiable"],
                fused=group["fused"],
            )
        return loss


def adagrad(
    params: list[Tensor],
    grads: list[Tensor],
    state_sums: list[Tensor],
    state_steps: list[Tensor],
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    weight_decay: float,
    lr_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """One step for lists of parameters, gradients and state."""
    _common.check_steps(state_steps)
    if fused and has_sparse_grad:
        raise RuntimeError("`fused` does not support sparse gradients")
    for param, grad, state_sum, step in zip(params, grads, state_sums, state_steps):
        step += 1
        grad = -grad if maximize else grad
        if weight_decay != 0:
            if grad.is_sparse:
                raise RuntimeError("weight_decay option is not compatible with sparse gradients")
            grad = grad.add(param, alpha=weight_decay)
        rate = lr / (1 + (_get_value(step) - 1) * lr_decay)
        if grad.is_sparse:
            _sparse_update(param, grad.coalesce(), state_sum, rate, eps)
            continue
        param, grad, state_sum = _common.as_real(param, grad, state_sum)
        state_sum.addcmul_(grad, grad, value=1)
        root = state_sum.sqrt() + eps if differentiable else state_sum.sqrt().add_(eps)
        param.addcdiv_(grad, root, value=-_get_value(rate))


def _sparse_update(param: Tensor, grad: Tensor, state_sum: Tensor, rate, eps: float) -> None:
    """Touches only the rows that the gradient holds."""
    values, indices = grad._values(), grad._indices()

    def sparse(new_values: Tensor) -> Tensor:
        return torch.sparse_coo_tensor(indices, new_values, grad.size())

    state_sum.add_(sparse(values.pow(2)))
    root = state_sum.sparse_mask(grad)._values().sqrt_().add_(eps)
    param.add_(sparse(values / root), alpha=-_get_value(rate))
