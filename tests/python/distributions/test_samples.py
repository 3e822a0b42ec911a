"""Random streams of distributions, and how samples move with parameters."""

import math
import subprocess
import sys

import pytest
import rushlight as torch

D = torch.distributions
STREAMS = [
    ("Normal", lambda: (torch.zeros(2), torch.ones(2)), [-0.146795, 0.786141, 0.946822, -1.11434]),
    (
        "Gamma",
        lambda: (torch.tensor([0.3, 7.0]), torch.tensor([1.0, 0.5])),
        [0.236347, 26.3012, 0.0014759, 20.7636],
    ),
    (
        "Dirichlet",
        lambda: (torch.tensor([0.5, 2.0, 3.0]),),
        [0.0472037, 0.593447, 0.35935, 0.00622201, 0.419573, 0.574205],
    ),
    (
        "Beta",
        lambda: (torch.tensor([0.5, 2.0]), torch.tensor([1.5, 3.0])),
        [0.0858062, 0.580358, 0.0636368, 0.311866],
    ),
    (
        "Binomial",
        lambda: (torch.tensor([5.0, 40.0, 100.0]), torch.tensor([0.3, 0.4, 0.9])),
        [1.0, 20.0, 92.0, 2.0, 10.0, 97.0],
    ),
    ("Poisson", lambda: (torch.tensor([0.5, 20.0]),), [0.0, 17.0, 1.0, 25.0]),
    ("NegativeBinomial", lambda: (torch.tensor([5.0]), torch.tensor([0.3])), [3.0, 2.0]),
    ("StudentT", lambda: (torch.tensor([3.0]),), [-0.113316, 1.6773]),
    ("FisherSnedecor", lambda: (torch.tensor([3.0]), torch.tensor([5.0])), [0.295284, 3.39657]),
    ("VonMises", lambda: (torch.tensor([0.0]), torch.tensor([4.0])), [0.233171, 0.227825]),
    (
        "Laplace",
        lambda: (torch.zeros(2), torch.ones(2)),
        [0.0724042, -0.922292, 0.383347, 0.376558],
    ),
    ("Geometric", lambda: (torch.tensor([0.3]),), [1.0, 4.0]),
    ("Categorical", lambda: (torch.tensor([0.2, 0.3, 0.5]),), [1.0, 1.0]),
    ("Multinomial", lambda: (5, torch.tensor([0.2, 0.3, 0.5])), [0.0, 2.0, 3.0, 0.0, 1.0, 4.0]),
    ("Gumbel", lambda: (torch.zeros(1), torch.ones(1)), [0.468991, -0.479607]),
    ("Weibull", lambda: (torch.ones(1), torch.tensor([0.7])), [0.203103, 0.196179]),
    ("RelaxedBernoulli", lambda: (torch.tensor([0.7]), torch.tensor([0.3])), [0.266874, 0.0391072]),
    (
        "LKJCholesky",
        lambda: (2, 1.5),
        [1.0, 0.0, 0.0828239, 0.996564, 1.0, 0.0, -0.0862897, 0.99627],
    ),
    ("Kumaraswamy", lambda: (torch.tensor([2.0]), torch.tensor([1.5])), [0.583984, 0.812016]),
    ("HalfCauchy", lambda: (torch.ones(1),), [0.830556, 0.861203]),
]


@pytest.mark.parametrize(("name", "parameters", "expected"), STREAMS)
def test_streams(name, parameters, expected) -> None:
    torch.manual_seed(7)
    drawn = getattr(D, name)(*parameters()).sample((2,))
    assert drawn.reshape(-1).tolist() == pytest.approx(expected, rel=2e-5, abs=1e-6)


def gamma_cdf(a: float, x: float) -> float:
    term = math.exp(a * math.log(x) - x - math.lgamma(a + 1))
    total = 0.0
    for n in range(400):
        total += term
        term *= x / (a + 1 + n)
    return total


