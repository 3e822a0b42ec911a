"""rushlight.signal.windows against their formulas, computed by Python's floats."""

import math

import pytest
import rushlight as torch

W = torch.signal.windows
FORMULAS = {
    "bartlett": lambda n, m: 1 - abs(2 * n / (m - 1) - 1),
    "blackman": lambda n, m: (
        0.42
        - 0.5 * math.cos(2 * math.pi * n / (m - 1))
        + 0.08 * math.cos(4 * math.pi * n / (m - 1))
    ),
    "cosine": lambda n, m: math.sin(math.pi * (n + 0.5) / m),
    "exponential": lambda n, m: math.exp(-abs(n - (m - 1) / 2)),
    "gaussian": lambda n, m: math.exp(-((n - (m - 1) / 2) ** 2) / 2),
    "hamming": lambda n, m: 0.54 - 0.46 * math.cos(2 * math.pi * n / (m - 1)),
    "hann": lambda n, m: 0.5 - 0.5 * math.cos(2 * math.pi * n / (m - 1)),
    "nuttall": lambda n, m: sum(
        (-1) ** k * a * math.cos(2 * math.pi * k * n / (m - 1))
        for k, a in enumerate((0.3635819, 0.4891775, 0.1365995, 0.0106411))
    ),
}


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("size", [1, 2, 5, 8])
def test_windows_follow_their_formulas(name: str, size: int) -> None:
    make = getattr(W, name)
    symmetric = [FORMULAS[name](n, size) for n in range(size)] if size > 1 else [1.0]
    assert make(size, dtype=torch.float64).tolist() == pytest.approx(symmetric, abs=1e-12)
    periodic = [FORMULAS[name](n, size + 1) for n in range(size)] if size > 1 else [1.0]
    assert make(size, sym=False, dtype=torch.float64).tolist() == pytest.approx(periodic, abs=1e-12)


def test_kaiser_is_symmetric_and_flat_at_beta_zero() -> None:
    assert W.kaiser(4, beta=0.0).tolist() == [1.0] * 4
    window = W.kaiser(5, dtype=torch.float64)
    expected = torch.i0(torch.tensor(12 * math.sqrt(0.75), dtype=torch.float64))
    peak = torch.i0(torch.tensor(12.0, dtype=torch.float64))
    assert window[1].item() == pytest.approx((expected / peak).item())
    assert window.tolist() == pytest.approx(window.flip(0).tolist())


def test_a_window_carries_its_options() -> None:
    assert W.hann(0, requires_grad=True).requires_grad
    assert W.exponential(3, center=0, sym=False, tau=2).tolist() == pytest.approx(
        [1, math.exp(-0.5), math.exp(-1)]
    )
    assert W.general_hamming(3, alpha=0.4).tolist() == pytest.approx([-0.2, 1, -0.2])


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (
            lambda: W.bartlett(-1),
            ValueError,
            "bartlett requires non-negative window length, got M=-1",
        ),
        (lambda: W.hann(3, dtype=torch.int64), ValueError, "expects float32 or float64 dtypes"),
        (lambda: W.exponential(3, tau=0), ValueError, "Tau must be positive, got: 0 instead."),
        (lambda: W.exponential(3, center=1), ValueError, "Center must be None for symmetric"),
        (lambda: W.gaussian(3, std=-1), ValueError, "Standard deviation must be positive"),
        (lambda: W.kaiser(3, beta=-1), ValueError, "beta must be non-negative, got: -1"),
        (lambda: W.general_cosine(3, a=[]), ValueError, "Coefficients cannot be empty"),
        (lambda: W.general_cosine(3, a=3), TypeError, "Coefficients must be a list/tuple"),
    ],
)
def test_mistakes(call, kind, text) -> None:
    with pytest.raises(kind, match=text):
        call()
