"""Differences, areas, covariances, quantiles, histograms on values worked out by hand."""

import math

import pytest
import rushlight as torch


def test_diff():
    x = torch.tensor([1, 4, 9, 16])
    assert torch.diff(x).tolist() == [3, 5, 7]
    assert torch.diff(x, n=2).tolist() == [2, 2]
    assert torch.diff(x, prepend=torch.tensor([0])).tolist() == [1, 3, 5, 7]
    assert torch.diff(torch.tensor([True, True, False])).tolist() == [False, True]
    assert torch.diff(x, n=9).shape == (0,)
    with pytest.raises(RuntimeError, match="order must be non-negative"):
        torch.diff(x, n=-1)


def test_trapezoid():
    y = torch.tensor([1.0, 5.0, 10.0])
    assert torch.trapezoid(y).item() == 10.5
    assert torch.trapezoid(y, dx=2).item() == 21.0
    assert torch.trapezoid(y, torch.tensor([1.0, 3.0, 6.0])).item() == 28.5
    assert torch.cumulative_trapezoid(y).tolist() == [3.0, 10.5]


def test_covariance_and_correlation():
    x = torch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])
    assert torch.cov(x).tolist() == [[1.0, -1.0], [-1.0, 1.0]]
    assert torch.cov(x, correction=0).tolist()[0] == pytest.approx([2 / 3, -2 / 3])
    weighed = torch.cov(x, fweights=torch.tensor([1, 2, 1]))
    assert weighed[0, 0].item() == pytest.approx(2 / 3)
    assert torch.corrcoef(x).flatten().tolist() == pytest.approx([1.0, -1.0, -1.0, 1.0])


@pytest.mark.parametrize(
    ("interpolation", "expected"),
    [("linear", 1.8), ("lower", 1.0), ("higher", 2.0), ("midpoint", 1.5), ("nearest", 2.0)],
)
def test_quantile_interpolation(interpolation, expected):
    x = torch.tensor([3.0, 0.0, 1.0, 2.0])
    result = torch.quantile(x, 0.6, interpolation=interpolation).item()
    assert result == pytest.approx(expected)


def test_quantile_shapes_and_nan():
    x = torch.tensor([[1.0, 2.0, 3.0], [4.0, math.nan, 6.0]])
    q = torch.tensor([0.0, 0.5])
    assert torch.quantile(x, q, dim=1).shape == (2, 2)
    assert torch.quantile(x, q, dim=0, keepdim=True).shape == (2, 1, 3)
    low, middle = torch.quantile(x, 0.5, dim=1).tolist()
    assert low == 2.0
    assert math.isnan(middle)
    assert torch.nanquantile(x, 0.5, dim=1).tolist() == [2.0, 5.0]
    with pytest.raises(RuntimeError, match=r"range \[0, 1\]"):
        torch.quantile(x, 1.5)


def test_histogram():
    x = torch.tensor([1.0, 2.0, 1.0, 4.0, 9.0])
    assert torch.histc(x, bins=4, min=0, max=4).tolist() == [0.0, 2.0, 1.0, 1.0]


def test_renorm():
    x = torch.tensor([[3.0, 4.0], [0.3, 0.4]])
    assert torch.renorm(x, 2, 0, 1.0).flatten().tolist() == pytest.approx([0.6, 0.8, 0.3, 0.4])


def test_combinations():
    x = torch.tensor([1, 2, 3])
    assert torch.combinations(x).tolist() == [[1, 2], [1, 3], [2, 3]]
    assert torch.combinations(x, 2, True).shape == (6, 2)
    assert torch.combinations(x, 4).shape == (0, 4)


def test_distances():
    a = torch.tensor([[0.0, 0.0], [3.0, 4.0]])
    b = torch.tensor([[0.0, 0.0], [6.0, 8.0], [3.0, 0.0]])
    assert torch.cdist(a, b).tolist() == [[0.0, 10.0, 3.0], [5.0, 5.0, 4.0]]
    assert torch.cdist(a, b, p=1.0)[0].tolist() == [0.0, 14.0, 3.0]
    assert torch.pdist(b).tolist() == pytest.approx([10.0, 3.0, math.sqrt(73)])
    assert torch.dist(a[0], a[1]).item() == 5.0
    x = a.clone().requires_grad_()
    (grad,) = torch.autograd.grad(torch.cdist(x, a).sum(), x)
    assert torch.isfinite(grad).all()


