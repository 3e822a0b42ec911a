"""Factorisations, solvers and what is made of them, against NumPy in float64."""

import numpy
import pytest
import rushlight as torch
from rushlight import linalg

SIZES = [1, 2, 5, 33, 70]


def matrix(rows: int, columns: int | None = None, *batch: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(rows * 100 + (columns or rows))
    return torch.randn(*batch, rows, columns or rows, dtype=torch.float64, generator=generator)


def definite(n: int) -> torch.Tensor:
    a = matrix(n)
    return a @ a.mT + n * torch.eye(n, dtype=torch.float64)


def close(actual: torch.Tensor, expected: numpy.ndarray | torch.Tensor, atol: float = 1e-9) -> None:
    numpy.testing.assert_allclose(actual.numpy(), numpy.asarray(expected), rtol=1e-8, atol=atol)


@pytest.mark.parametrize("n", SIZES)
def test_svd(n: int) -> None:
    for a in (matrix(n), matrix(n, n + 3), matrix(n + 3, n, 2)):
        u, s, vh = linalg.svd(a, full_matrices=False)
        close((u * s.unsqueeze(-2)) @ vh, a)
        close(s, numpy.linalg.svd(a.numpy(), compute_uv=False))
        close(linalg.svdvals(a), s)
        u, s, vh = linalg.svd(a)
        close(u.mT @ u, torch.eye(u.size(-1), dtype=a.dtype).expand_as(u))
        close(vh @ vh.mT, torch.eye(vh.size(-1), dtype=a.dtype).expand_as(vh))


@pytest.mark.parametrize("n", SIZES)
def test_eigh(n: int) -> None:
    a = matrix(n)
    a = a + a.mT
    values, vectors = linalg.eigh(a)
    close(values, numpy.linalg.eigvalsh(a.numpy()))
    close(vectors @ torch.diag(values) @ vectors.mT, a)
    close(linalg.eigvalsh(a, UPLO="U"), values)


@pytest.mark.parametrize("n", SIZES)
def test_eig(n: int) -> None:
    a = matrix(n)
    values = numpy.sort_complex(linalg.eigvals(a).numpy())
    close_to = numpy.sort_complex(numpy.linalg.eigvals(a.numpy()))
    numpy.testing.assert_allclose(values, close_to, atol=1e-8)
    values, vectors = (part.numpy() for part in linalg.eig(a))
    numpy.testing.assert_allclose(a.numpy() @ vectors, vectors * values, atol=1e-8)


@pytest.mark.parametrize("n", SIZES)
def test_qr_lu_and_cholesky(n: int) -> None:
    a = matrix(n + 2, n)
    q, r = linalg.qr(a)
    close(q @ r, a)
    close(q.mT @ q, torch.eye(n, dtype=a.dtype))
    close(r.tril(-1), torch.zeros_like(r))
    p, lower, upper = linalg.lu(a)
    close(p @ lower @ upper, a)
    a = definite(n)
    factor = linalg.cholesky(a)
    close(factor, numpy.linalg.cholesky(a.numpy()))
    close(torch.cholesky_inverse(factor) @ a, torch.eye(n, dtype=a.dtype))
    factors, pivots, info = linalg.ldl_factor_ex(a)
    assert info.item() == 0
    b = matrix(n, 2)
    close(a @ linalg.ldl_solve(factors, pivots, b), b)
    close(a @ torch.cholesky_solve(b, factor), b)


@pytest.mark.parametrize("n", SIZES)
def test_solvers(n: int) -> None:
    a, b = matrix(n), matrix(n, 3)
    close(linalg.solve(a, b), numpy.linalg.solve(a.numpy(), b.numpy()), 1e-7)
    close(a @ linalg.inv(a), torch.eye(n, dtype=a.dtype), 1e-8)
    close(linalg.det(a), numpy.linalg.det(a.numpy()))
    sign, size = linalg.slogdet(a)
    close(sign * size.exp(), linalg.det(a))
    close(linalg.lu_solve(*linalg.lu_factor(a), b), linalg.solve(a, b), 1e-7)
    lower = a.tril() + 3 * n * torch.eye(n, dtype=a.dtype)
    close(lower @ linalg.solve_triangular(lower, b, upper=False), b)
    tall = matrix(n + 4, n)
    right = matrix(n + 4, 2)
    expected = numpy.linalg.lstsq(tall.numpy(), right.numpy(), rcond=None)[0]
    close(linalg.lstsq(tall, right).solution, expected)
    close(linalg.pinv(tall), numpy.linalg.pinv(tall.numpy()))


@pytest.mark.parametrize("driver", ["gelsy", "gelsd", "gelss"])
def test_least_squares_have_a_rank_for_each_matrix(driver):
    torch.manual_seed(0)
    matrices = torch.randn(3, 1, 5, 4, dtype=torch.float64)
    right = torch.randn(1, 2, 5, 6, dtype=torch.float64)
    made = linalg.lstsq(matrices, right, driver=driver)
    assert made.solution.shape == (3, 2, 4, 6)
    assert made.rank.tolist() == [[4], [4], [4]]
    assert made.singular_values.shape == ((0,) if driver == "gelsy" else (3, 1, 4))
    for i in range(3):
        for j in range(2):
            alone = linalg.lstsq(matrices[i, 0], right[0, j], driver=driver).solution
            torch.testing.assert_close(made.solution[i, j], alone)
    empty = linalg.lstsq(matrices[..., :0], right, driver=driver)
    assert empty.rank.shape == (3, 1) and empty.solution.shape == (3, 2, 0, 6)


def test_norms_powers_and_exponentials() -> None:
    a = matrix(4, 6)
    for order in (2, -2, "nuc", "fro", 1, float("inf")):
        close(linalg.matrix_norm(a, order), numpy.linalg.norm(a.numpy(), order))
    b = matrix(4)
    close(linalg.cond(b), numpy.linalg.cond(b.numpy()))
    close(linalg.matrix_power(b, -2), numpy.linalg.matrix_power(b.numpy(), -2), 1e-7)
    close(torch.matrix_exp(torch.zeros(3, 3, dtype=b.dtype)), torch.eye(3, dtype=b.dtype))
    close(torch.matrix_exp(b) @ torch.matrix_exp(-b), torch.eye(4, dtype=b.dtype), 1e-7)
    assert linalg.matrix_rank(a @ a.mT).item() == 4
    assert linalg.matrix_rank(a.mT @ a).item() == 4


GRADIENTS = {
    "svdvals": (linalg.svdvals, matrix(3, 4)),
    "eigvalsh": (lambda a: linalg.eigvalsh(a + a.mT), matrix(4)),
    "qr": (lambda a: linalg.qr(a), matrix(4, 3)),
    "cholesky": (lambda a: linalg.cholesky(a + a.mT), definite(3)),
    "inv": (linalg.inv, definite(3)),
    "det": (linalg.det, matrix(3)),
    "logdet": (torch.logdet, definite(3)),
    "pinv": (linalg.pinv, matrix(4, 3)),
    "matrix_exp": (torch.matrix_exp, matrix(3)),
    "lu": (lambda a: linalg.lu(a)[1:], matrix(3)),
    "solve": (lambda a: linalg.solve(a, a.mT), definite(3)),
    "nuc": (lambda a: linalg.matrix_norm(a, "nuc"), matrix(3, 4)),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name: str) -> None:
    function, value = GRADIENTS[name]
    x = value.clone().requires_grad_()
    assert torch.autograd.gradcheck(function, (x,))
    assert torch.autograd.gradgradcheck(function, (x,))


def test_the_same_bits_for_any_thread_count() -> None:
    a, before = matrix(90, 90, 3).float(), torch.get_num_threads()
    try:
        runs = []
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            runs.append([linalg.svdvals(a), linalg.inv(a), linalg.qr(a)[0], linalg.det(a)])
    finally:
        torch.set_num_threads(before)
    for run in runs[1:]:
        assert all(torch.equal(mine, first) for mine, first in zip(run, runs[0], strict=True))


@pytest.mark.parametrize("name", ["svdvals", "eigvalsh", "inv", "qr", "det", "cholesky_ex"])
def test_empty_matrices(name: str) -> None:
    result = getattr(linalg, name)(torch.zeros(0, 3, 3))
    result = result[0] if isinstance(result, tuple) else result
    assert result.size(0) == 0
    getattr(linalg, name)(torch.zeros(2, 0, 0))


def test_not_a_number_ends() -> None:
    a = torch.full((6, 6), float("nan"))
    for name in ("svdvals", "eigvalsh"):
        with pytest.raises(linalg.LinAlgError, match="non-finite|failed to converge"):
            getattr(linalg, name)(a)
    with pytest.raises(RuntimeError, match="should not contain infs or NaNs"):
        linalg.eigvals(a)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: linalg.inv(torch.zeros(2, 2)), "singular"),
        (lambda: linalg.solve(torch.zeros(2, 2), torch.zeros(2)), "singular"),
        (lambda: linalg.cholesky(-torch.eye(2)), "positive-definite"),
        (lambda: linalg.det(torch.zeros(2, 3)), "square"),
        (lambda: linalg.svd(torch.zeros(3)), "at least 2 dimensions"),
        (lambda: linalg.eigh(torch.zeros(2, 3)), "square"),
        (lambda: linalg.qr(torch.eye(2), mode="half"), "half"),
        (lambda: linalg.inv(torch.zeros(2, 2, dtype=torch.int64)), "Long|floating"),
    ],
)
def test_errors(call: object, text: str) -> None:
    with pytest.raises(RuntimeError, match=text):
        call()


