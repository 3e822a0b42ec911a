"""Arithmetic on complex numbers: values, dtypes, gradients, mistakes."""

import math

import numpy
import pytest
import rushlight as torch

DTYPES = (torch.complex64, torch.complex128)


def numbers(*shape, dtype=torch.complex128, seed=0):
    draw = numpy.random.default_rng(seed)
    made = draw.normal(size=shape) + 1j * draw.normal(size=shape)
    return torch.from_numpy(numpy.asarray(made)).to(dtype)


def close(got, expected, dtype=torch.complex128):
    tolerance = 2e-5 if dtype in (torch.complex64, torch.float32) else 1e-12
    numpy.testing.assert_allclose(got.numpy(), expected, rtol=tolerance, atol=tolerance)


FUNCTIONS = {
    "exp": numpy.exp,
    "exp2": numpy.exp2,
    "expm1": numpy.expm1,
    "log": numpy.log,
    "log2": numpy.log2,
    "log10": numpy.log10,
    "log1p": numpy.log1p,
    "sqrt": numpy.sqrt,
    "sin": numpy.sin,
    "cos": numpy.cos,
    "tan": numpy.tan,
    "asin": numpy.arcsin,
    "acos": numpy.arccos,
    "atan": numpy.arctan,
    "sinh": numpy.sinh,
    "cosh": numpy.cosh,
    "tanh": numpy.tanh,
    "asinh": numpy.arcsinh,
    "acosh": numpy.arccosh,
    "atanh": numpy.arctanh,
    "reciprocal": lambda z: 1 / z,
    "rsqrt": lambda z: 1 / numpy.sqrt(z),
    "square": numpy.square,
    "sigmoid": lambda z: 1 / (1 + numpy.exp(-z)),
    "neg": numpy.negative,
    "conj": numpy.conj,
    "sgn": lambda z: z / numpy.abs(z),
    "abs": numpy.abs,
    "angle": numpy.angle,
}
REAL_RESULTS = ("abs", "angle")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name, dtype):
    z = numbers(3, 50, dtype=dtype)
    function = getattr(torch, name)
    expected = FUNCTIONS[name](z.numpy())
    assert function(z).dtype == (dtype.to_real() if name in REAL_RESULTS else dtype)
    close(function(z), expected, dtype)
    close(function(z.t()[::2]), expected.T[::2], dtype)
    out = torch.empty(3, 50, dtype=function(z).dtype)
    assert function(z, out=out) is out if name != "conj" else True
    if name not in ("conj", *REAL_RESULTS):
        close(out, expected, dtype)
        close(getattr(z.clone(), name + "_")(), expected, dtype)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_of_functions(name):
    z = numbers(4, seed=1).requires_grad_()
    function = getattr(torch, name)
    assert torch.autograd.gradcheck(function, z)
    assert torch.autograd.gradgradcheck(function, z)


def test_arithmetic():
    a = numbers(4, 1, dtype=torch.complex64)
    b = numbers(3, dtype=torch.complex64, seed=1)
    x, y = a.numpy().copy(), b.numpy()
    close(a + b, x + y, torch.complex64)
    close(torch.sub(a, b, alpha=2j), x - 2j * y, torch.complex64)
    close(a * b, x * y, torch.complex64)
    close(a / b, x / y, torch.complex64)
    close(a**b, x**y, torch.complex64)
    close(2 / b, 2 / y, torch.complex64)
    close(torch.addcmul(a, b, b, value=1j), x + 1j * y * y, torch.complex64)
    close(torch.addcdiv(a, a, b), x + x / y, torch.complex64)
    close(torch.lerp(a, b.expand(4, 3), 0.25), x + 0.25 * (y - x), torch.complex64)
    a += b[:1]
    close(a, x + y[:1], torch.complex64)


def test_results_promote():
    z = torch.tensor([1 + 2j])
    assert (z + torch.ones(1, dtype=torch.float64)).dtype == torch.complex128
    assert (z + torch.ones((), dtype=torch.float64)).dtype == torch.complex64
    assert (z * 2.5).dtype == torch.complex64
    assert (torch.ones(1) * 1j).dtype == torch.complex64
    assert (torch.ones(1, dtype=torch.float64) * 1j).dtype == torch.complex128
    assert (torch.ones(1, dtype=torch.int64) + z).tolist() == [2 + 2j]
    assert (torch.ones(1) * 1j).tolist() == [1j]
    assert torch.abs(z).dtype == torch.float32
    assert torch.mul(z, 3, out=torch.empty(1, dtype=torch.complex128)).tolist() == [3 + 6j]
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.mul(z, 3, out=torch.empty(1))