@pytest.mark.parametrize("mode", ["use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"])
def test_euclidean_distances_of_many_rows_and_their_gradients(mode):
    torch.manual_seed(0)
    a = torch.randn(2, 40, 7, dtype=torch.float64, requires_grad=True)
    b = torch.randn(1, 30, 7, dtype=torch.float64, requires_grad=True)
    with torch.no_grad():
        b[0, :5] = a[0, :5]
    got = torch.cdist(a, b, compute_mode=mode)
    gaps = a.unsqueeze(-2) - b.unsqueeze(-3)
    wanted = torch.linalg.vector_norm(gaps, dim=-1)
    torch.testing.assert_close(got, wanted, rtol=1e-7, atol=1e-6)
    weights = torch.randn(2, 40, 30, dtype=torch.float64)
    weights[0, torch.arange(5), torch.arange(5)] = 0
    grads = torch.autograd.grad((got * weights).sum(), (a, b))
    expected = torch.autograd.grad((wanted * weights).sum(), (a, b))
    torch.testing.assert_close(grads, expected, rtol=1e-6, atol=1e-6)


def test_distances_of_rows_to_themselves_have_no_gradient_at_zero():
    x = torch.randn(30, 4, requires_grad=True)
    distances = torch.cdist(x, x)
    (grad,) = torch.autograd.grad(distances.sum(), x)
    assert not grad.isnan().any()
    assert distances.diagonal().max() < 1e-2


def test_bilinear():
    left, right = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0, 5.0]])
    weight = torch.ones(2, 2, 3)
    result = torch.nn.functional.bilinear(left, right, weight, torch.tensor([0.0, 1.0]))
    assert result.tolist() == [[36.0, 37.0]]


def test_integer_arithmetic():
    a, b = torch.tensor([12, -8, 0]), torch.tensor([18, 12, 5])
    assert torch.gcd(a, b).tolist() == [6, 4, 5]
    assert torch.lcm(a, b).tolist() == [36, 24, 0]
    assert torch.square(torch.tensor([True, False])).dtype == torch.int64


def test_parts_of_numbers():
    x = torch.tensor([-2.0, 0.0, 3.0])
    assert torch.heaviside(x, torch.tensor(0.5)).tolist() == [0.0, 0.5, 1.0]
    mantissa, exponent = torch.frexp(x)
    assert (mantissa.tolist(), exponent.tolist()) == ([-0.5, 0.0, 0.75], [2, 0, 2])
    assert torch.ldexp(mantissa, exponent).tolist() == x.tolist()
    assert torch.angle(x).tolist() == pytest.approx([math.pi, 0.0, 0.0])
    assert torch.float_power(torch.tensor([2, 3]), 2).dtype == torch.float64


def test_real_and_imaginary_parts():
    x = torch.ones(2)
    assert x.real is x or torch.equal(x.real, x)
    with pytest.raises(RuntimeError, match="non-complex"):
        x.imag


def test_kron_and_sum_to_size():
    a, b = torch.tensor([[1, 2]]), torch.tensor([[0, 1], [1, 0]])
    assert torch.kron(a, b).tolist() == [[0, 1, 0, 2], [1, 0, 2, 0]]
    assert torch.ones(2, 3).sum_to_size(1, 3).tolist() == [[2.0, 2.0, 2.0]]
    with pytest.raises(RuntimeError, match="not expandable"):
        torch.ones(2, 3).sum_to_size(2, 2)


def test_sums_of_small_integers():
    x = torch.ones(2, 1, dtype=torch.uint8)
    assert torch.einsum("ij,kl->ik", x, x).dtype == torch.int64
    assert torch.einsum("ij,k->ik", x, x[:, 0]).dtype == torch.int64
    assert torch.tensordot(torch.ones(2, 1).byte(), torch.ones(3, 2).byte(), ([0], [1])).sum() == 6


def test_take_along_dim_from_the_end():
    x = torch.arange(6.0).view(2, 3)
    assert torch.take_along_dim(x, torch.tensor([[-1], [-2]]), 1).tolist() == [[2.0], [4.0]]