@pytest.mark.parametrize("a", [0.2, 1.0, 3.5, 40.0])
@pytest.mark.parametrize("place", [0.3, 1.0, 1.8])
def test_gamma_numbers_move_along_their_quantile(a: float, place: float) -> None:
    x = a * place
    h = 1e-5 * a
    by_shape = (gamma_cdf(a + h, x) - gamma_cdf(a - h, x)) / (2 * h)
    density = math.exp((a - 1) * math.log(x) - x - math.lgamma(a))
    shape = torch.tensor(a, dtype=torch.float64)
    got = torch._standard_gamma_grad(shape, torch.tensor(x, dtype=torch.float64))
    assert got.item() == pytest.approx(-by_shape / density, rel=1e-5)


def beta_cdf(a: float, b: float, x: float) -> float:
    # By Simpson's rule; the ends are flat for the parameters below.
    n = 4000
    points = [x * i / n for i in range(n + 1)]
    values = [t ** (a - 1) * (1 - t) ** (b - 1) for t in points]
    inner = 4 * sum(values[1:-1:2]) + 2 * sum(values[2:-1:2])
    scale = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b))
    return scale * (values[0] + inner + values[-1]) * x / (3 * n)


@pytest.mark.parametrize(("a", "b"), [(3.0, 4.0), (5.5, 3.2)])
@pytest.mark.parametrize("x", [0.1, 0.5, 0.9])
def test_beta_numbers_move_along_their_quantile(a: float, b: float, x: float) -> None:
    h = 1e-4
    by_shape = (beta_cdf(a + h, b, x) - beta_cdf(a - h, b, x)) / (2 * h)
    scale = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b))
    density = scale * x ** (a - 1) * (1 - x) ** (b - 1)
    given = [torch.tensor(v, dtype=torch.float64) for v in (x, a, a + b)]
    got = torch._dirichlet_grad(*given).item()
    assert got * (1 - x) == pytest.approx(-by_shape / density, rel=1e-4)


def test_gradients_of_samples_agree_with_the_means() -> None:
    torch.manual_seed(0)
    a = torch.tensor([1.5, 2.5, 0.5], dtype=torch.float64, requires_grad=True)
    D.Dirichlet(a).rsample((20000,))[:, 0].mean().backward()
    total = 4.5
    expected = [(total - 1.5) / total**2, -1.5 / total**2, -1.5 / total**2]
    assert a.grad.tolist() == pytest.approx(expected, abs=5e-3)


def test_samplers_refuse_what_they_cannot_draw() -> None:
    with pytest.raises(NotImplementedError, match="\"gamma_cpu\" not implemented for 'Half'"):
        torch._standard_gamma(torch.ones(1, dtype=torch.float16))
    with pytest.raises(RuntimeError, match="Found dtype Float but expected Double"):
        torch.binomial(torch.ones(1), torch.ones(1, dtype=torch.float64))
    x = torch.ones(1, requires_grad=True)
    slope = torch.autograd.grad(torch._standard_gamma(x), x, create_graph=True)[0]
    with pytest.raises(RuntimeError, match="_standard_gamma_grad' is not implemented"):
        slope.backward()


def test_samplers_draw_nothing_on_meta() -> None:
    shapes = torch.empty(2, 3, device="meta")
    for drawn in (
        torch._standard_gamma(shapes),
        torch._sample_dirichlet(shapes),
        torch.binomial(shapes, torch.empty(3, device="meta")),
    ):
        assert drawn.is_meta
        assert drawn.shape == (2, 3)


def test_importing_rushlight_leaves_distributions_alone() -> None:
    code = (
        "import sys, rushlight; "
        "assert not any('distributions' in m or 'signal' in m or m.endswith('masked') "
        "for m in sys.modules if m.startswith('rushlight')); "
        "assert rushlight.distributions.Normal(0.0, 1.0).mean == 0"
    )
    paths = "import sys; sys.path[:0] = " + repr(sys.path) + "; "
    subprocess.run([sys.executable, "-c", paths + code], check=True)