def test_real_factors_keep_infinities():
    z = torch.tensor([complex(float("inf"), 1.0)])
    assert (z * 2).tolist() == [complex(float("inf"), 2.0)]
    assert (z / torch.tensor([2.0])).tolist() == [complex(float("inf"), 0.5)]


def test_comparisons():
    a = torch.tensor([1 + 1j, 2, complex("nan"), complex(float("inf"), float("nan"))])
    assert (a == torch.tensor([1 + 1j, 2j, 0, 0])).tolist() == [True, False, False, False]
    assert (a != 2).tolist() == [True, False, True, True]
    assert a.isnan().tolist() == [False, False, True, True]
    assert a.isinf().tolist() == [False, False, False, True]
    assert a.isfinite().tolist() == [True, True, False, False]
    assert torch.isreal(a).tolist() == [False, True, True, False]
    assert torch.where(torch.tensor([True, False]), a[:2], a[:1]).tolist() == [1 + 1j, 1 + 1j]
    assert torch.allclose(a[:2], a[:2] + 1e-9j) and not torch.allclose(a[:2], a[:2] + 1e-2j)
    assert torch.equal(a[:2], a[:2].clone())
    assert torch.logical_not(torch.tensor([0, 1j])).tolist() == [True, False]


def test_sums():
    z = numbers(4, 5)
    close(z.sum(), z.numpy().sum())
    close(z.sum(0), z.numpy().sum(0))
    close(z.mean(1, keepdim=True), z.numpy().mean(1, keepdims=True))
    close(z.cumsum(1), z.numpy().cumsum(1))
    close(z.prod(1), z.numpy().prod(1))
    close(z.prod(), z.numpy().prod())
    close(z.cumprod(0), z.numpy().cumprod(0))
    close(z.var(0), z.numpy().var(0, ddof=1))
    close(z.std(1, correction=0), z.numpy().std(1))
    close(torch.linalg.vector_norm(z), numpy.linalg.norm(z.numpy()))
    close(torch.logsumexp(z, 1), numpy.log(numpy.exp(z.numpy()).sum(1)))
    assert z.var(0).dtype == torch.float64
    close(torch.cat([z[:, :2], z[:, 4:]], 1), z.numpy()[:, [0, 1, 4]])
    assert torch.ones(3).sum(dtype=torch.complex64).dtype == torch.complex64
    assert torch.tensor([0, 1j]).any() and not torch.tensor([0, 1j]).all()
    out = torch.empty(5, dtype=z.dtype)
    close(torch.sum(z, 0, out=out), z.numpy().sum(0))


