"""What may be written: out= tensors, and tensors that share memory."""

import pytest
import rushlight as torch

SINGLE = "more than one element of the written-to tensor"
SHARED = "some elements of the input tensor and the written-to tensor"


@pytest.mark.parametrize(
    "make",
    [
        lambda out: torch.zeros(2, dtype=torch.int32, out=out),
        lambda out: torch.ones(2, dtype=torch.int32, out=out),
        lambda out: torch.full((2,), 1.5, dtype=torch.int32, out=out),
        lambda out: torch.arange(2, dtype=torch.int32, out=out),
        lambda out: torch.linspace(0, 1, 2, dtype=torch.float64, out=out),
        lambda out: torch.rand(2, dtype=torch.float64, out=out),
        lambda out: torch.eye(2, dtype=torch.int32, out=out),
    ],
)
def test_factory_refuses_another_dtype_than_out(make):
    with pytest.raises(RuntimeError, match="does not match dtype of out parameter"):
        make(torch.zeros(2))


def test_factory_follows_out():
    out = torch.zeros(3, dtype=torch.int32)
    assert torch.full((3,), 1.5, out=out) is out
    assert out.tolist() == [1, 1, 1]
    assert torch.arange(3, out=torch.zeros(3, dtype=torch.float64)).tolist() == [0.0, 1.0, 2.0]


def test_ranges_fill_any_shape_of_their_size():
    out = torch.zeros(2, 2)
    assert torch.arange(4, out=out).tolist() == [[0.0, 1.0], [2.0, 3.0]]
    assert torch.linspace(0, 3, 4, out=out).tolist() == [[0.0, 1.0], [2.0, 3.0]]


@pytest.mark.parametrize("make", [torch.ones, torch.rand, torch.empty, torch.arange])
def test_factory_refuses_out_that_requires_grad(make):
    with pytest.raises(RuntimeError, match="automatic differentiation"):
        make(3, out=torch.zeros(3, requires_grad=True))


@pytest.mark.parametrize("join", [torch.hstack, torch.vstack, torch.dstack, torch.column_stack])
def test_joins_refuse_a_narrower_out(join):
    parts = [torch.ones(2), torch.ones(2)]
    with pytest.raises(TypeError, match="can't be cast"):
        join(parts, out=torch.zeros(0, dtype=torch.int32))
    assert join(parts, out=torch.zeros(0, dtype=torch.float64)).sum() == 4


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.add_(1),
        lambda x: x.exp_(),
        lambda x: x.copy_(torch.ones(3)),
        lambda x: x.uniform_(),
        lambda x: x.cumsum_(0),
        lambda x: x.clamp_(0, 1),
        lambda x: x.scatter_(0, torch.tensor([0]), 1.0),
        lambda x: x.index_add_(0, torch.tensor([0]), torch.ones(1)),
        lambda x: x.masked_scatter_(torch.ones(3).bool(), torch.ones(3)),
        lambda x: x.square_(),
        lambda x: x.lerp_(torch.ones(3), 0.5),
    ],
)
def test_expanded_tensor_is_not_written(write):
    with pytest.raises(RuntimeError, match=SINGLE):
        write(torch.ones(1).expand(3))


def test_expanded_tensor_may_be_filled():
    assert torch.ones(1).expand(3).fill_(2).tolist() == [2, 2, 2]
    assert torch.ones(1).expand(3).zero_().tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "write",
    [
        lambda b: b[1:].add_(b[:-1]),
        lambda b: b[1:].mul_(b[:-1]),
        lambda b: b[1:].lerp_(b[:-1], 0.5),
        lambda b: b[1:].eq_(b[:-1]),
        lambda b: torch.exp(b[1:], out=b[:-1]),
        lambda b: torch.clamp(b[1:], 0, 1, out=b[:-1]),
        lambda b: torch.where(b[1:] > 0, b[1:], b[:-1], out=b[:-1]),
        lambda b: torch.maximum(b[1:], b[:-1], out=b[1:]),
        lambda b: b[1:].copy_(b[:-1]),
    ],
)
def test_partly_shared_memory_is_not_written(write):
    with pytest.raises(RuntimeError, match=SHARED):
        write(torch.arange(6.0))


