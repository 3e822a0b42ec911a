"""Means under one distribution of what the log density of another is made of."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import rushlight as torch
from rushlight import Tensor
from rushlight.distributions.beta import Beta
from rushlight.distributions.continuous_bernoulli import ContinuousBernoulli
from rushlight.distributions.exponential import Exponential
from rushlight.distributions.gamma import Gamma
from rushlight.distributions.gumbel import Gumbel
from rushlight.distributions.laplace import Laplace
from rushlight.distributions.normal import Normal
from rushlight.distributions.pareto import Pareto
from rushlight.distributions.uniform import Uniform
from rushlight.distributions.utils import euler_constant


@dataclass
class Means:
    """Means over x of a distribution, computed when a density asks for them."""

    of: Any

    @property
    def first(self) -> Tensor:
        """Of x; infinite where a Pareto tail is too heavy."""
        p = self.of
        if isinstance(p, Pareto):
            return torch.where(p.alpha <= 1, math.inf, p.alpha * p.scale / (p.alpha - 1))
        return p.mean

    @property
    def second(self) -> Tensor:
        """Of x^2."""
        p = self.of
        if isinstance(p, Pareto):
            moment = p.alpha * p.scale**2 / (p.alpha - 2)
            return torch.where(p.alpha <= 2, math.inf, moment)
        return p.variance + p.mean**2

    def log(self) -> Tensor:
        """Of log x."""
        p = self.of
        if isinstance(p, Beta):
            total = p.concentration1 + p.concentration0
            return torch.digamma(p.concentration1) - torch.digamma(total)
        if isinstance(p, Exponential):
            return -torch.log(p.rate) - euler_constant
        if isinstance(p, Gamma):
            return torch.digamma(p.concentration) - torch.log(p.rate)
        if isinstance(p, Pareto):
            return torch.log(p.scale) + 1 / p.alpha
        return _mean_log(p.low, p.high)

    def log_rest(self) -> Tensor:
        """Of log(1 - x)."""
        return _mean_log(1 - self.of.high, 1 - self.of.low)

    def decay(self, loc: Tensor, scale: Tensor) -> Tensor:
        """Of exp(-(x - loc) / scale)."""
        p = self.of
        start = torch.exp(loc / scale)
        if isinstance(p, Exponential):
            return start * p.rate / (p.rate + 1 / scale)
        if isinstance(p, Gamma):
            return start * (1 + 1 / (p.rate * scale)) ** -p.concentration
        if isinstance(p, Normal):
            return torch.exp((loc - p.loc) / scale + (p.scale / scale) ** 2 / 2)
        low = torch.exp((loc - p.low) / scale)
        high = torch.exp((loc - p.high) / scale)
        return (low - high) * scale / (p.high - p.low)

    def distance(self, loc: Tensor) -> Tensor:
        """Of |x - loc| for a normal x."""
        shift = (self.of.loc - loc) / self.of.scale
        folded = math.sqrt(2 / math.pi) * torch.exp(-(shift**2) / 2)
        return self.of.scale * (folded + shift * torch.erf(shift / math.sqrt(2)))


def _mean_log(low: Tensor, high: Tensor) -> Tensor:
    # Of log x for x uniform between two bounds.
    return (torch.xlogy(high, high) - torch.xlogy(low, low)) / (high - low) - 1


def means_of(p: Any) -> Means:
    """The means under p."""
    return Means(p)


def mean_log_density(q: Any, means: Means) -> Tensor:
    """The mean of log q(x)."""
    if isinstance(q, Normal):
        square = means.second - 2 * q.loc * means.first + q.loc**2
        return -torch.log(q.scale) - math.log(2 * math.pi) / 2 - square / (2 * q.scale**2)
    if isinstance(q, Exponential):
        return torch.log(q.rate) - q.rate * means.first
    if isinstance(q, Gamma):
        scale = q.concentration * torch.log(q.rate) - torch.lgamma(q.concentration)
        return scale + (q.concentration - 1) * means.log() - q.rate * means.first
    if isinstance(q, Gumbel):
        linear = (means.first - q.loc) / q.scale
        return -torch.log(q.scale) - linear - means.decay(q.loc, q.scale)
    if isinstance(q, Laplace):
        return -torch.log(2 * q.scale) - means.distance(q.loc) / q.scale
    if isinstance(q, Pareto):
        return torch.log(q.alpha) + q.alpha * torch.log(q.scale) - (q.alpha + 1) * means.log()
    if isinstance(q, Beta):
        a, b = q.concentration1, q.concentration0
        volume = torch.lgamma(a) + torch.lgamma(b) - torch.lgamma(a + b)
        return (a - 1) * means.log() + (b - 1) * means.log_rest() - volume
    if isinstance(q, ContinuousBernoulli):
        return means.first * q.logits + torch.log1p(-q.probs) + q._cont_bern_log_norm()
    return -torch.log(q.high - q.low)


def _bounds(d: Any) -> tuple[Any, Any]:
    if isinstance(d, Uniform):
        return d.low, d.high
    if isinstance(d, (Beta, ContinuousBernoulli)):
        return 0.0, 1.0
    if isinstance(d, (Exponential, Gamma)):
        return 0.0, math.inf
    if isinstance(d, Pareto):
        return d.scale, math.inf
    return -math.inf, math.inf


def misses(p: Any, q: Any) -> Tensor:
    """Whether p has mass where q has none."""
    low_p, high_p = _bounds(p)
    low_q, high_q = _bounds(q)
    return torch.as_tensor(low_p < low_q) | torch.as_tensor(high_p > high_q)
