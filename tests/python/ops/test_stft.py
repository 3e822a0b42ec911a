"""Transforms of windows of a signal, against a plain loop in NumPy."""

import numpy
import pytest
import rushlight as torch

N, HOP = 16, 4


def signal(*shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


def window(length: int = N) -> torch.Tensor:
    return torch.hann_window(length, dtype=torch.float64)


def plain(x: numpy.ndarray, factors: numpy.ndarray, transform=numpy.fft.rfft) -> numpy.ndarray:
    """(F, T) of one signal that is padded already."""
    starts = range(0, len(x) - N + 1, HOP)
    return numpy.stack([transform(x[s : s + N] * factors) for s in starts], 1)


@pytest.mark.parametrize("mode", ["reflect", "constant", "replicate", "circular"])
def test_center_pads(mode: str) -> None:
    x = signal(50)
    made = torch.stft(x, N, HOP, window=window(), pad_mode=mode, return_complex=True)
    numpy_mode = {"replicate": "edge", "circular": "wrap"}.get(mode, mode)
    expected = plain(numpy.pad(x.numpy(), N // 2, numpy_mode), window().numpy())
    numpy.testing.assert_allclose(made.numpy(), expected, atol=1e-12)


def test_without_center() -> None:
    x = signal(3, 50)
    made = torch.stft(x, N, HOP, window=window(), center=False, return_complex=True)
    for i in range(3):
        expected = plain(x[i].numpy(), window().numpy())
        numpy.testing.assert_allclose(made[i].numpy(), expected, atol=1e-12)
    method = x.stft(N, HOP, window=window(), center=False, return_complex=True)
    assert numpy.array_equal(made.numpy(), method.numpy())


def test_short_window_lies_in_the_middle() -> None:
    x = signal(50)
    factors = numpy.zeros(N)
    factors[3:13] = window(10).numpy()
    made = torch.stft(x, N, HOP, 10, window(10), center=False, return_complex=True)
    numpy.testing.assert_allclose(made.numpy(), plain(x.numpy(), factors), atol=1e-12)
    aligned = torch.stft(
        x, N, HOP, 10, window(10), center=False, return_complex=True, align_to_window=True
    )
    padded = numpy.pad(x.numpy(), 3)
    numpy.testing.assert_allclose(aligned.numpy(), plain(padded, factors), atol=1e-12)


def test_forms_of_the_result() -> None:
    x = signal(50)
    ones = torch.ones(N, dtype=torch.float64)
    made = torch.stft(x, N, HOP, window=ones, return_complex=True)
    assert made.shape == (9, 13)
    assert torch.equal(
        torch.stft(x, N, HOP, window=ones, return_complex=False), torch.view_as_real(made)
    )
    both = torch.stft(x, N, HOP, window=ones, onesided=False, return_complex=True)
    assert both.shape == (16, 13)
    numpy.testing.assert_allclose(both[:9].numpy(), made.numpy(), atol=1e-12)
    root = torch.stft(x, N, HOP, window=ones, normalized=True, return_complex=True)
    numpy.testing.assert_allclose(root.numpy() * 4, made.numpy(), atol=1e-12)


def test_complex_signals_and_windows() -> None:
    x = torch.view_as_complex(signal(50, 2))
    made = torch.stft(x, N, HOP, window=window(), center=False)
    expected = plain(x.numpy(), window().numpy(), numpy.fft.fft)
    numpy.testing.assert_allclose(made.numpy(), expected, atol=1e-12)
    turning = torch.complex(window(), window() / 2)
    made = torch.stft(x, N, HOP, window=turning, center=False)
    expected = plain(x.numpy(), turning.numpy(), numpy.fft.fft)
    numpy.testing.assert_allclose(made.numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("shape", [(52,), (3, 52)])
def test_back(shape: tuple[int, ...], normalized: bool) -> None:
    x = signal(*shape)
    for onesided in (True, False):
        made = torch.stft(
            x, N, HOP, window=window(), normalized=normalized, onesided=onesided,
            return_complex=True,
        )  # fmt: skip
        back = torch.istft(made, N, HOP, window=window(), normalized=normalized, onesided=onesided)
        numpy.testing.assert_allclose(back.numpy(), x.numpy(), atol=1e-12)
    back = made.istft(N, HOP, window=window(), normalized=normalized, length=40)
    numpy.testing.assert_allclose(back.numpy(), x[..., :40].numpy(), atol=1e-12)


def test_real_back_reads_the_first_half() -> None:
    made = torch.stft(signal(52), N, HOP, window=window(), onesided=False, return_complex=True)
    expected = torch.istft(made, N, HOP, window=window())
    torch.view_as_real(made)[N // 2 + 1 :] = 7
    assert torch.equal(torch.istft(made, N, HOP, window=window()), expected)


def test_complex_back() -> None:
    x = torch.view_as_complex(signal(52, 2))
    made = torch.stft(x, N, HOP, window=window())
    back = torch.istft(made, N, HOP, window=window(), return_complex=True)
    numpy.testing.assert_allclose(back.numpy(), x.numpy(), atol=1e-12)


def test_longer_than_there_is() -> None:
    made = torch.stft(signal(52), N, HOP, window=window(), return_complex=True)
    with pytest.warns(UserWarning, match="shorter than the length parameter"):
        back = torch.istft(made, N, HOP, window=window(), length=70)
    assert back.shape == (70,)
    assert back[60:].abs().max() == 0


def test_no_window() -> None:
    x = signal(52)
    with pytest.warns(UserWarning, match="A window was not provided"):
        made = torch.stft(x, N, HOP, return_complex=True)
    ones = torch.ones(N, dtype=torch.float64)
    given = torch.stft(x, N, HOP, window=ones, return_complex=True)
    assert numpy.array_equal(made.numpy(), given.numpy())


def test_gradients() -> None:
    x = signal(30).requires_grad_()

    def there(x: torch.Tensor) -> torch.Tensor:
        return torch.stft(x, N, HOP, window=window(), return_complex=False)

    def back(x: torch.Tensor) -> torch.Tensor:
        pairs = torch.nn.functional.pad(x, (0, 6)).reshape(9, 2, 2)
        made = torch.view_as_complex(pairs)
        return torch.istft(made, N, HOP, window=torch.ones(N, dtype=torch.float64))

    for function in (there, back):
        assert torch.autograd.gradcheck(function, (x,))
        assert torch.autograd.gradgradcheck(function, (x,))