def test_dtypes_of_inner_products_and_powers():
    line = torch.tensor([1.0, 2.0])
    with pytest.raises(RuntimeError, match="vecdot: Expected a floating point or complex.* Long"):
        torch.linalg.vecdot(line.long(), line.long())
    with pytest.raises(RuntimeError, match="x of type Float and y of type Double"):
        torch.linalg.vecdot(line, line.double())
    with pytest.raises(RuntimeError, match="vander supports .* but got Bool"):
        torch.linalg.vander(line > 1)


def test_an_inverse_that_is_none_is_an_error_of_linalg():
    with pytest.raises(torch.linalg.LinAlgError, match="singular"):
        torch.linalg.tensorinv(torch.zeros(2, 2), ind=1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_cross_products(dtype, dim):
    sizes = [4, 5, 6]
    sizes[dim] = 3
    a = (matrix(60, 2).view(-1)[: sizes[0] * sizes[1] * sizes[2]] * 5).view(sizes).to(dtype)
    b = a.flip(0, 1, 2)
    expected = numpy.cross(a.numpy(), b.numpy(), axis=dim)
    made = torch.linalg.cross(a, b, dim=dim)
    assert made.dtype == dtype
    numpy.testing.assert_allclose(made.numpy(), expected, rtol=1e-5, atol=1e-5)
    one = b.select((dim + 1) % 3, 0).unsqueeze((dim + 1) % 3)
    spread = torch.linalg.cross(a, one, dim=dim)
    assert torch.equal(spread, torch.linalg.cross(a, one.expand(sizes).contiguous(), dim=dim))


def test_gradients_of_cross_products():
    a = matrix(2, 3).requires_grad_()
    b = matrix(1, 3).requires_grad_()
    assert torch.autograd.gradcheck(torch.linalg.cross, (a, b))
    assert torch.autograd.gradgradcheck(torch.linalg.cross, (a, b))


@pytest.mark.parametrize("n", [3, 8, 9, 20, 40])
def test_pivots_are_the_first_of_the_largest_and_numbers_that_are_none(n):
    a = torch.ones(n, n, dtype=torch.float64)
    a[n // 2, 0] = -1.0  # as large as the others, and later
    assert torch.linalg.lu_factor_ex(a).pivots[0] == 1
    a[n - 1, 0] = -2.0
    assert torch.linalg.lu_factor_ex(a).pivots[0] == n
    a[1, 0] = float("nan")
    a[2, 0] = float("nan")
    assert torch.linalg.lu_factor_ex(a).pivots[0] == 2


@pytest.mark.parametrize("count", [3, 4, 15, 33])
@pytest.mark.parametrize("n", [5, 31, 32, 33, 100])
def test_triangular_systems_of_every_layout(n, count):
    torch.manual_seed(n)
    for dtype in (torch.float32, torch.float64, torch.complex128):
        a = torch.randn(n, n, dtype=dtype) / n + torch.eye(n, dtype=dtype) * 2
        b = torch.randn(n, count, dtype=dtype)
        for upper in (False, True):
            triangle = a.triu() if upper else a.tril()
            for right in (b, b.t().contiguous().t(), b.flip(0)):
                x = torch.linalg.solve_triangular(triangle, right, upper=upper)
                assert torch.allclose(triangle @ x, right, atol=1e-5)
            x = torch.linalg.solve_triangular(triangle, b.t(), upper=upper, left=False)
            assert torch.allclose(x @ triangle, b.t(), atol=1e-5)


@pytest.mark.parametrize("shape", [(6, 6), (40, 7), (7, 40), (3, 9, 5), (2, 3, 5, 9)])
def test_least_squares_of_any_rank(shape):
    torch.manual_seed(0)
    b = torch.randn(*shape[:-1], 3, dtype=torch.float64)
    a = torch.randn(*shape, dtype=torch.float64)
    lost = a.clone()
    lost[..., 1] = 2 * lost[..., 0]
    lost[..., 1, :] = 0.5 * lost[..., 0, :]
    scales = torch.logspace(0, -17, shape[-1], dtype=torch.float64)
    least = min(shape[-2:])
    for x, rank in ((a, least), (a * 1e-200, least), (lost, None), (a * scales, None)):
        made = linalg.lstsq(x, b)
        known = linalg.matrix_rank(x)
        assert torch.equal(made.rank, known) and (rank is None or (known == rank).all())
        assert torch.allclose(made.solution, linalg.pinv(x) @ b, rtol=1e-6)
    assert linalg.lstsq(a, b, rcond=0.9).rank.max() < least
