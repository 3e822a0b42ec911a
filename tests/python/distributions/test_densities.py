"""Densities, moments and divergences of distributions against numerical integrals."""

import math

import pytest
import rushlight as torch

D = torch.distributions
F64 = torch.float64


def t(*values: float) -> torch.Tensor:
    return torch.tensor(values if len(values) > 1 else values[0], dtype=F64)


# Each with an interval that holds all but a negligible part of its mass.
CONTINUOUS = {
    "Normal": (lambda: D.Normal(t(0.3), t(0.7)), -8, 8),
    "Laplace": (lambda: D.Laplace(t(0.3), t(0.5)), -20, 20),
    "Gumbel": (lambda: D.Gumbel(t(0.5), t(0.6)), -5, 30),
    "Exponential": (lambda: D.Exponential(t(1.5)), 0, 30),
    "Gamma": (lambda: D.Gamma(t(3.0), t(2.0)), 0, 30),
    "Beta": (lambda: D.Beta(t(2.5), t(3.0)), 0, 1),
    "Uniform": (lambda: D.Uniform(t(0.2), t(0.7)), 0.2, 0.7),
    "ContinuousBernoulli": (lambda: D.ContinuousBernoulli(t(0.3)), 0, 1),
    "LogNormal": (lambda: D.LogNormal(t(0.0), t(0.4)), 1e-3, 30),
    "HalfNormal": (lambda: D.HalfNormal(t(0.8)), 0, 12),
    "Weibull": (lambda: D.Weibull(t(1.2), t(2.0)), 1e-9, 12),
    "StudentT": (lambda: D.StudentT(t(30.0), t(0.2), t(0.5)), -12, 12),
    "Kumaraswamy": (lambda: D.Kumaraswamy(t(2.0), t(3.0)), 0, 1),
    "GeneralizedPareto": (lambda: D.GeneralizedPareto(t(0.1), t(1.0), t(-0.25)), 0.1, 4.1),
    "InverseGamma": (lambda: D.InverseGamma(t(20.0), t(19.0)), 1e-2, 20),
    "VonMises": (lambda: D.VonMises(t(0.3), t(2.0)), -math.pi, math.pi),
    "Independent": (lambda: D.Independent(D.Normal(t(0.3), t(0.7)), 0), -8, 8),
    "Mixture": (
        lambda: D.MixtureSameFamily(
            D.Categorical(t(0.3, 0.7)), D.Normal(t(-1.0, 1.0), t(0.3, 0.6))
        ),
        -8,
        8,
    ),
}
POINTS = 20000


def grid(low: float, high: float) -> tuple[torch.Tensor, float]:
    step = (high - low) / POINTS
    return low + step * (torch.arange(POINTS, dtype=F64) + 0.5), step


@pytest.mark.parametrize("name", CONTINUOUS)
def test_densities_and_moments(name: str) -> None:
    make, low, high = CONTINUOUS[name]
    d = make()
    x, step = grid(low, high)
    log_density = d.log_prob(x)
    density = log_density.exp()
    assert (density.sum() * step).item() == pytest.approx(1, abs=1e-4)
    if name != "VonMises":  # whose moments are of the circle
        mean = (x * density).sum() * step
        assert d.mean.item() == pytest.approx(mean.item(), abs=1e-3)
        variance = ((x - mean) ** 2 * density).sum() * step
        assert d.variance.item() == pytest.approx(variance.item(), rel=2e-3, abs=1e-5)
        assert d.stddev.item() == pytest.approx(math.sqrt(d.variance.item()))
    if name not in ("Mixture", "VonMises"):
        entropy = -torch.xlogy(density, density).sum() * step
        assert d.entropy().item() == pytest.approx(entropy.item(), abs=1e-3)


@pytest.mark.parametrize(
    "name",
    [
        "Normal",
        "Laplace",
        "Exponential",
        "Uniform",
        "ContinuousBernoulli",
        "LogNormal",
        "HalfNormal",
        "Weibull",
        "Kumaraswamy",
        "GeneralizedPareto",
    ],
)
def test_distribution_functions_sum_densities_and_invert(name: str) -> None:
    make, low, high = CONTINUOUS[name]
    d = make()
    x, step = grid(low, high)
    below = d.log_prob(x).exp().cumsum(0) * step
    assert torch.allclose(d.cdf(x + step / 2 * 0.999), below, atol=2e-3)
    levels = t(0.1, 0.5, 0.9)
    assert torch.allclose(d.cdf(d.icdf(levels)), levels, atol=1e-9)


DISCRETE = [
    lambda: D.Bernoulli(t(0.3)),
    lambda: D.Binomial(6, t(0.4)),
    lambda: D.Categorical(t(0.2, 0.3, 0.5)),
    lambda: D.OneHotCategorical(t(0.2, 0.3, 0.5)),
]


@pytest.mark.parametrize("make", DISCRETE)
def test_discrete_probabilities_sum_to_one(make) -> None:
    d = make()
    values = d.enumerate_support()
    log_p = d.log_prob(values)
    assert log_p.exp().sum().item() == pytest.approx(1)
    assert d.entropy().item() == pytest.approx(-(log_p.exp() * log_p).sum().item())
    assert d.perplexity().item() == pytest.approx(math.exp(d.entropy().item()))


