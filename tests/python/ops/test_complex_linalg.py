"""Factorisations and solvers of complex matrices, against NumPy."""

import numpy
import pytest
import rushlight as torch
from rushlight import linalg

SIZES = [1, 2, 5, 40]


def matrix(rows: int, columns: int | None = None, *batch: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(rows * 100 + (columns or rows))
    shape = (*batch, rows, columns or rows)
    return torch.randn(shape, dtype=torch.complex128, generator=generator)


def definite(n: int) -> torch.Tensor:
    a = matrix(n)
    return a @ a.mH + n * torch.eye(n, dtype=torch.complex128)


def close(actual: torch.Tensor, expected: numpy.ndarray | torch.Tensor, atol: float = 1e-9) -> None:
    numpy.testing.assert_allclose(actual.numpy(), numpy.asarray(expected), rtol=1e-8, atol=atol)


@pytest.mark.parametrize("n", SIZES)
def test_solvers(n: int) -> None:
    a, b = matrix(n), matrix(n, 3)
    close(linalg.solve(a, b), numpy.linalg.solve(a.numpy(), b.numpy()))
    close(linalg.inv(a) @ a, numpy.eye(n))
    close(linalg.det(a), numpy.linalg.det(a.numpy()))
    sign, log = linalg.slogdet(a)
    close(sign, numpy.linalg.slogdet(a.numpy())[0])
    close(log, numpy.linalg.slogdet(a.numpy())[1])
    assert log.dtype == torch.float64
    p, low, u = linalg.lu(a)
    close(p @ low @ u, a)
    lu, pivots = linalg.lu_factor(a)
    close(a.mH @ linalg.lu_solve(lu, pivots, b, adjoint=True), b)
    close(a @ linalg.lu_solve(lu, pivots, b), b)
    close(linalg.solve_triangular(u, b, upper=True), numpy.linalg.solve(u.numpy(), b.numpy()))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky(n: int, upper: bool) -> None:
    a, b = definite(n), matrix(n, 2)
    factor = linalg.cholesky(a, upper=upper)
    close(factor.mH @ factor if upper else factor @ factor.mH, a)
    close(a @ torch.cholesky_solve(b, factor, upper), b)
    close(torch.cholesky_inverse(factor, upper) @ a, numpy.eye(n))


@pytest.mark.parametrize("n", SIZES)
def test_qr(n: int) -> None:
    for a in (matrix(n), matrix(n + 2, n), matrix(n, n + 2, 2)):
        q, r = linalg.qr(a)
        close(q @ r, a)
        close(q.mH @ q, torch.eye(q.size(-1), dtype=a.dtype).expand_as(q.mH @ q))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
@pytest.mark.parametrize("hermitian", [False, True])
def test_ldl(n: int, dtype: torch.dtype, hermitian: bool) -> None:
    whole = matrix(n, n, 2)
    a = (whole + (whole.mH if hermitian else whole.mT)).to(dtype)
    if n > 1:
        a[0] -= torch.diag_embed(torch.diagonal(a[0]))  # forces blocks of two
    factors, pivots = linalg.ldl_factor(a, hermitian=hermitian)
    assert n == 1 or (pivots[0] < 0).any()
    if hermitian:
        assert (torch.diagonal(factors, 0, -2, -1).imag == 0).all()
    b = matrix(n, 3, 2).to(dtype)
    x = linalg.ldl_solve(factors, pivots, b, hermitian=hermitian)
    tolerance = 1e-3 if dtype == torch.complex64 else 1e-9
    numpy.testing.assert_allclose((a @ x).numpy(), b.numpy(), rtol=tolerance, atol=tolerance)


def test_ldl_reads_the_lower_triangle_and_the_real_part_of_a_hermitian_diagonal() -> None:
    whole = matrix(5)
    a = whole + whole.mH
    other = a.tril() + 1j * torch.eye(5, dtype=a.dtype) + matrix(5).triu(1)
    for got, expected in zip(
        linalg.ldl_factor(other, hermitian=True), linalg.ldl_factor(a, hermitian=True), strict=True
    ):
        assert torch.equal(got, expected)
    _, _, info = linalg.ldl_factor_ex(torch.zeros(2, 2, dtype=a.dtype), hermitian=True)
    assert info.item() == 1


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("transpose", [False, True])
def test_products_with_reflectors(n: int, transpose: bool) -> None:
    v, tau = torch.geqrf(matrix(n + 2, n, 2))
    square = torch.cat([v, torch.zeros(2, n + 2, 2, dtype=v.dtype)], -1)
    q = linalg.householder_product(square, tau)
    q = q.mH if transpose else q
    c = matrix(n + 2, 3, 2)
    close(torch.ormqr(v, tau, c, True, transpose), q @ c)
    close(torch.ormqr(v, tau, c.mH, False, transpose), c.mH @ q)


@pytest.mark.parametrize("n", SIZES)
def test_singular_values(n: int) -> None:
    for a in (matrix(n), matrix(n, n + 3), matrix(n + 3, n, 2)):
        for full in (False, True):
            u, s, vh = linalg.svd(a, full_matrices=full)
            rank = s.size(-1)
            close((u[..., :rank] * s.unsqueeze(-2)) @ vh[..., :rank, :], a)
            close(u.mH @ u, torch.eye(u.size(-1), dtype=a.dtype).expand_as(u.mH @ u))
            close(vh @ vh.mH, torch.eye(vh.size(-2), dtype=a.dtype).expand_as(vh @ vh.mH))
        close(linalg.svdvals(a), numpy.linalg.svd(a.numpy(), compute_uv=False))
    flat = matrix(n, 1) @ matrix(1, n)
    u, s, vh = linalg.svd(flat)
    close((u * s) @ vh, flat)
    close(u.mH @ u, numpy.eye(n))


@pytest.mark.parametrize("n", SIZES)
def test_hermitian_eigenvalues(n: int) -> None:
    a = matrix(n)
    a = a + a.mH
    values, vectors = linalg.eigh(a)
    close(values, numpy.linalg.eigvalsh(a.numpy()))
    close((vectors * values) @ vectors.mH, a)
    close(linalg.eigvalsh(a.triu(), UPLO="U"), values)


GRADIENTS = {
    "solve": (lambda a: linalg.solve(a, a.mT), matrix(3)),
    "inv": (linalg.inv, matrix(3)),
    "det": (linalg.det, matrix(3)),
    "slogdet": (linalg.slogdet, matrix(3)),
    "lu": (lambda a: linalg.lu(a)[1:], matrix(3)),
    "cholesky": (lambda a: linalg.cholesky(a + a.mH), definite(3)),
    "qr": (linalg.qr, matrix(4, 3)),
    "svdvals": (linalg.svdvals, matrix(3, 4)),
    "svd": (lambda a: [abs(part) for part in linalg.svd(a, full_matrices=False)], matrix(3, 4)),
    "eigvalsh": (lambda a: linalg.eigvalsh(a + a.mH), matrix(3)),
    "eigh": (lambda a: abs(linalg.eigh(a + a.mH)[1]), matrix(3)),
    "vector_norm": (linalg.vector_norm, matrix(3)),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name: str) -> None:
    function, value = GRADIENTS[name]
    x = value.clone().requires_grad_()
    assert torch.autograd.gradcheck(function, (x,))
    assert torch.autograd.gradgradcheck(function, (x,))


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("n", [3, 5, 10])
def test_general_eigenvalues_come_in_the_order_of_lapack(dtype: torch.dtype, n: int) -> None:
    generator = torch.Generator().manual_seed(n)
    agree = 0
    for _ in range(20):
        a = torch.randn(n, n, dtype=dtype, generator=generator)
        found, expected = linalg.eigvals(a).numpy(), numpy.linalg.eigvals(a.numpy())
        agree += numpy.allclose(found, expected, rtol=1e-9, atol=1e-9)
    assert agree >= 19  # a matrix now and then is at the edge of a criterion


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("transpose", [False, True])
def test_gradients_of_reflectors(left: bool, transpose: bool) -> None:
    v, tau, c = (x.requires_grad_() for x in (matrix(4, 3, 2), matrix(2, 2), matrix(4, 3, 2)))
    assert torch.autograd.gradcheck(linalg.householder_product, (v, tau))
    assert torch.autograd.gradgradcheck(linalg.householder_product, (v, tau))

    def product(v: torch.Tensor, tau: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        return torch.ormqr(v, tau, c if left else c.mT, left, transpose)

    assert torch.autograd.gradcheck(product, (v, tau, c))
    assert torch.autograd.gradgradcheck(product, (v, tau, c))


def test_gradients_of_general_eigenvalues() -> None:
    x = torch.randn(3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    x.requires_grad_()
    assert torch.autograd.gradcheck(lambda a: linalg.eigvals(a).abs().sum(), (x,))
    assert torch.autograd.gradcheck(lambda a: [abs(part) for part in linalg.eig(a)], (x,))