def test_wholly_shared_memory_is_written():
    b = torch.arange(4.0)
    assert torch.add(b, b, out=b) is b
    assert b.tolist() == [0.0, 2.0, 4.0, 6.0]


def test_view_copies_take_out():
    x = torch.arange(6.0).view(2, 3)
    for function, args in (
        (torch.narrow_copy, (1, 1, 2)),
        (torch.slice_scatter, (torch.zeros(1, 3), 0, 1, 2)),
        (torch.unfold_copy, (1, 2, 1)),
        (torch.permute_copy, ((1, 0),)),
    ):
        out = torch.zeros(0)
        assert function(x, *args, out=out) is out
        assert torch.equal(out, function(x, *args))


@pytest.mark.parametrize(
    ("dtype", "name"),
    [(torch.uint8, "uint8_t"), (torch.int8, "int8_t"), (torch.int16, "int16_t")],
)
def test_numbers_that_a_dtype_cannot_hold(dtype, name):
    x = torch.ones(2, dtype=dtype)
    calls = [
        lambda: x.clamp(0, 100000),
        lambda: x.clamp_min(100000),
        lambda: x.add(1, alpha=100000),
        lambda: x.fill_(100000),
        lambda: x.masked_fill_(x > 0, 100000),
        lambda: torch.full((1,), 100000, dtype=dtype),
    ]
    for call in calls:
        with pytest.raises(RuntimeError, match=f"converted to type {name} without overflow"):
            call()


def test_negative_numbers_wrap_in_unsigned_dtypes():
    x = torch.tensor([3, 250], dtype=torch.uint8)
    assert x.clamp(-5).tolist() == [251, 251]
    assert (x + 300).tolist() == [47, 38]  # in the place of a tensor, any number wraps


def test_greatest_int64_fills():
    most = 2**63 - 1
    assert torch.zeros(1, dtype=torch.int64).fill_(most).item() == most
    source = torch.tensor([5, 3])
    target = torch.full((1,), most, dtype=torch.int64)
    low = target.scatter_reduce(0, torch.zeros(2, dtype=torch.int64), source, "amin")
    assert low.tolist() == [3]


def test_writes_that_may_repeat():
    x = torch.ones(1).expand(3)
    assert x.masked_fill_(torch.ones(3, dtype=torch.bool), 2).tolist() == [2, 2, 2]
    assert x.index_fill_(0, torch.tensor([0]), 3).tolist() == [3, 3, 3]
    x[0] = 4
    assert x.tolist() == [4, 4, 4]


@pytest.mark.parametrize(
    "run",
    [
        lambda x, out: torch.exp(x, out=out),
        lambda x, out: torch.add(x, 1, out=out),
        lambda x, out: torch.sum(x, 0, keepdim=True, out=out),
        lambda x, out: torch.cumsum(x, 0, out=out),
    ],
)
def test_real_results_go_to_complex_outputs(run):
    x = torch.tensor([0.0, 1.0])
    out = torch.zeros(0, dtype=torch.complex64)
    assert run(x, out) is out
    expected = run(x, torch.zeros(0)).tolist()
    assert [z.real for z in out.tolist()] == expected


def test_truth_of_bytes_goes_to_truth_values():
    x = torch.tensor([1, 2], dtype=torch.uint8)
    assert torch.all(x).dtype == torch.uint8
    assert torch.all(x, out=torch.zeros((), dtype=torch.bool)).item() is True
    assert torch.any(x > 5, out=torch.ones((), dtype=torch.uint8)).item() == 0


def test_searchsorted_of_a_number_takes_out():
    out = torch.zeros((), dtype=torch.int64)
    assert torch.searchsorted(torch.tensor([1, 3, 5]), 4, out=out) is out
    assert out.item() == 2


def test_wide_output_holds_the_result_of_halves():
    x = torch.full((2,), 300.0, dtype=torch.float16)
    out = torch.empty(2)
    torch.mul(x, x, out=out)
    assert out.tolist() == [float("inf")] * 2  # 90000 is no half
    torch.div(torch.ones(2, dtype=torch.bfloat16), 3, out=out)
    assert out.tolist() == [0.333984375] * 2


