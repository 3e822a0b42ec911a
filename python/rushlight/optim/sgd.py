"""Stochastic gradient descent."""

from __future__ import annotations

import rushlight as torch
from rushlight import Tensor

from . import _common
from .optimizer import Optimizer, _evaluate, _use_grad_for_differentiable

__all__ = ["SGD", "sgd"]


class SGD(Optimizer):
    """Gradient descent with momentum, plain or Nesterov's (Sutskever et al., 2013)."""

    def __init__(
        self,
        params,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        _common.check_lr(lr)
        _common.check_at_least_zero(momentum, "momentum value")
        _common.check_at_least_zero(weight_decay, "weight_decay value")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, defaults)
        _common.check_fused(fused, foreach, differentiable)
        if fused:
            self._step_supports_amp_scaling = True
            _common.check_fused_params(self.param_groups)

    def __setstate__(self, state: dict) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("nesterov", False)
            group.setdefault("maximize", False)
            group.setdefault("foreach", None)
            group.setdefault("differentiable", False)
            group.setdefault("fused", False)

    def _init_group(self, group: dict, params: list, grads: list, momentum_buffers: list) -> bool:
        has_sparse_grad = False
        for parameter in group["params"]:
            gradient = parameter.grad
            if gradient is None:
                continue
            params.append(parameter)
            grads.append(gradient)
            has_sparse_grad = has_sparse_grad or gradient.is_sparse
            if group["momentum"] != 0:
                momentum_buffers.append(self.state[parameter].get("momentum_buffer"))
        return has_sparse_grad

    @_use_grad_for_differentiable
    def step(self, closure=None):
        """Updates the parameters once."""
        loss = _evaluate(closure)
        for group in self.param_groups:
            params: list[Tensor] = []
            grads: list[Tensor] = []
            momentum_buffers: list[Tensor | None] = []
            has_sparse_grad = self._init_group(group, params, grads, momentum_buffers)
            buffers = momentum_buffers or [None] * len(params)
            sgd(
                params,
                grads,
                buffers,
                weight_decay=group["weight_decay"],
                momentum=group["momentum"],
                lr=group["lr"],
                dampening=group["dampening"],
                nesterov=group["nesterov"],
                maximize=group["maximize"],
                has_sparse_grad=has_sparse_grad,
                foreach=group["foreach"],
                fused=False if group["differentiable"] else group["fused"],
                grad_scale=getattr(self, "grad_scale", None),
                found_inf=getattr(self, "found_inf", None),
            )
            if group["momentum"] != 0:
                for parameter, buffer in zip(params, buffers):
                    self.state[parameter]["momentum_buffer"] = buffer
        return loss


def sgd(
    params: list[Tensor],
    d_p_list: list[Tensor],
    momentum_buffer_list: list[Tensor | None],
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    *,
    weight_decay: float,
    momentum: float,
    lr: float | Tensor,
    dampening: float,
    nesterov: bool,
    maximize: bool,
) -> None:
    """One step for lists of parameters, gradients and momentum buffers; new buffers go into the
    list.
    """
    if fused and has_sparse_grad:
        raise RuntimeError("`_fused_sgd` does not support sparse gradients")
    graph = torch.is_grad_enabled() or isinstance(weight_decay, Tensor)
    options = {
        "weight_decay": weight_decay,
        "momentum": momentum,
        "lr": lr,
        "dampening": dampening,
        "nesterov": nesterov,
        "maximize": maximize,
    }
    native = None if graph else _common.fused("_fused_sgd_")
    if params and native is not None and _common.fits_fused(params, d_p_list):
        _fused_sgd(native, params, d_p_list, momentum_buffer_list, grad_scale, found_inf, **options)
    else:
        _single_tensor_sgd(params, d_p_list, momentum_buffer_list, **options)


def _single_tensor_sgd(
    params,
    grads,
    momentum_buffer_list,
    *,
    weight_decay,
    momentum,
    lr,
    dampening,
    nesterov,
    maximize,
) -> None:
    for index, param in enumerate(params):
        grad = -grads[index] if maximize else grads[index]
        if isinstance(weight_decay, Tensor):
            grad = grad + param * weight_decay
        elif weight_decay != 0:
            grad = grad.add(param, alpha=weight_decay)
        if momentum != 0:
            buffer = momentum_buffer_list[index]
            if buffer is None:
                buffer = grad.detach().clone()
                momentum_buffer_list[index] = buffer
            else:
                buffer.mul_(momentum).add_(grad, alpha=1 - dampening)
            grad = grad.add(buffer, alpha=momentum) if nesterov else buffer
        if isinstance(lr, Tensor):
            param.addcmul_(grad, lr.to(param.device), value=-1)
        else:
            param.add_(grad, alpha=-lr)


def _fused_sgd(
    native, params, grads, momentum_buffer_list, grad_scale, found_inf, *, momentum, lr, **options
) -> None:
    """One native call, or two where only some parameters have a momentum buffer already."""
    extra = {}
    if grad_scale is not None:
        extra = {"grad_scale": grad_scale, "found_inf": found_inf}
    options |= {"momentum": momentum, "lr": float(lr), **extra}
    if momentum == 0:
        native(params, grads, [], is_first_step=False, **options)
        return
    fresh = [index for index, buffer in enumerate(momentum_buffer_list) if buffer is None]
    for index in fresh:
        momentum_buffer_list[index] = torch.empty_like(params[index])
    new = set(fresh)
    for first in (True, False):
        chosen = [i for i in range(len(params)) if (i in new) == first]
        if chosen:
            native(
                [params[i] for i in chosen],
                [grads[i] for i in chosen],
                [momentum_buffer_list[i] for i in chosen],
                is_first_step=first,
                **options,
            )
