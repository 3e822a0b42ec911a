"""Some eigenvalues and eigenvectors of a large symmetric matrix, which is only ever multiplied.

The locally optimal block preconditioned conjugate gradient method (Knyazev, 2001): each step takes
the best combinations of the present vectors, their preconditioned residuals and the last step.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import rushlight as torch
from rushlight import Tensor

__all__ = ["lobpcg"]


def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Callable | None = None,
    ortho_iparams: dict | None = None,
    ortho_fparams: dict | None = None,
    ortho_bparams: dict | None = None,
) -> tuple[Tensor, Tensor]:
    """The k largest (or smallest) eigenvalues of A x = e B x, (..., k), and vectors, (..., m, k).

    Args:
        A: (..., m, m), symmetric, with m at least 3 k; its gradient is symmetric, too.
        k: how many; None: the columns of X, or 1.
        B: (..., m, m), symmetric and positive; None: the identity. No gradient passes it.
        X: (..., m, n), where to start; None: at random.
        n: how many vectors to iterate with, at least k; None: the columns of X, or k.
        iK: (..., m, m), about the inverse of A, to be applied to residuals.
        niter: how many steps at most; -1: as many as it takes; None: 1000.
        tol: the residuals, relative, that end it; None: the root of the dtype's precision.
        largest: the largest, by value; None: True.
        method: "basic" or "ortho": here the same.
        tracker: called after each step with what it knows, E, X, R and ivars["istep"]; setting
            bvars["force_stop"] ends it.
        ortho_iparams, ortho_fparams, ortho_bparams: make no difference: bases are orthonormal.
    """
    if A.dim() < 2 or A.shape[-1] != A.shape[-2]:
        raise AssertionError(f"A must be square, got shape {A.shape}")
    if not A.is_floating_point():
        raise RuntimeError(f"lobpcg: expected A of a floating-point dtype, got {A.dtype}")
    if method not in (None, "basic", "ortho"):
        raise ValueError(f"lobpcg: expected the method 'basic' or 'ortho', got {method!r}")
    k = k if k is not None else 1 if X is None else X.shape[-1]
    n = max(k, n or 0) if X is None else X.shape[-1]
    if k < 1 or n < k:
        raise ValueError(f"lobpcg: expected 1 <= k <= n, got k={k} and n={n}")
    if A.shape[-1] < 3 * n:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={A.shape[-1]}) is "
            f"smaller than 3 x the number of requested eigenpairs (={n})"
        )
    if B is not None and (A.requires_grad or B.requires_grad) and torch.is_grad_enabled():
        raise ValueError("lobpcg.backward does not support backward with B != I yet.")
    settings = SimpleNamespace(
        k=k,
        steps=1000 if niter is None else niter,
        tolerance=torch.finfo(A.dtype).eps ** 0.5 if tol is None or tol < 0 else tol,
        largest=largest is not False,
        tracker=tracker,
    )
    if X is None:
        X = torch.randn(*A.shape[:-1], n, dtype=A.dtype, device=A.device)
    return _Eigenpairs.apply(A, B, X, iK, settings)


class _Eigenpairs(torch.autograd.Function):
    @staticmethod
    def forward(ctx, A, B, X, iK, settings):
        m = A.shape[-1]
        flat = [t.reshape(-1, *t.shape[-2:]) if t is not None else None for t in (A, B, X, iK)]
        count = flat[0].shape[0]
        pairs = [
            _solve(*(t[i % t.shape[0]] if t is not None else None for t in flat), settings)
            for i in range(count)
        ]
        E = torch.stack([pair[0] for pair in pairs]).reshape(*A.shape[:-2], settings.k)
        V = torch.stack([pair[1] for pair in pairs]).reshape(*A.shape[:-2], m, settings.k)
        ctx.save_for_backward(A, E, V)
        return E, V

    @staticmethod
    def backward(ctx, grad_values, grad_vectors):
        A, E, V = ctx.saved_tensors
        # With a full decomposition of A: dx = (e - A)^+ dA x, de = x dA x.
        values, vectors = torch.linalg.eigh(A)
        gaps = E.unsqueeze(-2) - values.unsqueeze(-1)
        near = torch.finfo(A.dtype).eps ** 0.5 * values.abs().amax(-1)[..., None, None]
        weights = torch.where(gaps.abs() > near, 1 / gaps, torch.zeros_like(gaps))
        moved = vectors @ (weights * (vectors.mT @ grad_vectors)) + V * grad_values.unsqueeze(-2)
        gradient = moved @ V.mT
        return (gradient + gradient.mT) / 2, None, None, None, None


def _basis(S: Tensor, B: Tensor | None) -> Tensor:
    """An orthonormal basis, by B, of what the columns span, where it is clear."""
    S = S / S.norm(dim=0).clamp_min(torch.finfo(S.dtype).tiny)
    values, vectors = torch.linalg.eigh(S.mT @ (S if B is None else B @ S))
    kept = values > values[-1] * torch.finfo(S.dtype).eps * S.shape[1]
    return S @ (vectors[:, kept] / values[kept].sqrt())


def _best(S: Tensor, A: Tensor, n: int, largest: bool) -> tuple[Tensor, Tensor]:
    """The n extreme eigenvalues of A within an orthonormal basis, and their vectors in it."""
    values, vectors = torch.linalg.eigh(S.mT @ (A @ S))
    if largest:
        values, vectors = values.flip(0), vectors.flip(1)
    return values[:n], vectors[:, :n]


def _solve(
    A: Tensor, B: Tensor | None, X: Tensor, iK: Tensor | None, settings: SimpleNamespace
) -> tuple[Tensor, Tensor]:
    n = X.shape[1]
    S = _basis(X, B)
    E, Z = _best(S, A, n, settings.largest)
    X, P = S @ Z, None
    scale_a, scale_b = A.norm(), 1.0 if B is None else B.norm()
    step = 0
    while True:
        BX = X if B is None else B @ X
        R = A @ X - BX * E
        bound = (scale_a + E.abs() * scale_b) * X.norm(dim=0)
        done = int((R.norm(dim=0) <= settings.tolerance * bound)[: settings.k].sum())
        if step > 0 and settings.tracker is not None:
            worker = SimpleNamespace(
                A=A, B=B, E=E, X=X, R=R, iK=iK, method="ortho",
                ivars={"istep": step, "converged_count": done},
                bvars={"force_stop": False}, fvars={}, tvars={},
            )  # fmt: skip
            settings.tracker(worker)
            if worker.bvars["force_stop"]:
                break
        if done == settings.k or step == settings.steps:
            break
        W = R if iK is None else iK @ R
        S = _basis(torch.cat([X, W] if P is None else [X, W, P], 1), B)
        E, Z = _best(S, A, n, settings.largest)
        new = S @ Z
        P = new - X @ (BX.mT @ new)
        X = new
        step += 1
    return E[: settings.k], X[:, : settings.k]
