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
    (S.i0e, 0.001, 0.99900074958351556),
    (S.i0e, 3.0, 0.2430003541618254),
    (S.i0e, 7.75, 0.14581227430891431),
    (S.i0e, 8.25, 0.1411645506329935),
    (S.i0e, -50.0, 0.056561626647454193),
    (S.i1e, 0.001, 0.00049950031235422135),
    (S.i1e, -3.0, -0.19682671329730085),
    (S.i1e, 7.75, 0.13605110008033911),
    (S.i1e, 8.25, 0.13231017396500142),
    (S.i1e, -50.0, -0.0559931238928954),
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
    (S.ndtri, 1e-300, -37.047096299361199),
    (S.ndtri, 1e-30, -11.464024688443616),
    (S.ndtri, 1e-6, -4.753424308822899),
    (S.ndtri, 0.07, -1.4757910281791707),
    (S.ndtri, 0.08, -1.4050715603096325),
    (S.ndtri, 0.3, -0.52440051270804082),
    (S.ndtri, 0.92, 1.4050715603096328),
    (S.ndtri, 0.999999, 4.7534243088170878),
    (S.entr, 0.5, 0.34657359027997264),
    (S.entr, 0.0, 0.0),
    (S.entr, -1.0, -math.inf),
]


EXACT = (torch.i0, S.i0e, S.i1, S.i1e, S.ndtri)


@pytest.mark.parametrize(("function", "x", "expected"), VALUES)
def test_values(function, x, expected):
    result = function(torch.tensor([x], dtype=torch.float64)).item()
    exact = function in EXACT
    assert result == pytest.approx(expected, rel=1e-14 if exact else 1e-12)
    narrow = function(torch.tensor([x])).item()
    wide = function(torch.tensor([x]).double()).item()
    assert narrow == pytest.approx(
        torch.tensor(wide).item(), rel=2e-7 if function in EXACT else 1e-5
    )


def test_limits():
    x = torch.tensor([0.0, 1.0, 0.5, -0.1, 1.1, math.nan])
    assert str(S.ndtri(x).tolist()) == "[-inf, inf, 0.0, nan, nan, nan]"
    x = torch.tensor([0.0, -0.0, math.inf, -math.inf, math.nan])
    assert str(S.i1e(x).tolist()) == "[0.0, -0.0, 0.0, -0.0, nan]"
    assert str(S.i0e(x).tolist()) == "[1.0, 1.0, 0.0, 0.0, nan]"
    x = torch.tensor([88.0, 100.0, 713.0])
    assert torch.i0(x).tolist()[1:] == [math.inf, math.inf]
    assert torch.i0(x.double()).tolist()[2] == pytest.approx(6.70512826367e307, rel=1e-11)


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


def test_quantile_gradients():
    x = torch.tensor([0.01, 0.4, 0.97], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(S.ndtri, (x,))
    assert torch.autograd.gradgradcheck(S.ndtri, (x,))


def test_integers_become_floats():
    assert torch.i0(torch.tensor([0, 1])).dtype == torch.float32
    assert S.entr(torch.tensor([1])).dtype == torch.float32
