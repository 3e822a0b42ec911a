"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math
from typing import Any

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import Tensor
from rushlight.distributions import constraints
from rushlight.distributions._probability import _OneProbability
from rushlight.distributions.distribution import _EMPTY, Distribution, _size
from rushlight.distributions.exp_family import ExponentialFamily
from rushlight.distributions.utils import (
    broadcast_all,
    clamp_probs,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(_OneProbability, ExponentialFamily):
    """The density on [0, 1] proportional to probs^x (1 - probs)^(1 - x).

    Within `lims` around 1/2, where formulas lose their digits, Taylor expansions serve.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    _mean_carrier_measure = 0
    has_rsample = True

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        batch_shape = self._take(probs, logits)
        if probs is not None:
            valid = self.arg_constraints["probs"].check(self.probs)
            if validate_args is not None and not valid.all():
                raise ValueError("The parameter probs has invalid values")
            self.probs = self._param = clamp_probs(self.probs)
        self._lims = lims
        super().__init__(batch_shape, validate_args=validate_args)

    def expand(self, batch_shape: _size, _instance: Any = None) -> Distribution:
        new = self._get_checked_instance(ContinuousBernoulli, _instance)
        new._lims = self._lims
        return self._expanded(
            ContinuousBernoulli, batch_shape, new, {"probs": 0, "logits": 0, "_param": 0}
        )

    def _unstable(self) -> Tensor:
        """Where probs is so near 1/2 that differences cancel."""
        low, high = self._lims
        return (self.probs > low) & (self.probs <= high)

    def _safe(self) -> Tensor:
        """probs, and another number where it is unstable, so that no gradient is NaN."""
        return torch.where(self._unstable(), self._lims[0], self.probs)

    def _cont_bern_log_norm(self) -> Tensor:
        p = self._safe()
        exact = torch.log((torch.log1p(-p) - torch.log(p)) / (1 - 2 * p))
        square = (self.probs - 0.5) ** 2
        series = math.log(2.0) + square * (4 / 3 + square * (104 / 45))
        return torch.where(self._unstable(), series, exact)

    @property
    def mean(self) -> Tensor:
        p = self._safe()
        exact = p / (2 * p - 1) + 1 / (torch.log1p(-p) - torch.log(p))
        offset = self.probs - 0.5
        series = 0.5 + offset * (1 / 3 + offset**2 * (16 / 45))
        return torch.where(self._unstable(), series, exact)

    @property
    def stddev(self) -> Tensor:
        return torch.sqrt(self.variance)

    @property
    def variance(self) -> Tensor:
        p = self._safe()
        odds = torch.log1p(-p) - torch.log(p)
        exact = p * (p - 1) / (1 - 2 * p) ** 2 + 1 / odds**2
        square = (self.probs - 0.5) ** 2
        series = 1 / 12 - square * (1 / 15 - square * (128 / 945))
        return torch.where(self._unstable(), series, exact)

    @lazy_property
    def logits(self) -> Tensor:
        """The log odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        """The parameter as a probability."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def sample(self, sample_shape: _size = _EMPTY) -> Tensor:
        shape = self._extended_shape(sample_shape)
        u = torch.rand(shape, dtype=self.probs.dtype, device=self.probs.device)
        with torch.no_grad():
            return self.icdf(u)

    def rsample(self, sample_shape: _size = _EMPTY) -> Tensor:
        shape = self._extended_shape(sample_shape)
        u = torch.rand(shape, dtype=self.probs.dtype, device=self.probs.device)
        return self.icdf(u)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return (
            -F.binary_cross_entropy_with_logits(logits, value, reduction="none")
            + self._cont_bern_log_norm()
        )

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        p = self._safe()
        powers = p**value * (1 - p) ** (1 - value)
        exact = (powers + p - 1) / (2 * p - 1)
        return torch.where(self._unstable(), value, exact).clamp(0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        p = self._safe()
        failure = torch.log1p(-p)
        exact = (torch.log1p(value * (2 * p - 1) - p) - failure) / (torch.log(p) - failure)
        return torch.where(self._unstable(), value, exact)

    def entropy(self) -> Tensor:
        log_probs0 = torch.log1p(-self.probs)
        log_probs1 = torch.log(self.probs)
        return self.mean * (log_probs0 - log_probs1) - self._cont_bern_log_norm() - log_probs0

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        # log((exp(x) - 1) / x)
        low, high = self._lims
        flat = (x > low - 0.5) & (x <= high - 0.5)
        safe = torch.where(flat, 1.0, x)
        series = x * (0.5 + x * (1 / 24 - x**2 / 2880))
        return torch.where(flat, series, torch.log(torch.expm1(safe) / safe))
