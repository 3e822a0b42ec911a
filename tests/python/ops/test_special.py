"""Special functions at values from tables, and their gradients."""

import math

import pytest
import rushlight as torch

S = torch.special
VALUES = [
    (torch.i0, 1.0, 1.2660658777520084),
    (torch.i0, 40.0, 1.4894774793419892e16),
    (S.i0e, 1000.0, 0.012617240455891257),
    (S.i1, -2.0, -1.5906368546373291),
    (S.i1e, 0.5, 0.15642080318487173),
    (S.erfcx, 0.0, 1.0),
    (S.erfcx, 1.0, 0.427583576155807),
    (S.erfcx, 30.0, 0.0187958888614168),
    (S.erfcx, -1.0, 5.00898008076228),
    (S.ndtr, 0.0, 0.5),
    (S.ndtr, -1.0, 0.15865525393145707),
    (S.log_ndtr, -40.0, -804.6084420137538),
    (S.log_ndtr, 1.0, -0.1727537790234499),
    (S.ndtri, 0.975, 1.959963984540054),
    (S.ndtri, 1e-20, -9.262340089798408),
    (S.entr, 0.5, 0.34657359027997264),
    (S.entr, 0.0, 0.0),
    (S.entr, -1.0, -math.inf),
]


@pytest.mark.parametrize(("function", "x", "expected"), VALUES)
def test_values(function, x, expected):
    result = function(torch.tensor([x], dtype=torch.float64)).item()
    assert result == pytest.approx(expected, rel=1e-12)


def test_zeta_and_polygamma():
    x = torch.tensor([1.0, 0.5], dtype=torch.float64)
    assert S.zeta(2.0, x).tolist() == pytest.approx([math.pi**2 / 6, math.pi**2 / 2], rel=1e-13)
    assert S.zeta(1.0, x).tolist() == [math.inf, math.inf]
    assert torch.polygamma(2, x).tolist() == pytest.approx(
        [-2.404113806319188570799, -16.828796644234319996], rel=1e-12
    )
    assert torch.equal(x.polygamma(0), torch.digamma(x))
    with pytest.raises(RuntimeError, match="does not support negative n"):
        torch.polygamma(-1, x)


def test_mvlgamma():
    x = torch.tensor([2.5, 4.0], dtype=torch.float64)
    expected = torch.lgamma(x) + torch.lgamma(x - 0.5) + 0.5 * math.log(math.pi)
    assert torch.allclose(torch.mvlgamma(x, 2), expected)


def test_xlog1py():
    x = torch.tensor([0.0, 2.0, 0.0])
    y = torch.tensor([-1.0, math.e - 1, math.nan])
    first, second, third = S.xlog1py(x, y).tolist()
    assert (first, second) == (0.0, pytest.approx(2.0))
    assert math.isnan(third)


@pytest.mark.parametrize(
    "function",
    [torch.i0, S.i0e, S.i1, S.i1e, S.erfcx, S.ndtr, S.log_ndtr, S.entr, torch.digamma],
)
def test_gradients(function):
    x = torch.tensor([0.3, 1.7, 2.5], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(function, (x,))
    assert torch.autograd.gradgradcheck(function, (x,))


def test_integers_become_floats():
    assert torch.i0(torch.tensor([0, 1])).dtype == torch.float32
    assert S.entr(torch.tensor([1])).dtype == torch.float32
