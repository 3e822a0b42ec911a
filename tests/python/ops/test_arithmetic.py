"""Element-wise arithmetic: who may be a number, what out= takes, gradients that are zero."""

import math

import numpy
import pytest
import rushlight as torch


@pytest.mark.parametrize(
    "alias, name",
    [
        ("multiply", "mul"),
        ("subtract", "sub"),
        ("divide", "div"),
        ("true_divide", "div"),
        ("absolute", "abs"),
        ("negative", "neg"),
        ("arctan2", "atan2"),
    ],
)
def test_aliases_have_function_method_and_inplace_form(alias, name):
    a = torch.tensor([1.0, -2.0])
    arguments = () if name in ("abs", "neg") else (torch.tensor([4.0, 2.0]),)
    expected = getattr(torch, name)(a, *arguments)
    assert torch.equal(getattr(torch, alias)(a, *arguments), expected)
    assert torch.equal(getattr(a, alias)(*arguments), expected)
    getattr(a, alias + "_")(*arguments)
    assert torch.equal(a, expected)


def test_special_names():
    x = torch.tensor([0.5, 2.0])
    assert torch.equal(torch.special.expit(x), torch.sigmoid(x))
    assert torch.equal(torch.special.psi(x), torch.digamma(x))
    assert not hasattr(torch.Tensor, "special_expit")


@pytest.mark.parametrize("name", ["eq", "lt", "fmod", "rsub", "copysign"])
def test_a_number_first_is_refused(name):
    with pytest.raises(TypeError):
        getattr(torch, name)(2, torch.tensor([1.0]))


@pytest.mark.parametrize("name", ["pow", "remainder", "xlogy"])
def test_a_number_first_needs_a_tensor_beside_it(name):
    getattr(torch, name)(2, torch.tensor([1.0]))
    with pytest.raises(TypeError):
        getattr(torch, name)(2, 3)


def test_arithmetic_takes_two_numbers():
    assert torch.add(2, 3).item() == 5
    assert torch.mul(2, 3.5).item() == 7.0


def test_out_of_one_argument_operators_has_the_exact_dtype():
    x = torch.tensor([1.5, -2.5])
    with pytest.raises(RuntimeError, match="dtype"):
        torch.floor(x, out=torch.empty(2, dtype=torch.float64))
    out = torch.empty(2, dtype=torch.float64)
    assert torch.add(x, x, out=out) is out
    assert out.tolist() == [3.0, -5.0]


@pytest.mark.parametrize("name", ["floor", "ceil", "round", "trunc", "sign"])
def test_steps_have_a_zero_gradient(name):
    x = torch.tensor([1.25, -2.75], requires_grad=True)
    getattr(torch, name)(x).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]


def test_rounding_to_decimals_has_a_zero_gradient():
    x = torch.tensor([1.25, -2.75], requires_grad=True)
    torch.round(x, decimals=1).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]


def test_rounded_division_has_a_zero_gradient():
    x = torch.tensor([5.0, 7.0], requires_grad=True)
    y = torch.tensor([2.0, 3.0], requires_grad=True)
    torch.div(x, y, rounding_mode="floor").sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]
    assert y.grad.tolist() == [0.0, 0.0]
    assert not torch.floor_divide(x, y).requires_grad