PRODUCTS = {
    "mm": (lambda a, b: a @ b, (2, 3), (3, 4)),
    "bmm": (torch.bmm, (2, 2, 3), (2, 3, 2)),
    "mv": (torch.mv, (3, 2), (2,)),
    "dot": (torch.dot, (3,), (3,)),
    "vdot": (torch.vdot, (3,), (3,)),
    "outer": (torch.outer, (3,), (2,)),
    "matmul": (torch.matmul, (2, 1, 2, 3), (2, 3, 2)),
    "linear": (torch.nn.functional.linear, (2, 3), (4, 3)),
    "conv1d": (torch.nn.functional.conv1d, (1, 2, 5), (3, 2, 2)),
    "einsum": (lambda a, b: torch.einsum("ij,kj->ik", a, b), (2, 3), (2, 3)),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name):
    function, left, right = PRODUCTS[name]
    a, b = numbers(*left).requires_grad_(), numbers(*right, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(function, (a, b))
    assert torch.autograd.gradgradcheck(function, (a, b))


def test_values_of_products():
    a, b, c = numbers(2, 3), numbers(3, 4, seed=1), numbers(2, 4, seed=2)
    x, y, z = a.numpy(), b.numpy(), c.numpy()
    close(a @ b, x @ y)
    close(torch.addmm(c, a, b, beta=0.5, alpha=2j), 0.5 * z + 2j * (x @ y))
    close(torch.nn.functional.linear(a, b.t(), c[0]), x @ y + z[0])
    close(torch.vdot(a[0], a[1]), numpy.vdot(x[0], x[1]))
    close(torch.outer(a[0], a[1]), numpy.outer(x[0], x[1]))
    with pytest.raises(RuntimeError, match="same dtype"):
        a @ b.to(torch.complex64)


FORMS = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "pow": lambda a, b: a**b,
    "addcmul": lambda a, b: torch.addcmul(a, a, b, value=1 + 2j),
    "lerp": lambda a, b: torch.lerp(a, b, 0.25),
    "where": lambda a, b: torch.where(a.abs() > 1, a, b),
    "broadcast": lambda a, b: a * b.sum(),
    "sum": lambda a, b: (a * b).sum(0),
    "mean": lambda a, b: (a / b).mean(),
    "cumsum": lambda a, b: (a * b).cumsum(0),
    "prod": lambda a, b: (a * b).prod(0),
    "cumprod": lambda a, b: (a * b).cumprod(0),
    "var": lambda a, b: (a * b).var(),
    "std": lambda a, b: (a * b).std(),
    "norm": lambda a, b: torch.linalg.vector_norm(a + b, 3),
    "logsumexp": lambda a, b: torch.logsumexp(a * b, 0),
    "logaddexp": torch.logaddexp,
    "parts": lambda a, b: torch.complex((a * b).real, (a / b).imag),
    "index": lambda a, b: a[torch.tensor([0, 0, 2])] * b,
}


