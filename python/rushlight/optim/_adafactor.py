"""Adafactor (Shazeer & Stern, 2018)."""

from __future__ import annotations

import rushlight as torch
from rushlight import Tensor

from . import _common
from .optimizer import Optimizer, _evaluate, _get_scalar_dtype, _without_grad

__all__ = ["Adafactor"]


class Adafactor(Optimizer):
    """Divides by the root of a mean square that, for matrices, is kept as its row and column means.

    `eps` holds the least mean square (None: the dtype's epsilon) and the least size of a
    parameter; `d` limits the
    root mean square of an update.
    """

    def __init__(
        self,
        params,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not 0.0 <= lr:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not 0.0 >= beta2_decay:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not 0.0 <= eps[0]:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not 0.0 <= eps[1]:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not 1.0 <= d:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not 0.0 <= weight_decay:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict) -> None:
        super().__setstate__(state)
        _common.upgrade_steps(self.state, self.param_groups, {"foreach": None})

    def _start(self, gradient: Tensor) -> dict:
        state = {"step": torch.tensor(0.0, dtype=_get_scalar_dtype())}
        if gradient.dim() > 1:
            rows, columns = list(gradient.shape), list(gradient.shape)
            rows[-1] = columns[-2] = 1
            state["row_var"] = gradient.new_zeros(rows)
            state["col_var"] = gradient.new_zeros(columns)
        else:
            state["variance"] = torch.zeros_like(gradient, memory_format=torch.preserve_format)
        return state

    @_without_grad
    def step(self, closure=None):
        """Updates the parameters once."""
        loss = _evaluate(closure)
        for group in self.param_groups:
            for parameter in group["params"]:
                gradient = parameter.grad
                if gradient is None:
                    continue
                if torch.is_complex(parameter):
                    raise RuntimeError("Adafactor does not support complex parameters")
                if gradient.is_sparse:
                    raise RuntimeError("Adafactor does not support sparse gradients")
                if not self.state[parameter]:
                    self.state[parameter] = self._start(gradient)
                _update(parameter, gradient, self.state[parameter], group)
        return loss


def _update(param: Tensor, grad: Tensor, state: dict, group: dict) -> None:
    lr, (eps1, eps2) = group["lr"], group["eps"]
    if eps1 is None:
        eps1 = torch.finfo(param.dtype).eps
    if group["maximize"]:
        grad = -grad
    state["step"] += 1
    count = state["step"].item()
    weight = count ** group["beta2_decay"]  # of the new square in the average
    rate = min(lr, 1 / (count**0.5))
    size = param.norm(2).item() / (param.numel() ** 0.5)
    scale = max(eps2, size) * rate
    if group["weight_decay"] != 0:
        param.mul_(1 - lr * group["weight_decay"])
    if grad.dim() > 1:
        square = _factored_square(grad, state["row_var"], state["col_var"], weight, eps1)
    else:
        state["variance"].lerp_(grad * grad, weight)
        square = state["variance"].clone()
    update = square.clamp_(min=eps1 * eps1).rsqrt_()
    update.mul_(grad)
    excess = max(1.0, update.norm(2).item() / ((update.numel() ** 0.5) * group["d"]))
    param.add_(update, alpha=-scale / excess)


def _factored_square(grad: Tensor, rows: Tensor, columns: Tensor, weight: float, eps: float):
    """The mean square, from the averages of its row and column means, which it updates."""
    row_mean = torch.norm(grad, dim=-1, keepdim=True).square_().div_(grad.size(-1))
    rows.lerp_(row_mean, weight)
    column_mean = torch.norm(grad, dim=-2, keepdim=True).square_().div_(grad.size(-2))
    columns.lerp_(column_mean, weight)
    return (rows @ columns).div_(rows.mean(dim=-2, keepdim=True).clamp_(min=eps))
