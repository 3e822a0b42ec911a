"""Adam for sparse gradients: only the rows of a gradient move."""

from __future__ import annotations

import math

import rushlight as torch
from rushlight import Tensor

from .optimizer import Optimizer, _evaluate, _to_scalar, _without_grad

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Adam that leaves averages and parameters alone where the gradient has no entry."""

    def __init__(
        self,
        params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not 0.0 < lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not 0.0 < eps:
            raise ValueError(f"Invalid epsilon value: {eps}")
        for index, beta in enumerate(betas):
            if not 0.0 <= beta < 1.0:
                raise ValueError(f"Invalid beta parameter at index {index}: {beta}")
        defaults = {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize}
        super().__init__(params, defaults)
        places = [
            ([i, j], parameter)
            for i, group in enumerate(self.param_groups)
            for j, parameter in enumerate(group["params"])
        ]
        sparse = [place for place, parameter in places if parameter.is_sparse]
        if sparse:
            raise ValueError(
                f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors"
            )
        complex_ = [place for place, parameter in places if torch.is_complex(parameter)]
        if complex_:
            raise ValueError(
                f"Complex params at indices {complex_}: SparseAdam does not support complex "
                "parameters"
            )

    @_without_grad
    def step(self, closure=None):
        """Updates the parameters once."""
        loss = _evaluate(closure)
        for group in self.param_groups:
            for parameter in group["params"]:
                gradient = parameter.grad
                if gradient is None:
                    continue
                if not gradient.is_sparse:
                    raise RuntimeError(
                        "SparseAdam does not support dense gradients, please consider Adam instead"
                    )
                state = self.state[parameter]
                if not state:
                    state["step"] = 0
                    zeros = torch.zeros_like(parameter, memory_format=torch.preserve_format)
                    state["exp_avg"] = zeros
                    state["exp_avg_sq"] = zeros.clone()
                state["step"] += 1
                _update(parameter, gradient, state, group)
        return loss


def _update(parameter: Tensor, gradient: Tensor, state: dict, group: dict) -> None:
    gradient = (-gradient if group["maximize"] else gradient).coalesce()
    values, indices = gradient._values(), gradient._indices()
    if values.numel() == 0:
        return
    beta1, beta2 = group["betas"]

    def sparse(new_values: Tensor) -> Tensor:
        return torch.sparse_coo_tensor(indices, new_values, gradient.size())

    def average(name: str, new_values: Tensor, beta: float) -> Tensor:
        """Moves the rows of an average towards new values; gives what they are then."""
        old = state[name].sparse_mask(gradient)._values()
        change = new_values.sub(old).mul_(1 - beta)
        state[name].add_(sparse(change))
        return change.add_(old)

    mean = average("exp_avg", values, beta1)
    root = average("exp_avg_sq", values.pow(2), beta2).sqrt_().add_(group["eps"])
    count = state["step"]
    rate = _to_scalar(group["lr"]) * math.sqrt(1 - beta2**count) / (1 - beta1**count)
    parameter.add_(sparse(-rate * mean.div_(root)))