@pytest.mark.parametrize("name", FORMS)
def test_gradients_of_forms(name):
    a, b = numbers(3).requires_grad_(), numbers(3, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(FORMS[name], (a, b))
    assert torch.autograd.gradgradcheck(FORMS[name], (a, b))


@pytest.mark.parametrize("name", ["add", "mul", "div", "pow"])
def test_a_real_argument_has_a_real_gradient(name):
    a = torch.tensor([0.5, 1.5, 2.0], dtype=torch.float64, requires_grad=True)
    b = numbers(3).requires_grad_()
    assert torch.autograd.gradcheck(FORMS[name], (a, b))
    assert torch.autograd.gradgradcheck(FORMS[name], (a, b))
    FORMS[name](a, b).abs().sum().backward()
    assert a.grad.dtype == torch.float64 and b.grad.dtype == torch.complex128


def test_gradients_at_zero():
    z = torch.zeros(2, dtype=torch.complex64, requires_grad=True)
    (z.abs().sum() + torch.angle(z).sum() + torch.sgn(z).real.sum()).backward()
    assert z.grad.tolist() == [0, 0]


def test_the_convention_of_gradients():
    z = torch.tensor([1 + 2j], requires_grad=True)
    (z * z.conj()).real.sum().backward()
    assert z.grad.tolist() == [2 + 4j]
    z.grad = None
    (z * (3 + 1j)).real.sum().backward()
    assert z.grad.tolist() == [3 - 1j]


def test_backward_needs_a_real_result():
    z = torch.tensor([1 + 2j], requires_grad=True)
    with pytest.raises(RuntimeError, match="only for real scalar outputs but got torch.complex64"):
        z.sum().backward()


@pytest.mark.parametrize("name", ["erf", "floor", "lgamma", "relu", "erfinv", "digamma"])
def test_functions_of_real_numbers_alone(name):
    with pytest.raises(RuntimeError, match="not implemented for 'ComplexFloat'"):
        getattr(torch, name)(torch.tensor([1j]))


@pytest.mark.parametrize("name", ["lt", "le", "gt", "ge", "maximum", "minimum"])
def test_complex_numbers_have_no_order(name):
    with pytest.raises(RuntimeError, match="not implemented for 'ComplexFloat'"):
        getattr(torch, name)(torch.tensor([1j]), torch.tensor([1j]))


def test_real_tensors_take_no_complex_alpha():
    with pytest.raises(RuntimeError, match="argument alpha must not be a complex number"):
        torch.add(torch.ones(2), torch.ones(2), alpha=1j)


def test_long_tensors_agree_with_short_ones():
    z = numbers(70001, dtype=torch.complex64)
    product = z * z.flip(0)
    close(product[-9:], (z.numpy() * z.numpy()[::-1])[-9:], torch.complex64)
    assert torch.equal(product[:50], z[:50] * z.flip(0)[:50])


@pytest.mark.parametrize("dtype", DTYPES)
def test_rms_norm(dtype):
    x, weight = numbers(2, 3, 4, dtype=dtype), numbers(3, 4, dtype=dtype, seed=1)
    squares = (x * x).mean((-2, -1), keepdim=True)  # of the numbers, not of their magnitudes
    eps = numpy.finfo("float32" if dtype == torch.complex64 else "float64").eps
    expected = (x / (squares + float(eps)).sqrt() * weight).numpy()
    close(torch.nn.functional.rms_norm(x, (3, 4), weight), expected, dtype)


def test_gradients_of_rms_norm():
    x, weight = numbers(2, 4).requires_grad_(), numbers(4, seed=1).requires_grad_()
    function = lambda x, weight: torch.nn.functional.rms_norm(x, (4,), weight, eps=0.1)  # noqa: E731
    assert torch.autograd.gradcheck(function, (x, weight))
    assert torch.autograd.gradgradcheck(function, (x, weight))


@pytest.mark.parametrize("dtype", DTYPES)
def test_magnitudes_go_to_any_float(dtype):
    z = torch.tensor([3 + 4j, -5j], dtype=dtype)
    for other in (torch.float16, torch.float32, torch.float64, dtype):
        out = torch.empty(2, dtype=other)
        assert torch.abs(z, out=out) is out
        assert out.tolist() == [5, 5]
    narrower = torch.complex64 if dtype == torch.complex128 else torch.complex128
    for other in (torch.int32, torch.bool, narrower):
        with pytest.raises(RuntimeError, match="abs"):
            torch.abs(z, out=torch.empty(2, dtype=other))


def test_logcumsumexp_is_the_sum_from_the_first_element_to_the_last():
    x = numbers(2, 30, 3) * 3
    total = x[:, 0]
    expected = [total]
    for i in range(1, x.size(1)):
        # The imaginary part is at most a quarter of a turn from that of the greater summand.
        swap = x[:, i].real >= total.real
        most, least = torch.where(swap, x[:, i], total), torch.where(swap, total, x[:, i])
        total = most + torch.log1p(torch.exp(least - most))
        expected.append(total)
    close(torch.logcumsumexp(x, 1), torch.stack(expected, 1).numpy())
    assert (torch.stack(expected, 1).imag.abs() > 3.2).any()


@pytest.mark.parametrize("gap", [1e4, -1e4, 3.0])
def test_gradients_of_logaddexp_with_any_gap(gap):
    a, b = numbers(4).requires_grad_(), (numbers(4, seed=1) + gap).requires_grad_()
    assert torch.autograd.gradcheck(torch.logaddexp, (a, b), atol=1e-4)
    if abs(gap) < 100:
        assert torch.autograd.gradgradcheck(torch.logaddexp, (a, b))
    total = torch.logaddexp(a, b).real.sum()
    first, second = torch.autograd.grad(total, (a, b), create_graph=True)
    close((first + second).detach(), torch.ones(4, dtype=a.dtype).numpy())
    assert all(torch.isfinite(x).all() for x in torch.autograd.grad(first.real.sum(), (a, b)))


def test_functions_where_numbers_end():
    inf = math.inf
    z = torch.tensor([complex(-inf, inf), complex(0, inf), complex(inf, 0), complex(inf, inf)])
    assert torch.exp(z)[0].item() == 0
    assert torch.atanh(z).imag.tolist() == pytest.approx([math.pi / 2] * 4)
    assert torch.asin(z).real.tolist() == pytest.approx([-math.pi / 4, 0, math.pi / 2, math.pi / 4])
    assert torch.acos(z).real.tolist() == pytest.approx(
        [0.75 * math.pi, math.pi / 2, 0, math.pi / 4]
    )
    tails = torch.sigmoid(torch.tensor([-100 + 1e-30j, complex(inf, inf)]))
    assert tails.tolist() == pytest.approx([0, 1])
    assert torch.atanh(torch.tensor(1 + 1e-30j)).real.item() == pytest.approx(34.885, rel=1e-4)
    assert torch.atan(torch.tensor(1e30j)).imag.item() == pytest.approx(1e-30)
