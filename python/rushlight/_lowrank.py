"""Singular values of large matrices of low rank, by random projections (Halko et al., 2009)."""

from __future__ import annotations

from rushlight import _C
from rushlight._C import Tensor

__all__ = ["pca_lowrank", "svd_lowrank"]

_table = _C._VariableFunctions


def _basis(matrix: Tensor, q: int, niter: int, mean: Tensor | None) -> Tensor:
    """Q, (..., m, q), whose columns nearly span those of `matrix - mean`."""

    def product(other: Tensor, transposed: bool) -> Tensor:
        of_matrix = matrix.mH if transposed else matrix
        made = of_matrix @ other
        if mean is None:
            return made
        return made - (mean.mH if transposed else mean) @ other

    start = _table.randn(matrix.shape[-1], q, dtype=matrix.dtype, device=matrix.device)
    found = _C._linalg.qr(product(start, False))[0]
    for _ in range(niter):
        found = _C._linalg.qr(product(found, True))[0]
        found = _C._linalg.qr(product(found, False))[0]
    return found


def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """U (..., m, q), S (..., q) and V (..., n, q) with A - M close to U diag(S) V^T."""
    given = (A,) if M is None else (A, M)
    if _C._has_torch_function(given):
        options = {"q": q, "niter": niter, "M": M}
        return _C._handle_torch_function(svd_lowrank, given, (A,), options)
    matrix, mean = A, None if M is None else M.broadcast_to(A.size())
    wide = matrix.shape[-2] < matrix.shape[-1]
    if wide:
        matrix, mean = matrix.mH, None if mean is None else mean.mH
    basis = _basis(matrix, 6 if q is None else q, 2 if niter is None else niter, mean)
    inner = basis.mH @ matrix
    if mean is not None:
        inner = inner - basis.mH @ mean
    u, s, vh = _C._linalg.svd(inner, False)
    u, v = basis @ u, vh.mH
    return (v, s, u) if wide else (u, s, v)


def pca_lowrank(
    A: Tensor, q: int | None = None, center: bool = True, niter: int = 2
) -> tuple[Tensor, Tensor, Tensor]:
    """The q principal components of the rows of A (..., m, n): U, S and V as svd_lowrank has."""
    if _C._has_torch_function_unary(A):
        options = {"q": q, "center": center, "niter": niter}
        return _C._handle_torch_function(pca_lowrank, (A,), (A,), options)
    limit = min(A.shape[-2:])
    if q is None:
        q = min(6, limit)
    elif not 0 <= q <= limit:
        raise ValueError(
            f"q(={q}) must be non-negative integer and not greater than min(m, n)={limit}"
        )
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    centred = A - A.mean(dim=(-2,), keepdim=True) if center else A
    return svd_lowrank(centred, q, niter=niter)
