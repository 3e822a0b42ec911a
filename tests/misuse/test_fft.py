"""Transforms asked for what they cannot do: one mistake a test, with its text."""

import pytest
import rushlight as torch
from rushlight import fft

X = torch.ones(4, 6)
C = torch.complex(X, X)


@pytest.mark.parametrize("function", [fft.rfft, fft.ihfft], ids=["rfft", "ihfft"])
def test_real_transform_of_complex_numbers(function):
    with pytest.raises(RuntimeError, match="expects a real input tensor, but got ComplexFloat"):
        function(C)


def test_real_transform_of_complex_numbers_over_dimensions():
    with pytest.raises(RuntimeError, match="rfftn expects a real-valued input tensor, but got Com"):
        fft.rfft2(C)


@pytest.mark.parametrize("n", [0, -1])
def test_no_points(n):
    with pytest.raises(RuntimeError, match=rf"Invalid number of data points \({n}\) specified"):
        fft.fft(X, n=n)


def test_no_points_by_default():
    with pytest.raises(RuntimeError, match=r"Invalid number of data points \(0\) specified"):
        fft.irfft(C[:, :1])


def test_unknown_norm():
    with pytest.raises(RuntimeError, match='Invalid normalization mode: "bad"'):
        fft.fft(X, norm="bad")


def test_half_precision():
    with pytest.raises(RuntimeError, match="Unsupported dtype Half"):
        fft.rfft(X.half())


def test_no_dimension():
    with pytest.raises(IndexError, match="Dimension specified as -1 but tensor has no dimensions"):
        fft.fft(torch.tensor(1.0))


def test_dimension_out_of_range():
    with pytest.raises(IndexError, match=r"Dimension out of range.*\[-2, 1\], but got 2"):
        fft.fftn(X, dim=(0, 2))


def test_dimension_twice():
    with pytest.raises(RuntimeError, match="FFT dims must be unique"):
        fft.fftn(X, dim=(0, -2))


def test_sizes_and_dimensions_of_other_lengths():
    with pytest.raises(RuntimeError, match="dim and shape arguments must have the same length"):
        fft.fftn(X, s=(3, 3), dim=(0,))


def test_more_sizes_than_dimensions():
    with pytest.raises(RuntimeError, match="shape with 3 values but input tensor only has 2"):
        fft.fftn(X, s=(3, 3, 3))


@pytest.mark.parametrize("name", ["rfftn", "irfftn", "hfftn", "ihfftn"])
def test_no_dimensions(name):
    with pytest.raises(RuntimeError, match=f"{name} must transform at least one axis"):
        getattr(fft, name)(X, dim=())


def test_real_out_of_complex_result():
    with pytest.raises(RuntimeError, match="fft expects a complex output tensor, but got Float"):
        fft.fft(X, out=torch.empty(4, 6))


def test_complex_out_of_real_result():
    with pytest.raises(RuntimeError, match="irfft expects a floating point output tensor, but got"):
        fft.irfft(C, out=torch.empty(0, dtype=torch.complex64))


def test_integer_frequencies():
    with pytest.raises(RuntimeError, match="fftfreq requires a floating point or complex dtype"):
        fft.fftfreq(4, dtype=torch.int64)


def test_kernels_want_their_dtype():
    with pytest.raises(RuntimeError, match="Only supports complex dtypes, but found: Float"):
        torch._fft_c2c(X, [1], 0, True)


def test_kernel_of_wrong_size():
    with pytest.raises(RuntimeError, match="last_dim_size.*got n = 60 and 6 elements"):
        torch._fft_c2r(C, [1], 0, 60)


SIGNAL = torch.ones(100)
WINDOW = torch.hann_window(16)
FRAMES = torch.complex(torch.ones(9, 20), torch.ones(9, 20))


def test_stft_wants_to_know_the_form():
    with pytest.raises(RuntimeError, match="requires the return_complex parameter be given"):
        torch.stft(SIGNAL, 16, window=WINDOW)


def test_stft_without_points():
    with pytest.raises(RuntimeError, match="expected 0 < n_fft < 100, but got n_fft=400"):
        torch.stft(SIGNAL, 400, window=WINDOW, center=False, return_complex=True)


def test_stft_without_hops():
    with pytest.raises(RuntimeError, match="expected hop_length > 0, but got hop_length=0"):
        torch.stft(SIGNAL, 16, 0, window=WINDOW, return_complex=True)


def test_stft_window_longer_than_points():
    with pytest.raises(RuntimeError, match="0 < win_length <= n_fft, but got win_length=20"):
        torch.stft(SIGNAL, 16, 4, 20, WINDOW, return_complex=True)


def test_stft_window_of_other_size():
    with pytest.raises(RuntimeError, match=r"size equal to win_length=12, but got.*\[16\]"):
        torch.stft(SIGNAL, 16, 4, 12, WINDOW, return_complex=True)


def test_stft_of_three_dimensions():
    with pytest.raises(RuntimeError, match="expected a 1D or 2D tensor"):
        torch.stft(torch.ones(2, 3, 100), 16, window=WINDOW, return_complex=True)


def test_stft_of_integers():
    with pytest.raises(RuntimeError, match="expected a tensor of floating point or complex"):
        torch.stft(SIGNAL.long(), 16, window=WINDOW, return_complex=True)


def test_stft_onesided_of_complex_numbers():
    with pytest.raises(RuntimeError, match="Cannot have onesided output if window or input is com"):
        torch.stft(torch.complex(SIGNAL, SIGNAL), 16, window=WINDOW, onesided=True)


def test_stft_unknown_padding():
    with pytest.raises(NotImplementedError, match="Unrecognised padding mode bad"):
        torch.stft(SIGNAL, 16, window=WINDOW, pad_mode="bad", return_complex=True)


def test_stft_aligned_though_centered():
    with pytest.raises(RuntimeError, match="align_to_window should only be set when center"):
        torch.stft(SIGNAL, 16, window=WINDOW, return_complex=True, align_to_window=True)


def test_istft_of_real_numbers():
    with pytest.raises(RuntimeError, match="istft requires a complex-valued input tensor"):
        torch.istft(torch.ones(9, 20), 16, window=WINDOW)


def test_istft_of_other_frequencies():
    with pytest.raises(RuntimeError, match=r"to match n_fft / 2 \+ 1 when onesided=True.* got 9"):
        torch.istft(FRAMES, 18, window=WINDOW)


def test_istft_hop_longer_than_window():
    with pytest.raises(RuntimeError, match="expected 0 < hop_length <= win_length"):
        torch.istft(FRAMES, 16, 20, window=WINDOW)


def test_istft_window_of_other_size():
    with pytest.raises(RuntimeError, match="Invalid window shape"):
        torch.istft(FRAMES, 16, 4, 12, WINDOW)


def test_istft_of_nothing():
    with pytest.raises(RuntimeError, match="input tensor cannot be empty"):
        torch.istft(FRAMES[:, :0], 16, window=WINDOW)


def test_istft_windows_that_vanish():
    with pytest.raises(RuntimeError, match="window overlap add min"):
        torch.istft(FRAMES, 16, 16, window=torch.zeros(16))


def test_istft_onesided_complex_result():
    with pytest.raises(RuntimeError, match="Cannot have onesided output if window or input is com"):
        torch.istft(FRAMES, 16, window=WINDOW, return_complex=True)
