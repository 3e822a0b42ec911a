"""Some eigenvalues by iteration."""

from __future__ import annotations

import pytest
import rushlight as torch


def matrix(m: int = 12) -> torch.Tensor:
    made = torch.randn(m, m, dtype=torch.float64)
    return made @ made.mT


@pytest.mark.parametrize("largest", [True, False])
def test_extreme_values_and_their_vectors(largest):
    A = matrix(40)
    E, X = torch.lobpcg(A, k=3, largest=largest, tol=1e-10)
    wanted = torch.linalg.eigvalsh(A)
    torch.testing.assert_close(E, wanted.flip(0)[:3] if largest else wanted[:3])
    torch.testing.assert_close(A @ X, X * E, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(X.mT @ X, torch.eye(3, dtype=torch.float64))


def test_of_two_matrices():
    A, B = matrix(), torch.diag(torch.arange(1.0, 13, dtype=torch.float64))
    E, X = torch.lobpcg(A, k=2, B=B, niter=-1, iK=torch.linalg.inv(A), largest=False)
    root = B.sqrt().inverse()
    torch.testing.assert_close(E, torch.linalg.eigvalsh(root @ A @ root)[:2])
    torch.testing.assert_close(X.mT @ B @ X, torch.eye(2, dtype=torch.float64))


def test_batches_and_float32():
    A = matrix().float()
    E, X = torch.lobpcg(torch.stack([A, 2 * A]))
    assert E.shape == (2, 1) and X.shape == (2, 12, 1) and E.dtype is torch.float32
    torch.testing.assert_close(E[1], 2 * E[0], rtol=1e-3, atol=0)


def test_gradients_of_values_and_vectors():
    A = matrix().requires_grad_()

    def run(a):
        a = (a + a.mT) / 2
        E, X = torch.lobpcg(a, k=2, tol=1e-14, X=torch.eye(12, 2, dtype=torch.float64))
        return E, X**2

    torch.autograd.gradcheck(run, (A,), atol=1e-4)


def test_what_is_told_of_steps():
    seen = []

    def tracker(worker):
        seen.append(worker.ivars["istep"])
        worker.bvars["force_stop"] = len(seen) == 2

    torch.lobpcg(matrix(), tracker=tracker, tol=1e-12)
    assert seen == [1, 2]


@pytest.mark.parametrize(
    ("error", "text", "call"),
    [
        (ValueError, r"rows \(=12\).*eigenpairs \(=5\)", lambda: torch.lobpcg(matrix(), k=5)),
        (ValueError, "1 <= k <= n, got k=0", lambda: torch.lobpcg(matrix(), k=0)),
        (ValueError, "'basic' or 'ortho', got 'x'", lambda: torch.lobpcg(matrix(), method="x")),
        (AssertionError, "A must be square", lambda: torch.lobpcg(torch.ones(3, 4))),
        (RuntimeError, "got torch.int64", lambda: torch.lobpcg(torch.eye(9, dtype=torch.int64))),
        (
            ValueError,
            "does not support backward with B != I",
            lambda: torch.lobpcg(matrix().requires_grad_(), B=torch.eye(12, dtype=torch.float64)),
        ),
    ],
)
def test_misuse(error, text, call):
    with pytest.raises(error, match=text):
        call()
