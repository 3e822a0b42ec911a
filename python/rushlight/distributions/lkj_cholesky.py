"""The LKJ distribution of Cholesky factors of correlation matrices."""

from __future__ import annotations

import math
from typing import Any

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.beta import Beta
from rushlight.distributions.distribution import _EMPTY, Distribution, _size
from rushlight.distributions.utils import broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Cholesky factors of `dim` x `dim` correlation matrices, uniform at concentration 1."""

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(
        self, dim: int, concentration: Tensor | float = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ValueError(
                f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}."
            )
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        batch_shape = self.concentration.size()
        event_shape = torch.Size((dim, dim))
        # Onion method: the length of each row below the diagonal is the root of a beta number.
        marginal_conc = self.concentration + 0.5 * (self.dim - 2)
        offset = torch.arange(
            self.dim - 1, dtype=self.concentration.dtype, device=self.concentration.device
        )
        offset = torch.cat([offset.new_zeros((1,)), offset])
        beta_conc1 = offset + 0.5
        beta_conc0 = marginal_conc.unsqueeze(-1) - 0.5 * offset
        self._beta = Beta(beta_conc1, beta_conc0)
        super().__init__(batch_shape, event_shape, validate_args)

    def expand(self, batch_shape: _size, _instance: Any = None) -> Distribution:
        new = self._get_checked_instance(LKJCholesky, _instance)
        batch_shape = torch.Size(batch_shape)
        new.dim = self.dim
        new._beta = self._beta.expand(batch_shape + (self.dim,))
        return self._expanded(LKJCholesky, batch_shape, new, {"concentration": 0})

    def sample(self, sample_shape: _size = _EMPTY) -> Tensor:
        squared = self._beta.sample(sample_shape).unsqueeze(-1)
        shape = self._extended_shape(sample_shape)
        normal = torch.randn(shape, dtype=squared.dtype, device=squared.device).tril(-1)
        rows = squared.sqrt() * F.normalize(normal, dim=-1)
        left = (1 - (rows**2).sum(-1)).clamp(min=torch.finfo(rows.dtype).tiny)
        return rows + torch.diag_embed(left.sqrt())

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        below = self.dim - torch.arange(2, self.dim + 1, device=value.device)
        powers = below + 2 * (self.concentration - 1).unsqueeze(-1)
        rows = self.dim - 1
        shape = self.concentration + rows / 2
        volume = torch.mvlgamma(shape - 0.5, rows) - rows * torch.lgamma(shape)
        return (powers * diagonal.log()).sum(-1) - volume - rows * math.log(math.pi) / 2
