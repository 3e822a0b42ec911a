"""Bessel, Airy and orthogonal polynomials at values from tables."""

import math

import pytest
import rushlight as torch

S = torch.special
VALUES = [
    ("airy_ai", 0.0, 0.3550280538878172),
    ("airy_ai", 1.0, 0.13529241631288141),
    ("airy_ai", 5.0, 1.0834442813607442e-4),
    ("airy_ai", -5.0, 0.35076100902411433),
    ("airy_ai", -20.0, -0.17640612707798468),
    ("bessel_j0", 1.0, 0.7651976865579666),
    ("bessel_j1", -1.0, -0.44005058574493355),
    ("bessel_y0", 1.0, 0.08825696421567697),
    ("bessel_y1", 1.0, -0.7812128213002888),
    ("modified_bessel_i0", 1.0, 1.2660658777520082),
    ("modified_bessel_i1", -2.0, -1.5906368546373291),
    ("modified_bessel_k0", 1.0, 0.42102443824070823),
    ("modified_bessel_k0", 10.0, 1.778006231616765e-5),
    ("modified_bessel_k1", 1.0, 0.6019072301972346),
    ("modified_bessel_k1", 10.0, 1.8648773453825584e-5),
    ("scaled_modified_bessel_k0", 1.0, 1.1444630798068949),
    ("scaled_modified_bessel_k1", 800.0, 0.04433210911141211),
    ("spherical_bessel_j0", 1.0, 0.8414709848078965),
    ("spherical_bessel_j0", 0.0, 1.0),
]


@pytest.mark.parametrize(("name", "x", "expected"), VALUES)
def test_table_values(name: str, x: float, expected: float) -> None:
    got = getattr(S, name)(torch.tensor(x, dtype=torch.float64))
    assert got.item() == pytest.approx(expected, rel=2e-14)


def test_airy_solves_its_equation_where_methods_meet() -> None:
    h = 1e-3
    for x in (-9.0, -3.0, 0.0, 1.6):
        at = torch.tensor([x - h, x, x + h], dtype=torch.float64)
        left, middle, right = S.airy_ai(at).tolist()
        assert (left - 2 * middle + right) / h**2 == pytest.approx(x * middle, abs=3e-6)


def test_k_joins_its_series_and_its_fraction() -> None:
    at = torch.tensor([2.0, math.nextafter(2.0, 3.0)], dtype=torch.float64)
    for name in ("modified_bessel_k0", "modified_bessel_k1", "scaled_modified_bessel_k1"):
        below, above = getattr(S, name)(at).tolist()
        assert below == pytest.approx(above, rel=1e-13)


def test_limits() -> None:
    inf, nan = math.inf, math.nan
    assert S.bessel_y0(torch.tensor([0.0])).tolist() == [-inf]
    assert S.modified_bessel_k1(torch.tensor([0.0, inf])).tolist() == [inf, 0.0]
    for name in ("bessel_y1", "modified_bessel_k0", "scaled_modified_bessel_k0"):
        assert torch.isnan(getattr(S, name)(torch.tensor([-1.0, nan]))).all()


POLYNOMIALS = {
    "chebyshev_polynomial_t": lambda n, a: math.cos(n * a),
    "chebyshev_polynomial_u": lambda n, a: math.sin((n + 1) * a) / math.sin(a),
    "chebyshev_polynomial_v": lambda n, a: math.cos((n + 0.5) * a) / math.cos(a / 2),
    "chebyshev_polynomial_w": lambda n, a: math.sin((n + 0.5) * a) / math.sin(a / 2),
}


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_chebyshev_by_angles(name: str) -> None:
    degrees = torch.arange(14)
    x = torch.linspace(-0.9, 0.9, 7, dtype=torch.float64)[:, None]
    expected = [[POLYNOMIALS[name](n, math.acos(v)) for n in range(14)] for v in x[:, 0].tolist()]
    wanted = torch.tensor(expected, dtype=torch.float64)
    assert torch.allclose(getattr(S, name)(x, degrees), wanted, rtol=1e-10, atol=1e-10)
    shifted = getattr(S, f"shifted_{name}")((x + 1) / 2, degrees)
    assert torch.allclose(shifted, wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("name", "n", "x", "expected"),
    [
        ("chebyshev_polynomial_t", 3, 1.5, 9.0),
        ("chebyshev_polynomial_u", 9, -1.0, -10.0),
        ("chebyshev_polynomial_v", 10, -1.0, 21.0),
        ("hermite_polynomial_h", 10, 0.5, 22591.0),
        ("hermite_polynomial_he", 10, 1.0, 1216.0),
        ("laguerre_polynomial_l", 3, 1.5, -0.6875),
        ("legendre_polynomial_p", 3, -3.0, -63.0),
        ("legendre_polynomial_p", 200, -1.0, 1.0),
        ("laguerre_polynomial_l", -1, 0.5, 0.0),
        ("legendre_polynomial_p", 0, 0.5, 1.0),
    ],
)
def test_polynomials(name: str, n: int, x: float, expected: float) -> None:
    function = getattr(S, name)
    at = torch.tensor(x, dtype=torch.float64)
    assert function(at, n).item() == expected
    assert function(x, torch.tensor([n])).item() == expected
    assert function(at, torch.tensor(n)).item() == expected
    out = torch.empty((), dtype=torch.float64)
    assert function(at, n, out=out) is out
    assert out.item() == expected


def test_they_have_no_gradient_and_no_half() -> None:
    x = torch.tensor([0.5], requires_grad=True)
    assert not S.bessel_j0(x).requires_grad
    assert S.bessel_j0(torch.tensor([1])).dtype == torch.float32
    with pytest.raises(NotImplementedError, match="\"airy_ai_cpu\" not implemented for 'Half'"):
        S.airy_ai(torch.ones(1, dtype=torch.float16))
    with pytest.raises(NotImplementedError, match="legendre_polynomial_p_cpu"):
        S.legendre_polynomial_p(torch.ones(1, dtype=torch.bfloat16), 2)