def test_meshgrid_xy():
    grids = torch.meshgrid(torch.arange(3), torch.arange(2), indexing="xy")
    assert grids[0].tolist() == [[0, 1, 2], [0, 1, 2]]
    assert grids[1].tolist() == [[0, 0, 0], [1, 1, 1]]


def test_nonzero_as_tuple():
    x = torch.tensor([[0, 1], [2, 0]])
    assert [i.tolist() for i in torch.nonzero(x, as_tuple=True)] == [[0, 1], [1, 0]]
    assert [i.tolist() for i in x.nonzero(as_tuple=True)] == [[0, 1], [1, 0]]
    with pytest.raises(RuntimeError, match="out kwarg"):
        torch.nonzero(x, as_tuple=True, out=torch.zeros(0, dtype=torch.int64))


def test_circular_padding_wraps_what_is_left():
    x = torch.arange(3).view(1, 1, 3)
    pad = torch.nn.functional.pad
    assert pad(x, (2, -1), mode="circular").tolist() == [[[0, 1, 0, 1]]]
    assert pad(x, (3, 0), mode="circular").tolist() == [[[0, 1, 2, 0, 1, 2]]]


def test_histogram_of_halves_rounds_each_step():
    x = torch.arange(40, dtype=torch.float32).to(torch.bfloat16) * 0.37 - 3
    step = ((x - x.min()) * 100 / (x.max() - x.min())).to(torch.int64).clamp(max=99)
    assert torch.equal(torch.histc(x, 100), torch.bincount(step, minlength=100).to(x.dtype))


def test_covariance_without_freedom_is_infinite():
    with pytest.warns(UserWarning, match="degrees of freedom"):
        c = torch.cov(torch.tensor([[1.0, 2.0], [3.0, 5.0]]), correction=3)
    assert (c == float("inf")).all()


def test_sum_to_its_own_size_is_the_tensor_itself():
    x = torch.ones(1, 4, dtype=torch.bool)
    assert x.sum_to_size(1, 4) is x
    assert x.sum_to_size(4).dtype == torch.int64
    assert torch.ones((), dtype=torch.bool).sum_to_size(()).dtype == torch.int64


def test_logspace_of_integers_goes_between_whole_powers():
    assert torch.logspace(4.3, 0.5, 5, dtype=torch.int32).tolist() == [10000, 1000, 100, 10, 1]
    assert torch.logspace(4.3, 0.5, 1, dtype=torch.int32).tolist() == [19952]


def test_layer_norm_statistics_follow_the_parameters():
    x = torch.randn(2, 3).to(torch.float16)
    halves = torch.native_layer_norm(x, [3], None, None, 1e-5)
    assert [t.dtype for t in halves] == [torch.float16] * 3
    wide = torch.native_layer_norm(x, [3], torch.ones(3), torch.zeros(3), 1e-5)
    assert [t.dtype for t in wide] == [torch.float16, torch.float32, torch.float32]


@pytest.mark.parametrize("p", [-1.0, -2.0, float("inf"), -float("inf")])
def test_norms_without_identity_refuse_empty_rows(p):
    with pytest.raises(RuntimeError, match="does not have an identity"):
        torch.linalg.vector_norm(torch.ones(2, 0), p, dim=1)
    assert torch.linalg.vector_norm(torch.ones(0, 2), p, dim=1).shape == (0,)


def test_unique_compares_slices_in_the_order_of_their_dimensions():
    x = torch.tensor([[[0, 0], [0, 1]], [[1, 0], [0, 0]]])
    assert torch.equal(torch.unique(x, dim=2), x)
    assert torch.equal(torch.unique(x.flip(2), dim=2), x)


def test_einsum_without_a_sum_promotes() -> None:
    half, single = torch.ones(3).bfloat16(), torch.ones(4)
    assert torch.einsum("i,j->ij", half, single).dtype == torch.float32
    assert torch.einsum("ij,ij->ij", half[None], single[None, :3]).dtype == torch.float32
    assert torch.einsum("i,j->ij", half, torch.arange(3)).dtype == torch.bfloat16
    with pytest.raises(RuntimeError, match="same dtype"):
        torch.einsum("i,i->", half, single[:3])