def test_second_derivative_through_a_division_by_a_number():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (first,) = torch.autograd.grad(((x * x * x) / 2.0).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert first.tolist() == [1.5, 6.0]
    assert second.tolist() == [3.0, 6.0]


def test_clamp_bounds_that_are_tensors():
    x = torch.tensor([1.0, 5.0], requires_grad=True)
    low = torch.tensor([2.0, 3.0], requires_grad=True)
    y = torch.clamp_min(x, low)
    y.sum().backward()
    assert y.tolist() == [2.0, 5.0]
    assert x.grad.tolist() == [0.0, 1.0]
    assert low.grad.tolist() == [1.0, 0.0]
    highest = torch.tensor([2.0, 3.0])
    assert torch.clamp_max(torch.tensor([1.0, 5.0]), highest).tolist() == [1.0, 3.0]


def test_isclose_refuses_negative_tolerances():
    x = torch.tensor([1.0])
    with pytest.raises(RuntimeError, match="rtol must be greater than or equal to zero"):
        torch.isclose(x, x, rtol=-0.1)
    with pytest.raises(RuntimeError, match="atol must be greater than or equal to zero"):
        torch.isclose(x, x, atol=-0.1)
    assert torch.isclose(x, torch.tensor([math.nan])).tolist() == [False]


def test_logaddexp_shares_the_gradient_of_equal_arguments():
    a = torch.tensor([1.0, -math.inf], requires_grad=True)
    b = torch.tensor([1.0, -math.inf], requires_grad=True)
    torch.logaddexp(a, b).sum().backward()
    assert a.grad.tolist() == [0.5, 0.5]
    assert b.grad.tolist() == [0.5, 0.5]


def test_integers_have_no_negative_powers():
    x = torch.tensor([2, 4])
    for call in (lambda: x**-1, lambda: torch.pow(x, -2), lambda: x.clone().pow_(-1)):
        with pytest.raises(RuntimeError, match="Integers to negative integer powers"):
            call()
    assert (x ** torch.tensor([-1, 1])).tolist() == [0, 4]
    assert (2 ** torch.tensor([-1, 2])).tolist() == [0, 4]
    assert (x.float() ** -1).tolist() == (x**-1.0).tolist() == [0.5, 0.25]


def test_nan_to_num_stays_finite_in_each_dtype():
    x = torch.tensor([math.inf, -math.inf, math.nan, 1.5])
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        most = torch.finfo(dtype).max
        assert torch.nan_to_num(x.to(dtype)).tolist() == [most, -most, 0.0, 1.5]
        assert x.to(dtype, copy=True).nan_to_num_(2, neginf=3).tolist() == [most, 3.0, 2.0, 1.5]


def test_nan_to_num_replaces_parts_of_complex_numbers():
    x = torch.tensor([complex(math.nan, math.inf), 1 - 2j])
    most = torch.finfo(torch.float32).max
    assert torch.nan_to_num(x).tolist() == [complex(0, most), 1 - 2j]
    assert torch.nan_to_num(x, 1.0, 2.0).tolist() == [1 + 2j, 1 - 2j]
    out = torch.empty(2, dtype=torch.complex64)
    assert torch.nan_to_num(x, posinf=4.0, out=out).tolist() == [4j, 1 - 2j]
    assert x.nan_to_num_(posinf=4.0).tolist() == [4j, 1 - 2j]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_what_does_not_fit_int32_becomes_its_least(dtype):
    least = -(2**31)
    x = torch.tensor([math.inf, -math.inf, math.nan, 3e9, -3e9, 7.9, -7.9], dtype=dtype)
    whole = [least] * 5 + [7, -7]
    assert x.int().tolist() == whole
    assert x.repeat(9).int().tolist() == whole * 9
    assert torch.tensor(2.0**31 - 128, dtype=torch.float32).int().item() == 2**31 - 128
    assert torch.tensor(-(2.0**31), dtype=dtype).int().item() == least


def test_floor_division_by_infinity():
    x = torch.tensor([-1.0, 1.0, -0.0, math.inf])
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        down = (x.to(dtype) // math.inf).tolist()
        assert down[:3] == [-1.0, 0.0, -0.0] and math.isnan(down[3])
        down = torch.div(x.to(dtype), torch.tensor(-math.inf), rounding_mode="floor").tolist()
        assert down[:3] == [0.0, -1.0, 0.0] and math.isnan(down[3])
    assert x.repeat(9).floor_divide(math.inf)[32].item() == -1.0


def test_a_number_that_divides_does_not_promote():
    for x in (torch.tensor(5, dtype=torch.uint8), torch.tensor([5], dtype=torch.uint8)):
        assert (x // 2).dtype == (7 // x).dtype == torch.uint8
    assert (torch.tensor(5.0, dtype=torch.bfloat16) // 2.5).dtype == torch.bfloat16
    assert (torch.tensor(5) // torch.tensor(2, dtype=torch.uint8)).dtype == torch.int64


def test_nothing_may_be_divided_by_zero():
    nothing = torch.zeros(0, 2, dtype=torch.int64)
    for made in (
        nothing // 0,
        nothing % 0,
        torch.fmod(nothing, 0),
        nothing // torch.zeros(2).int(),
    ):
        assert made.shape == (0, 2) and made.dtype == torch.int64
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        torch.ones(1, dtype=torch.int64) // 0


def test_ldexp_of_whole_exponents_is_exact():
    big = torch.tensor([2000, 3, -2000])
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        made = torch.ldexp(torch.tensor([0.0, 1.5, 3.0], dtype=dtype), big)
        assert made.dtype == dtype and made.tolist() == [0.0, 12.0, 0.0]
    small = torch.tensor([2.0**-100])
    assert torch.ldexp(small, torch.tensor([200])).item() == 2.0**100
    least = torch.tensor([2.0**-1074], dtype=torch.float64)
    assert torch.ldexp(least, torch.tensor([2097])).item() == 2.0**1023
    assert torch.ldexp(torch.ldexp(least, torch.tensor(2097)), torch.tensor(-2097)) == least
    # Rounded once: through subnormal numbers it would be twice.
    x = torch.tensor([1 + 2.0**-52], dtype=torch.float64)
    assert torch.ldexp(x, torch.tensor(-1070)).item() == math.ldexp(1 + 2.0**-52, -1070)
    powers = torch.arange(-1074, 1024)
    made = torch.ldexp(torch.ones((), dtype=torch.float64), powers)
    assert made.tolist() == [math.ldexp(1.0, power) for power in range(-1074, 1024)]
    x = torch.tensor([1.5, 2.0], requires_grad=True)
    torch.ldexp(x, torch.tensor([3, -1])).sum().backward()
    assert x.grad.tolist() == [8.0, 0.5]
    half = torch.tensor(0.5, dtype=torch.bfloat16)
    z = torch.ldexp(torch.tensor([1 + 1j]), half).item()
    assert z.real == z.imag == pytest.approx(math.sqrt(2), rel=1e-6)


@pytest.mark.parametrize("function", [torch.add, torch.sub, torch.rsub])
def test_a_float_alpha_of_integers_after_a_whole_one(function):
    x = torch.ones(3, dtype=torch.int64)
    function(x, 2, alpha=3)  # the kernel for it serves all values of alpha
    with pytest.raises(RuntimeError, match="alpha must not be a floating point number"):
        function(x, 2, alpha=3.5)
    assert function(x, 2.0, alpha=0.5).is_floating_point()


def test_alpha_is_checked_in_each_call():
    x = torch.tensor([1, 2])
    flags = x > 1
    for function in (torch.add, torch.sub, torch.rsub):
        assert function(x, x, alpha=2).dtype == torch.int64  # the kernel exists from here on
        for empty in (x, x[:0]):
            with pytest.raises(RuntimeError, match="alpha must not be a floating point number"):
                function(empty, empty, alpha=2.5)
        with pytest.raises(RuntimeError, match="Boolean alpha only supported for Boolean results"):
            function(x, x, alpha=True)
    with pytest.raises(RuntimeError, match="alpha must not be a floating point number"):
        torch.add(flags, flags, alpha=0.5)
    with pytest.raises(RuntimeError, match="alpha must not be a complex number"):
        torch.add(x / 2, x, alpha=1j)
    assert torch.add(flags, flags, alpha=True).tolist() == [False, True]
    assert torch.add(x, 1j, alpha=2j).tolist() == [-1, 0]


def test_bools_to_the_power_of_a_bool():
    flags = torch.tensor([True, False])
    assert torch.pow(flags, True).tolist() == [True, False]
    assert torch.pow(flags, False).tolist() == [True, True]
    assert torch.pow(flags, 2).dtype == torch.int64
    with pytest.raises(RuntimeError, match="converted to type uint8_t without overflow"):
        torch.pow(torch.ones(2, dtype=torch.uint8), 300)


def test_nextafter_steps_by_units_of_bfloat16():
    x = torch.tensor([1.0, 1.0, math.inf, 0.0, -1.0, 2.0, 3.0, math.nan], dtype=torch.bfloat16)
    y = torch.tensor([2.0, 0.0, 0.0, -1.0, 0.0, -math.inf, 3.0, 1.0])
    least = -(2.0**-133)
    wanted = [1 + 2**-7, 1 - 2**-8, torch.finfo(x.dtype).max, least, 2**-8 - 1, 2 - 2**-7, 3.0]
    made = torch.nextafter(x, y.bfloat16())
    assert made.dtype == torch.bfloat16
    assert made.tolist()[:-1] == wanted and math.isnan(made[-1].item())
    assert torch.nextafter(x[:2], torch.tensor(0.3)).tolist() == [1 - 2**-8] * 2
    most = torch.tensor([torch.finfo(x.dtype).max], dtype=x.dtype)
    assert torch.nextafter(most, torch.tensor(math.inf)).item() == math.inf


def test_nextafter_steps_by_units_of_float16():
    least, tick = 2.0**-14, 2.0**-24
    pairs = {
        (1.0, 2.0): 1 + 2**-10,
        (1.0, 0.0): 1 - 2**-11,
        (math.inf, 0.0): 65504.0,
        (65504.0, math.inf): math.inf,
        (0.0, -1.0): -tick,
        (least, 0.0): least - tick,
        (least, 1.0): least + tick,
        (tick, 0.0): 0.0,
        (2.0, -math.inf): 2 - 2**-10,
        (-1.0, 0.0): 2**-11 - 1,
        (-least / 2, -1.0): -least / 2 - tick,
        (3.0, 3.0): 3.0,
    }
    x, y = torch.tensor(list(pairs)).half().unbind(1)
    made = torch.nextafter(x, y)
    assert made.dtype == torch.float16 and made.tolist() == list(pairs.values())
    assert math.isnan(torch.nextafter(x[:1], torch.tensor(math.nan)).item())


def test_divisors_are_those_of_the_promoted_dtype():
    bytes_ = torch.tensor([9, 200], dtype=torch.uint8)
    assert torch.gcd(torch.tensor(-3), bytes_).tolist() == [1, 1]  # -3 is 253
    assert torch.lcm(torch.tensor(-3), bytes_).tolist() == [229, 168]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_next_number_towards_another(dtype):
    limits = torch.finfo(dtype)
    edges = [0.0, 1.0, 1.5, limits.max, limits.tiny, limits.smallest_normal / 2, float("inf")]
    values = [sign * x for x in edges for sign in (1, -1)] + [float("nan")]
    x = torch.tensor(values, dtype=dtype).repeat_interleave(len(values))
    y = torch.tensor(values, dtype=dtype).repeat(len(values))
    with numpy.errstate(over="ignore"):
        expected = numpy.nextafter(x.numpy(), y.numpy())
    made = torch.nextafter(x, y).numpy()
    assert numpy.array_equal(made, expected, equal_nan=True)
    assert numpy.array_equal(numpy.signbit(made[made == 0]), numpy.signbit(expected[made == 0]))
