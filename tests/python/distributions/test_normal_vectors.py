"""Distributions over vectors and matrices, which need factorisations."""

import math

import numpy
import rushlight as torch
from rushlight import distributions

COVARIANCE = torch.tensor([[2.0, 0.3, 0.1], [0.3, 1.0, 0.2], [0.1, 0.2, 1.5]], dtype=torch.float64)
MEAN = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64)


def log_density(x: torch.Tensor, covariance: torch.Tensor) -> float:
    gap = (x - MEAN).numpy()
    spread = covariance.numpy()
    _, size = numpy.linalg.slogdet(spread)
    return -0.5 * (gap @ numpy.linalg.solve(spread, gap) + size + len(gap) * math.log(2 * math.pi))


def test_density_of_normal_vectors() -> None:
    x = torch.tensor([1.0, 0.0, 1.0], dtype=torch.float64)
    forms = {
        "covariance_matrix": COVARIANCE,
        "precision_matrix": torch.linalg.inv(COVARIANCE),
        "scale_tril": torch.linalg.cholesky(COVARIANCE),
    }
    for name, given in forms.items():
        normal = distributions.MultivariateNormal(MEAN, **{name: given})
        assert math.isclose(normal.log_prob(x).item(), log_density(x, COVARIANCE), rel_tol=1e-9)
        assert torch.allclose(normal.covariance_matrix, COVARIANCE)


def test_density_of_low_rank() -> None:
    factor, diagonal = torch.ones(3, 1).double(), torch.tensor([1.0, 2.0, 3.0]).double()
    normal = distributions.LowRankMultivariateNormal(MEAN, factor, diagonal)
    x = torch.zeros(3, dtype=torch.float64)
    covariance = factor @ factor.mT + torch.diag(diagonal)
    assert math.isclose(normal.log_prob(x).item(), log_density(x, covariance), rel_tol=1e-9)


def test_samples_have_the_moments() -> None:
    torch.manual_seed(0)
    normal = distributions.MultivariateNormal(MEAN, COVARIANCE)
    x = normal.sample((20000,))
    assert torch.allclose(x.mean(0), MEAN, atol=0.05)
    assert torch.allclose(torch.cov(x.mT), COVARIANCE, atol=0.1)


def test_divergence() -> None:
    normal = distributions.MultivariateNormal(MEAN, COVARIANCE)
    other = distributions.MultivariateNormal(MEAN + 1, COVARIANCE)
    same = distributions.kl_divergence(normal, normal).item()
    expected = 0.5 * numpy.linalg.inv(COVARIANCE.numpy()).sum()
    assert abs(same) < 1e-12
    assert math.isclose(distributions.kl_divergence(normal, other).item(), expected, rel_tol=1e-9)


def test_wishart() -> None:
    wishart = distributions.Wishart(torch.tensor(5.0).double(), covariance_matrix=COVARIANCE)
    assert torch.allclose(wishart.mean, 5 * COVARIANCE)
    assert wishart.sample((4,)).shape == (4, 3, 3)


def test_samples_of_wishart_are_pytorchs() -> None:
    torch.manual_seed(0)
    sample = distributions.Wishart(torch.tensor(3.0), torch.eye(2)).sample()
    expected = torch.tensor([[0.4284523, 0.6952575], [0.6952575, 1.5480335]])
    torch.testing.assert_close(sample, expected)