@pytest.mark.parametrize(
    "make",
    [
        lambda: D.Poisson(t(2.5)),
        lambda: D.Geometric(t(0.4)),
        lambda: D.NegativeBinomial(t(3.0), t(0.3)),
    ],
)
def test_counts(make) -> None:
    d = make()
    k = torch.arange(200, dtype=F64)
    p = d.log_prob(k).exp()
    assert p.sum().item() == pytest.approx(1)
    assert d.mean.item() == pytest.approx((k * p).sum().item())
    spread = ((k - d.mean) ** 2 * p).sum()
    assert d.variance.item() == pytest.approx(spread.item())
    assert d.mode.item() == p.argmax().item()


PAIRS = [
    ("Normal", "Laplace"), ("Normal", "Gumbel"), ("Laplace", "Normal"), ("Gumbel", "Normal"),
    ("Exponential", "Gamma"), ("Exponential", "Gumbel"), ("Exponential", "Normal"),
    ("Gamma", "Exponential"), ("Gamma", "Gumbel"), ("Gamma", "Normal"),
    ("Beta", "ContinuousBernoulli"), ("Beta", "Exponential"), ("Beta", "Gamma"),
    ("Beta", "Normal"), ("ContinuousBernoulli", "Exponential"), ("ContinuousBernoulli", "Normal"),
    ("Uniform", "Beta"), ("Uniform", "ContinuousBernoulli"), ("Uniform", "Exponential"),
    ("Uniform", "Gamma"), ("Uniform", "Gumbel"), ("Uniform", "Normal"),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_divergences_between_types(left: str, right: str) -> None:
    make_p, low, high = CONTINUOUS[left]
    p, q = make_p(), CONTINUOUS[right][0]()
    x, step = grid(low, high)
    expected = (p.log_prob(x).exp() * (p.log_prob(x) - q.log_prob(x))).sum() * step
    assert D.kl_divergence(p, q).item() == pytest.approx(expected.item(), abs=3e-3)


SAME = [
    (D.Normal, (0.3, 0.7), (1.0, 1.5), -8, 8),
    (D.Laplace, (0.3, 0.5), (1.0, 1.5), -20, 20),
    (D.Gumbel, (0.3, 0.6), (0.5, 0.9), -5, 30),
    (D.Cauchy, (0.3, 0.6), (0.5, 0.9), -3000, 3000),
    (D.Gamma, (3.0, 2.0), (2.0, 1.0), 0, 30),
    (D.Beta, (2.5, 3.0), (1.5, 1.0), 0, 1),
    (D.Exponential, (1.5,), (0.5,), 0, 30),
    (D.HalfNormal, (0.8,), (1.3,), 0, 12),
    (D.ContinuousBernoulli, (0.3,), (0.8,), 0, 1),
]


@pytest.mark.parametrize(("kind", "a", "b", "low", "high"), SAME)
def test_divergences_within_a_type(kind, a, b, low: float, high: float) -> None:
    p, q = kind(*map(t, a)), kind(*map(t, b))
    step = (high - low) / 200000
    x = low + step * (torch.arange(200000, dtype=F64) + 0.5)
    expected = (p.log_prob(x).exp() * (p.log_prob(x) - q.log_prob(x))).sum() * step
    assert D.kl_divergence(p, q).item() == pytest.approx(expected.item(), abs=2e-3)
    assert D.kl_divergence(p, p).item() == pytest.approx(0, abs=1e-12)


def test_divergences_of_counts_and_categories() -> None:
    p, q = D.Poisson(t(2.5)), D.Poisson(t(1.5))
    k = torch.arange(100, dtype=F64)
    expected = (p.log_prob(k).exp() * (p.log_prob(k) - q.log_prob(k))).sum()
    assert D.kl_divergence(p, q).item() == pytest.approx(expected.item())
    p, q = D.Categorical(t(0.2, 0.8, 0.0)), D.Categorical(t(0.5, 0.25, 0.25))
    expected = 0.2 * math.log(0.4) + 0.8 * math.log(3.2)
    assert D.kl_divergence(p, q).item() == pytest.approx(expected)
    assert D.kl_divergence(q, p).item() == math.inf
    p, q = D.Geometric(t(0.3)), D.Geometric(t(0.6))
    k = torch.arange(400, dtype=F64)
    expected = (p.log_prob(k).exp() * (p.log_prob(k) - q.log_prob(k))).sum()
    assert D.kl_divergence(p, q).item() == pytest.approx(expected.item())


def test_mass_outside_the_other_support_is_infinitely_far() -> None:
    assert D.kl_divergence(D.Normal(t(0.0), t(1.0)), D.Gamma(t(1.0), t(1.0))).item() == math.inf
    assert D.kl_divergence(D.Uniform(t(0.0), t(2.0)), D.Uniform(t(0.0), t(1.0))).item() == math.inf
    far = D.kl_divergence(D.Uniform(t(-1.0), t(1.0)), D.Exponential(t(1.0)))
    assert far.item() == math.inf
    with pytest.raises(NotImplementedError, match="No KL.* p type StudentT and q type Poisson"):
        D.kl_divergence(D.StudentT(3.0), D.Poisson(1.0))


def test_the_closest_registered_rule_wins() -> None:
    class Mine(D.Normal):
        pass

    D.register_kl(Mine, D.Normal)(lambda p, q: torch.tensor(42.0))
    try:
        assert D.kl_divergence(Mine(0.0, 1.0), D.Normal(0.0, 1.0)).item() == 42
        assert D.kl_divergence(D.Normal(0.0, 1.0), Mine(0.0, 1.0)).item() == 0
    finally:
        del D.kl._KL_REGISTRY[Mine, D.Normal]
        D.kl._KL_MEMOIZE.clear()
