"""igamma and igammac at points with closed forms, and against numerical integration."""

import math

import numpy as np
import pytest
import rushlight as torch


def pair(a, x):
    made = [torch.tensor(v, dtype=torch.float64) for v in (a, x)]
    return torch.igamma(*made).tolist(), torch.igammac(*made).tolist()


def test_closed_forms():
    x = np.array([1e-8, 0.1, 0.7, 2.0, 30.0, 200.0])
    lower, upper = pair(1.0, x)
    np.testing.assert_allclose(lower, -np.expm1(-x), rtol=1e-13)
    np.testing.assert_allclose(upper, np.exp(-x), rtol=1e-12)
    lower, upper = pair(0.5, x)
    np.testing.assert_allclose(lower, [math.erf(math.sqrt(v)) for v in x], rtol=1e-13)
    np.testing.assert_allclose(upper, [math.erfc(math.sqrt(v)) for v in x], rtol=1e-12)
    lower, upper = pair(3.0, x)
    np.testing.assert_allclose(upper, np.exp(-x) * (1 + x + x * x / 2), rtol=1e-12)


@pytest.mark.parametrize("count", [30, 1000, 100000])
def test_many_events_agree_with_poisson_sums(count):
    for x in (count * 0.9, count, count * 1.1):
        terms = [-x + k * math.log(x) - math.lgamma(k + 1) for k in range(count)]
        upper = math.fsum(math.exp(term) for term in terms)
        assert pair(float(count), x)[1] == pytest.approx(upper, rel=1e-8, abs=1e-300)


def test_edges():
    inf, nan = math.inf, math.nan
    assert pair([0.0, 2.0, inf, 2.0], [1.0, 0.0, 1.0, inf]) == (
        [1.0, 0.0, 0.0, 1.0],
        [0.0, 1.0, 1.0, 0.0],
    )
    for a, x in ((0.0, 0.0), (-1.0, 1.0), (1.0, -1.0), (inf, inf), (nan, 1.0)):
        assert all(math.isnan(value) for value in pair(a, x))


def test_gradient_by_the_second_argument():
    a = torch.tensor([0.5, 2.0, 9.0], dtype=torch.float64)
    x = torch.tensor([0.3, 2.5, 4.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda t: torch.igamma(a, t), (x,))
    assert torch.autograd.gradcheck(lambda t: torch.igammac(a, t), (x,))
    with pytest.raises(NotImplementedError, match="derivative for 'igamma: input'"):
        torch.igamma(a.requires_grad_(), x).sum().backward()


def test_dtypes():
    made = torch.special.gammainc(torch.tensor([1.0, 2.0]).half(), torch.tensor(1.0))
    assert made.dtype == torch.float16
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        torch.igamma(torch.tensor([1]), torch.tensor([2]))
