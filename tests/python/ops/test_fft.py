"""Discrete Fourier transforms, against NumPy in float64."""

import numpy
import pytest
import rushlight as torch
from rushlight import fft

# Powers of two, products of radices, primes by sums and by convolution, multiples of those.
SIZES = [
    1,
    2,
    3,
    4,
    5,
    8,
    13,
    16,
    22,
    31,
    32,
    37,
    60,
    97,
    100,
    128,
    143,
    202,
    257,
    1000,
    1024,
    2310,
]
LONG = [4096, 4099, 8190, 20000, 65536]


def real(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, dtype=torch.float64, generator=generator).to(dtype)


def pairs(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.view_as_complex(real(*shape, 2, dtype=dtype))


def close(actual: torch.Tensor, expected: numpy.ndarray) -> None:
    """Few units in the last place of the root mean square, times log2 of the size."""
    found = actual.numpy()
    assert found.shape == expected.shape
    single = actual.dtype in (torch.float32, torch.complex64)
    unit = numpy.finfo(numpy.float32 if single else numpy.float64).eps
    scale = numpy.sqrt(numpy.mean(numpy.abs(expected) ** 2))
    error = numpy.abs(found.astype(complex) - expected).max() / (unit * scale)
    assert error < 8 + 2 * numpy.log2(expected.size), error


def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.dtype == b.dtype and numpy.array_equal(a.numpy(), b.numpy())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("n", SIZES)
def test_lines(n: int, dtype: torch.dtype) -> None:
    for count in (1, 3, 19):
        c = pairs(count, n, dtype=dtype)
        x = real(count, n, dtype=dtype)
        half = pairs(count, n // 2 + 1, dtype=dtype)
        c64, x64, half64 = (a.numpy().astype(complex) for a in (c, x, half))
        for transposed in (False, True):
            dim = 0 if transposed else 1
            if transposed:
                c, x, half = (a.t().contiguous() for a in (c, x, half))
            turn = (lambda a: a.t()) if transposed else (lambda a: a)
            close(turn(fft.fft(c, dim=dim)), numpy.fft.fft(c64))
            close(turn(fft.ifft(c, dim=dim)), numpy.fft.ifft(c64))
            close(turn(fft.fft(x, dim=dim)), numpy.fft.fft(x64))
            close(turn(fft.ifft(x, dim=dim)), numpy.fft.ifft(x64))
            close(turn(fft.rfft(x, dim=dim)), numpy.fft.rfft(x64.real))
            close(turn(fft.ihfft(x, dim=dim)), numpy.fft.ihfft(x64.real))
            close(turn(fft.irfft(half, n=n, dim=dim)), numpy.fft.irfft(half64, n=n))
            close(turn(fft.hfft(half, n=n, dim=dim)), numpy.fft.hfft(half64, n=n))


@pytest.mark.parametrize("n", LONG)
def test_long_lines(n: int) -> None:
    c, x = pairs(2, n), real(2, n)
    half = pairs(2, n // 2 + 1)
    close(fft.fft(c), numpy.fft.fft(c.numpy()))
    close(fft.fft(x), numpy.fft.fft(x.numpy()))
    close(fft.rfft(x), numpy.fft.rfft(x.numpy()))
    close(fft.irfft(half, n=n), numpy.fft.irfft(half.numpy(), n=n))
    close(fft.fft(c.t(), dim=0).t(), numpy.fft.fft(c.numpy()))


@pytest.mark.parametrize("n", [2, 8, 9, 4096])
def test_lines_of_one_element_seen_many_times(n: int) -> None:
    line = torch.tensor([[0.5], [2.0]]).expand(2, n)
    for transform in (torch.fft.fft, torch.fft.rfft, torch.fft.ihfft):
        assert torch.allclose(transform(line), transform(line.contiguous()), atol=1e-4)
    half = torch.randn(2, n // 2 + 1, dtype=torch.complex64, requires_grad=True)
    torch.fft.irfft(half, n=n).sum().backward()  # its gradient is such lines
    wanted = torch.zeros_like(half)
    wanted[:, 0] = 1
    assert torch.allclose(half.grad, wanted, atol=1e-4)


def test_one_element_in_a_line_alone() -> None:
    """A line's result does not depend on the lines beside it."""
    x = real(40, 96)
    x[7] = 1e200
    x[8] = float("nan")
    rows = [i for i in range(40) if i not in (7, 8)]
    assert same(fft.rfft(x)[rows], fft.rfft(real(40, 96))[rows])


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
def test_norms(norm: str | None) -> None:
    c, x = pairs(4, 6), real(4, 6)
    close(fft.fft(c, norm=norm), numpy.fft.fft(c.numpy(), norm=norm))
    close(fft.ifft(c, norm=norm), numpy.fft.ifft(c.numpy(), norm=norm))
    close(fft.rfft(x, norm=norm), numpy.fft.rfft(x.numpy(), norm=norm))
    close(fft.irfft(c, norm=norm), numpy.fft.irfft(c.numpy(), norm=norm))
    close(fft.hfft(c, norm=norm), numpy.fft.hfft(c.numpy(), norm=norm))
    close(fft.ihfft(x, norm=norm), numpy.fft.ihfft(x.numpy(), norm=norm))
    close(fft.fftn(c, norm=norm), numpy.fft.fftn(c.numpy(), norm=norm))
    close(fft.irfftn(c, norm=norm), numpy.fft.irfftn(c.numpy(), norm=norm))
    close(fft.ihfftn(fft.hfftn(c, norm=norm), norm=norm)[:, 1:3], c.numpy()[:, 1:3])


@pytest.mark.parametrize("n", [1, 3, 6, 9])
def test_padding_and_cutting(n: int) -> None:
    c, x = pairs(4, 6), real(4, 6)
    close(fft.fft(c, n), numpy.fft.fft(c.numpy(), n))
    close(fft.ifft(c, n, 0), numpy.fft.ifft(c.numpy(), n, 0))
    close(fft.rfft(x, n, 0), numpy.fft.rfft(x.numpy(), n, 0))
    close(fft.irfft(c, n, 0), numpy.fft.irfft(c.numpy(), n, 0))
    close(fft.fft2(c, (n, 5)), numpy.fft.fft2(c.numpy(), (n, 5)))
    close(fft.irfft2(c, (n, 5)), numpy.fft.irfft2(c.numpy(), (n, 5)))


@pytest.mark.parametrize("dim", [(0,), (1, 2), (2, 0), (2, 1, 0), None])
def test_many_dimensions(dim: tuple[int, ...] | None) -> None:
    c, x = pairs(3, 8, 5), real(3, 8, 5)
    axes = tuple(range(3)) if dim is None else dim
    for turned in (False, True):
        if turned:  # the same values elsewhere in memory
            c = c.permute(2, 0, 1).contiguous().permute(1, 2, 0)
            x = x.permute(1, 2, 0).contiguous().permute(2, 0, 1)
        close(fft.fftn(c, dim=dim), numpy.fft.fftn(c.numpy(), axes=axes))
        close(fft.ifftn(c, dim=dim), numpy.fft.ifftn(c.numpy(), axes=axes))
        close(fft.fftn(x, dim=dim), numpy.fft.fftn(x.numpy(), axes=axes))
        close(fft.rfftn(x, dim=dim), numpy.fft.rfftn(x.numpy(), axes=axes))
        close(fft.irfftn(c, dim=dim), numpy.fft.irfftn(c.numpy(), axes=axes))
        close(fft.hfftn(c, dim=dim), numpy.fft.irfftn(c.numpy().conj(), axes=axes, norm="forward"))
        close(fft.ihfftn(x, dim=dim), numpy.fft.rfftn(x.numpy(), axes=axes, norm="forward").conj())


def test_two_dimensions() -> None:
    c, x = pairs(2, 8, 6), real(2, 8, 6)
    close(fft.fft2(c), numpy.fft.fft2(c.numpy()))
    close(fft.ifft2(c), numpy.fft.ifft2(c.numpy()))
    close(fft.rfft2(x), numpy.fft.rfft2(x.numpy()))
    close(fft.irfft2(c), numpy.fft.irfft2(c.numpy()))
    assert same(fft.hfft2(c), fft.hfftn(c, dim=(-2, -1)))
    assert same(fft.ihfft2(x), fft.ihfftn(x, dim=(-2, -1)))


def test_results_end_with_what_was_transformed() -> None:
    c = pairs(2, 3, 4)
    assert fft.fft(c, dim=1).stride() == (12, 1, 3)
    assert fft.fftn(c.permute(2, 0, 1)).stride() == (1, 12, 4)
    assert fft.rfftn(c.real, dim=(2, 0)).stride() == (1, 8, 2)


def test_integers_become_floats() -> None:
    x = torch.arange(6)
    assert fft.fft(x).dtype == torch.complex64
    close(fft.rfft(x), numpy.fft.rfft(x.numpy()))
    close(fft.irfft(x), numpy.fft.irfft(x.numpy()))
    close(fft.fft(x > 2), numpy.fft.fft((x > 2).numpy()))
    assert fft.fftn(torch.tensor(3)).item() == 3


def test_out() -> None:
    x = real(4, 6, dtype=torch.float32)
    out = torch.empty(0, dtype=torch.complex64)
    assert fft.fft(x, out=out) is out
    assert same(out, fft.fft(x))
    wide = torch.empty(4, 4, dtype=torch.complex128)
    assert same(fft.rfft(x, out=wide).to(torch.complex64), fft.rfft(x))
    numbers = torch.empty(10, 4, dtype=torch.float32).t()
    fft.irfft(fft.fft(x), out=numbers)
    assert same(numbers, fft.irfft(fft.fft(x)))


def test_bits_do_not_depend_on_threads() -> None:
    work = [pairs(50, 1000), pairs(1, 1 << 16), pairs(3, 4099), pairs(64, 4000).t()]
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = [fft.fft(c, dim=0 if c.stride(0) == 1 else 1) for c in work]
        torch.set_num_threads(5)
        shared = [fft.fft(c, dim=0 if c.stride(0) == 1 else 1) for c in work]
    finally:
        torch.set_num_threads(before)
    assert all(same(a, b) for a, b in zip(alone, shared, strict=True))


def test_frequencies() -> None:
    for n in (1, 4, 5):
        both = fft.fftfreq(n, 0.5, dtype=torch.float64)
        numpy.testing.assert_allclose(both.numpy(), numpy.fft.fftfreq(n, 0.5))
        half = fft.rfftfreq(n, 0.5, dtype=torch.float64)
        numpy.testing.assert_allclose(half.numpy(), numpy.fft.rfftfreq(n, 0.5))
    assert fft.fftfreq(4).tolist() == [0, 0.25, -0.5, -0.25]
    assert fft.fftfreq(4, out=torch.empty(4, dtype=torch.float64)).dtype == torch.float64


def test_shifts() -> None:
    x = torch.arange(15).reshape(3, 5)
    for dim in (None, 0, (0, 1)):
        assert fft.fftshift(x, dim).tolist() == numpy.fft.fftshift(x.numpy(), dim).tolist()
        assert fft.ifftshift(x, dim).tolist() == numpy.fft.ifftshift(x.numpy(), dim).tolist()


def parts(function):
    """On pairs of real numbers, for finite differences."""
    return lambda x: torch.view_as_real(function(torch.view_as_complex(x)))


@pytest.mark.parametrize(
    "function",
    [
        parts(lambda c: fft.fft(c, dim=0)),
        parts(lambda c: fft.ifft(c, 5)),
        parts(lambda c: fft.fftn(c, norm="ortho")),
        lambda x: fft.irfft(torch.view_as_complex(x)),
        lambda x: fft.irfft(torch.view_as_complex(x), 5, 0),
        lambda x: fft.hfft(torch.view_as_complex(x), norm="ortho"),
        lambda x: fft.irfftn(torch.view_as_complex(x), dim=(1, 0)),
        lambda x: torch.view_as_real(fft.fft(x[..., 0])),
        lambda x: torch.view_as_real(fft.rfft(x[..., 0])),
        lambda x: torch.view_as_real(fft.rfft(x[..., 0], 5, 0)),
        lambda x: torch.view_as_real(fft.ihfft(x[..., 0])),
        lambda x: torch.view_as_real(fft.rfftn(x, dim=(2, 0), norm="forward")),
    ],
)
def test_gradients(function) -> None:
    x = real(3, 4, 2).requires_grad_()
    assert torch.autograd.gradcheck(function, (x,))
    assert torch.autograd.gradgradcheck(function, (x,))


def test_node_names() -> None:
    x = real(6).requires_grad_()
    spectrum = fft.rfft(x)
    assert type(spectrum.grad_fn).__name__ == "FftR2CBackward0"
    assert type(fft.irfft(spectrum).grad_fn).__name__ == "FftC2RBackward0"
    assert type(fft.fft(spectrum).grad_fn).__name__ == "FftC2CBackward0"


def test_meta() -> None:
    x = torch.empty(4, 6, device="meta")
    assert fft.rfft(x, dim=0).shape == (3, 6)
    assert fft.rfft(x, dim=0).stride() == (1, 3)
    assert fft.irfftn(fft.fft2(x)).shape == (4, 10)
    assert fft.fft(x).dtype == torch.complex64


def test_compiled() -> None:
    def smooth(x: torch.Tensor) -> torch.Tensor:
        spectrum = torch.view_as_real(fft.rfft(x * 2))
        return fft.irfft(torch.view_as_complex(spectrum * 0.5), n=x.shape[-1]) + 1

    x = real(3, 10)
    assert torch.equal(torch.compile(smooth)(x), smooth(x))


def test_compiled_transforms_have_eager_s_bits():
    def function(x):
        z = torch.fft.rfft(x.sin(), norm="ortho")
        return torch.fft.irfft(z, n=x.shape[-1]).tanh() + torch.fft.fft(x).real

    compiled = torch.compile(function)
    seen = []
    for call in (function, compiled, compiled):
        x = torch.linspace(-1, 1, 60).reshape(4, 15).requires_grad_()
        y = call(x)
        seen.append([y, torch.autograd.grad(y.sum(), x)[0]])
    for other in seen[1:]:
        assert all(torch.equal(a, b) for a, b in zip(seen[0], other))
