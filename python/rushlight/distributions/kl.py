"""Kullback and Leibler's divergence between distributions, by pairs of their types.

Where p and q are of different types the divergence is -H(p) - E[log q(x)]. log q is linear in a
few functions of x, so each q asks p for their means (`_Means`), and a pair is a line of a table.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import rushlight as torch
from rushlight import Tensor
from rushlight.distributions._kl_means import mean_log_density, means_of, misses
from rushlight.distributions.bernoulli import Bernoulli
from rushlight.distributions.beta import Beta
from rushlight.distributions.binomial import Binomial
from rushlight.distributions.categorical import Categorical
from rushlight.distributions.cauchy import Cauchy
from rushlight.distributions.continuous_bernoulli import ContinuousBernoulli
from rushlight.distributions.dirichlet import Dirichlet
from rushlight.distributions.distribution import Distribution
from rushlight.distributions.exp_family import ExponentialFamily
from rushlight.distributions.exponential import Exponential
from rushlight.distributions.gamma import Gamma
from rushlight.distributions.geometric import Geometric
from rushlight.distributions.gumbel import Gumbel
from rushlight.distributions.half_normal import HalfNormal
from rushlight.distributions.independent import Independent
from rushlight.distributions.laplace import Laplace
from rushlight.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from rushlight.distributions.multivariate_normal import MultivariateNormal
from rushlight.distributions.normal import Normal
from rushlight.distributions.one_hot_categorical import OneHotCategorical
from rushlight.distributions.pareto import Pareto
from rushlight.distributions.poisson import Poisson
from rushlight.distributions.transformed_distribution import TransformedDistribution
from rushlight.distributions.uniform import Uniform
from rushlight.distributions.utils import _sum_rightmost, euler_constant

__all__ = ["kl_divergence", "register_kl"]

_Rule = Callable[[Any, Any], Tensor]
_KL_REGISTRY: dict[tuple[type, type], _Rule] = {}
_KL_MEMOIZE: dict[tuple[type, type], _Rule] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[_Rule], _Rule]:
    """Decorates a function of p and q that computes KL(p || q) for these types and subclasses.

    Any class will do, as a library's own root of distributions that shares none with these.
    """
    for name, given in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(given, type):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {given}")

    def decorator(rule: _Rule) -> _Rule:
        _KL_REGISTRY[type_p, type_q] = rule
        _KL_MEMOIZE.clear()  # what was found before may no longer be the closest
        return rule

    return decorator


def _dispatch_kl(type_p: type, type_q: type) -> _Rule | None:
    """The rule for the closest pair of base classes; p's class decides where two are as close."""
    steps_p = {base: i for i, base in enumerate(type_p.__mro__)}
    steps_q = {base: i for i, base in enumerate(type_q.__mro__)}
    fitting = [pair for pair in _KL_REGISTRY if pair[0] in steps_p and pair[1] in steps_q]
    if not fitting:
        return None
    by_p = min(fitting, key=lambda pair: (steps_p[pair[0]], steps_q[pair[1]]))
    by_q = min(fitting, key=lambda pair: (steps_q[pair[1]], steps_p[pair[0]]))
    if _KL_REGISTRY[by_p] is not _KL_REGISTRY[by_q]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). "
            f"Please register_kl({by_p[0].__name__}, {by_q[1].__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return _KL_REGISTRY[by_p]


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The mean of log p(x) - log q(x) under p, of shape `batch_shape`."""
    key = (type(p), type(q))
    rule = _KL_MEMOIZE.get(key) or _dispatch_kl(*key)
    if rule is None:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {p.__class__.__name__} and q type "
            f"{q.__class__.__name__}"
        )
    _KL_MEMOIZE[key] = rule
    return rule(p, q)


def _by_means(p: Any, q: Any) -> Tensor:
    divergence = -p.entropy() - mean_log_density(q, means_of(p))
    return torch.where(misses(p, q), math.inf, divergence)


def _infinite(p: Any, q: Any) -> Tensor:
    # p always has mass where q has none.
    return torch.full_like(p.mean, math.inf)


_FINITE = {
    Beta: (ContinuousBernoulli, Exponential, Gamma, Normal, Uniform),
    ContinuousBernoulli: (Exponential, Normal, Uniform),
    Exponential: (Gamma, Gumbel, Normal),
    Gamma: (Exponential, Gumbel, Normal),
    Gumbel: (Normal,),
    Laplace: (Normal,),
    Normal: (Gumbel, Laplace),
    Pareto: (Exponential, Gamma, Normal),
    Uniform: (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Normal, Pareto),
}
_INFINITE = {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Poisson: (Bernoulli, Binomial),
}
for _rule, _table in ((_by_means, _FINITE), (_infinite, _INFINITE)):
    for _p, _qs in _table.items():
        for _q in _qs:
            register_kl(_p, _q)(_rule)


# Of discrete distributions: terms of probability 0 count 0, impossible ones infinity.
def _expected_ratio(weight: Tensor, difference: Tensor, possible: Tensor) -> Tensor:
    term = torch.where(possible, weight * difference, math.inf)
    return torch.where(weight == 0, 0.0, term)


@register_kl(Bernoulli, Bernoulli)
def _kl_bernoulli_bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    log_sigmoid = torch.nn.functional.logsigmoid
    ones = log_sigmoid(p.logits) - log_sigmoid(q.logits)
    zeros = log_sigmoid(-p.logits) - log_sigmoid(-q.logits)
    return _expected_ratio(p.probs, ones, q.probs != 0) + _expected_ratio(
        1 - p.probs, zeros, q.probs != 1
    )


@register_kl(Binomial, Binomial)
def _kl_binomial_binomial(p: Binomial, q: Binomial) -> Tensor:
    if (p.total_count < q.total_count).any():
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented"
        )
    failures = torch.log1p(-p.probs) - torch.log1p(-q.probs)
    divergence = p.total_count * (p.probs * (p.logits - q.logits) + failures)
    return torch.where(p.total_count > q.total_count, math.inf, divergence)


@register_kl(Categorical, Categorical)
def _kl_categorical_categorical(p: Categorical, q: Categorical) -> Tensor:
    return _expected_ratio(p.probs, p.logits - q.logits, q.probs != 0).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _kl_onehotcategorical_onehotcategorical(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return _kl_categorical_categorical(p._categorical, q._categorical)


@register_kl(Geometric, Geometric)
def _kl_geometric_geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - p.mean * torch.log1p(-q.probs) - torch.log(q.probs)


@register_kl(Poisson, Poisson)
def _kl_poisson_poisson(p: Poisson, q: Poisson) -> Tensor:
    return torch.xlogy(p.rate, p.rate / q.rate) - p.rate + q.rate


@register_kl(Bernoulli, Poisson)
def _kl_bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    # The factorials of 0 and 1 are 1.
    return -p.entropy() - p.probs * torch.log(q.rate) + q.rate


# Of one continuous type.
@register_kl(Normal, Normal)
def _kl_normal_normal(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale) ** 2
    shift = ((p.loc - q.loc) / q.scale) ** 2
    return (ratio - torch.log(ratio) + shift - 1) / 2


@register_kl(HalfNormal, HalfNormal)
def _kl_halfnormal_halfnormal(p: HalfNormal, q: HalfNormal) -> Tensor:
    return _kl_normal_normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _kl_laplace_laplace(p: Laplace, q: Laplace) -> Tensor:
    distance = torch.abs(p.loc - q.loc)
    spread = distance + p.scale * torch.exp(-distance / p.scale)
    return torch.log(q.scale / p.scale) + spread / q.scale - 1


@register_kl(Cauchy, Cauchy)
def _kl_cauchy_cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    gap = (p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2
    return torch.log(gap / (4 * p.scale * q.scale))


@register_kl(Gumbel, Gumbel)
def _kl_gumbel_gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    ratio = p.scale / q.scale
    shift = (p.loc - q.loc) / q.scale
    tail = torch.exp(torch.lgamma(1 + ratio) - shift)
    return shift - torch.log(ratio) + tail + euler_constant * (ratio - 1) - 1


@register_kl(Exponential, Exponential)
def _kl_exponential_exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - 1 - torch.log(ratio)


@register_kl(Gamma, Gamma)
def _kl_gamma_gamma(p: Gamma, q: Gamma) -> Tensor:
    shape = (p.concentration - q.concentration) * torch.digamma(p.concentration)
    rate = q.concentration * torch.log(p.rate / q.rate) + p.mean * (q.rate - p.rate)
    return shape + rate + torch.lgamma(q.concentration) - torch.lgamma(p.concentration)


@register_kl(Dirichlet, Dirichlet)
def _kl_dirichlet_dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    log_mean = torch.digamma(a) - torch.digamma(a.sum(-1, True))
    volume = p._log_normalizer(a) - q._log_normalizer(b)
    return ((a - b) * log_mean).sum(-1) - volume


@register_kl(Beta, Beta)
def _kl_beta_beta(p: Beta, q: Beta) -> Tensor:
    return _kl_dirichlet_dirichlet(p._dirichlet, q._dirichlet)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _kl_continuousbernoulli_continuousbernoulli(
    p: ContinuousBernoulli, q: ContinuousBernoulli
) -> Tensor:
    return -p.entropy() - mean_log_density(q, means_of(p))


@register_kl(Pareto, Pareto)
def _kl_pareto_pareto(p: Pareto, q: Pareto) -> Tensor:
    ratio = q.alpha / p.alpha
    divergence = ratio - 1 - torch.log(ratio) + q.alpha * torch.log(p.scale / q.scale)
    return torch.where(p.scale < q.scale, math.inf, divergence)


@register_kl(Uniform, Uniform)
def _kl_uniform_uniform(p: Uniform, q: Uniform) -> Tensor:
    divergence = torch.log((q.high - q.low) / (p.high - p.low))
    return torch.where((q.low > p.low) | (q.high < p.high), math.inf, divergence)


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    """Bregman's divergence of the log normaliser, between the natural parameters."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed "
            "using Bregman divergences"
        )
    here = [theta.detach().requires_grad_() for theta in p._natural_params]
    there = q._natural_params
    at_p = p._log_normalizer(*here)
    slopes = torch.autograd.grad(at_p.sum(), here, create_graph=True)
    divergence = q._log_normalizer(*there) - at_p
    for a, b, slope in zip(here, there, slopes, strict=True):
        divergence = divergence - _sum_rightmost((b - a) * slope, len(q.event_shape))
    return divergence


# Normal vectors: q's factor solves for p's, and for the difference of the means.
def _kl_normal_vectors(p: Any, q: Any) -> Tensor:
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two (Low Rank) Multivariate Normals with "
            "different event shapes cannot be computed"
        )
    factor, shift = torch.broadcast_tensors(q.scale_tril, (q.loc - p.loc).unsqueeze(-1))
    factor, other = torch.broadcast_tensors(factor, p.scale_tril)
    both = torch.cat([other, shift.expand(other.shape)[..., :1]], dim=-1)
    solved = torch.linalg.solve_triangular(factor, both, upper=False)
    logs = torch.log(factor.diagonal(dim1=-2, dim2=-1) / other.diagonal(dim1=-2, dim2=-1))
    return solved.pow(2).sum((-2, -1)) / 2 + logs.sum(-1) - p.event_shape[0] / 2


for _p in (MultivariateNormal, LowRankMultivariateNormal):
    for _q in (MultivariateNormal, LowRankMultivariateNormal):
        register_kl(_p, _q)(_kl_normal_vectors)


# Of distributions made of others.
@register_kl(Independent, Independent)
def _kl_independent_independent(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _kl_transformed_transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)