def test_sums_of_products_keep_the_dtype_of_out():
    x = torch.ones(3)
    out = torch.empty(3, dtype=torch.float64)
    assert torch.inner(torch.tensor(2.0), x, out=out).tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(RuntimeError, match="output tensor to have dtype Float"):
        torch.inner(x, x, out=torch.empty((), dtype=torch.float64))


def test_only_differences_convert_to_the_dtype_of_out():
    x = torch.tensor([1.0, 3.0])
    assert torch.diff(x, out=torch.empty(1, dtype=torch.float64)).tolist() == [2.0]
    with pytest.raises(RuntimeError, match="expected scalar_type Float but found Double"):
        torch.diff(x, n=0, out=torch.empty(2, dtype=torch.float64))


def test_float_power_is_written_to_doubles_only():
    x = torch.tensor([2.0, 3.0])
    assert torch.float_power(x, 2, out=torch.empty(2, dtype=torch.float64)).tolist() == [4.0, 9.0]
    assert x.double().float_power_(2).tolist() == [4.0, 9.0]
    with pytest.raises(RuntimeError, match="base given to float_power_ has dtype Float"):
        x.float_power_(2)
    with pytest.raises(RuntimeError, match="output given to float_power has dtype Float"):
        torch.float_power(x, x, out=torch.empty(2))


def test_addbmm_in_place_takes_the_shape_of_the_sum():
    x = torch.ones(1)
    batch = torch.ones(2, 2, 2)
    assert x.addbmm_(batch, batch) is x
    assert x.tolist() == [[5.0, 5.0], [5.0, 5.0]]


def test_normal_around_a_mean_keeps_the_shape_of_out():
    with pytest.raises(RuntimeError):
        torch.normal(torch.ones(2, 3), 1.0, out=torch.empty(0))
    assert torch.normal(1.0, torch.ones(2, 3), out=torch.empty(0)).shape == (2, 3)


@pytest.mark.parametrize("scan", [torch.cumsum, torch.cumprod])
def test_scan_keeps_the_dtype_that_is_asked_for(scan):
    x, wide = torch.ones(3), torch.zeros(3, dtype=torch.float64)
    assert scan(x, 0, out=wide) is wide
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype Float, but got Dou"):
        scan(x, 0, dtype=torch.float32, out=wide)
    assert scan(x, 0, dtype=torch.float64, out=wide).dtype is torch.float64


def test_condition_number_in_another_dtype():
    x = torch.diag(torch.tensor([4.0, 2.0]))
    for order in (None, 1, "fro"):
        out = torch.linalg.cond(x, order, out=torch.empty((), dtype=torch.float64))
        assert out.dtype is torch.float64
        assert out.item() == pytest.approx(torch.linalg.cond(x, order).item())
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type Long"):
        torch.linalg.cond(x, out=torch.empty((), dtype=torch.int64))


def test_powers_that_are_products_refuse_another_dtype():
    x = torch.diag(torch.tensor([4.0, 2.0]))
    for n in (0, 1, 4, -4):
        out = torch.linalg.matrix_power(x, n, out=torch.empty(2, 2, dtype=torch.float64))
        assert out.tolist() == torch.matrix_power(x, n).tolist()
    for n in (-1, 2, -2, 3, 6):
        with pytest.raises(RuntimeError, match="Expected out tensor to have dtype Float"):
            torch.linalg.matrix_power(x, n, out=torch.empty(2, 2, dtype=torch.float64))


def test_lerp_by_a_tensor_refuses_another_dtype():
    x, weight = torch.tensor([2.0, 4.0]), torch.tensor([0.5, 0.25])
    assert torch.lerp(x, x + 2, weight, out=torch.empty(2)).tolist() == [3.0, 4.5]
    for dtype in (torch.float16, torch.float64, torch.complex64):
        assert torch.lerp(x, x + 2, 0.5, out=torch.empty(2, dtype=dtype)).tolist() == [3.0, 5.0]
        with pytest.raises(RuntimeError, match="lerp"):
            torch.lerp(x, x + 2, weight, out=torch.empty(2, dtype=dtype))
