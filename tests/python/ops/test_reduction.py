"""Reductions: overloads, out= and gradients."""

import numpy
import pytest
import rushlight as torch


def test_whole_reductions_take_out():
    x = torch.tensor([[1.0, 4.0], [3.0, 2.0]])
    out = torch.empty(0)
    assert torch.max(x, out=out) is out
    assert out.item() == 4.0
    assert torch.min(x, out=out).item() == 1.0
    assert torch.mean(x, out=out).item() == 2.5


def test_max_prefers_a_tensor_to_a_dimension():
    assert torch.max(torch.tensor([2, 9]), torch.tensor(5)).tolist() == [5, 9]
    assert torch.min(torch.tensor([2, 9]), torch.tensor(5)).tolist() == [2, 5]


def test_all_and_any_take_one_dimension():
    x = torch.tensor([[True, False], [True, True]])
    assert torch.all(x, dim=0).tolist() == [True, False]
    assert torch.all(x, 1).tolist() == [False, True]
    assert torch.any(x, 1).tolist() == [True, True]


def test_variance_and_mean_with_unbiased():
    x = torch.tensor([[1.0, 3.0], [5.0, 9.0]])
    variance, mean = torch.var_mean(x, unbiased=False)
    assert (variance.item(), mean.item()) == (8.75, 4.5)
    deviation, mean = torch.std_mean(x, 1, unbiased=False)
    assert deviation.tolist() == [1.0, 2.0]
    assert mean.tolist() == [2.0, 7.0]


def test_sum_follows_the_dtype_of_out():
    out = torch.empty(2, dtype=torch.float32)
    assert torch.sum(torch.tensor([[1, 2], [3, 4]]), dim=[1], out=out).tolist() == [3.0, 7.0]
    narrow = torch.empty(2, dtype=torch.int32)
    torch.cumsum(torch.tensor([1, 2]), 0, out=narrow)
    assert narrow.tolist() == [1, 3]


def test_extremes_need_the_exact_dtype_of_out():
    with pytest.raises(RuntimeError, match="dtype"):
        torch.amax(torch.tensor([1.0]), 0, out=torch.empty((), dtype=torch.float64))


def test_counting_norm_passes_no_gradient():
    x = torch.tensor([1.0, 0.0, 3.0], requires_grad=True)
    count = torch.linalg.vector_norm(x, 0)
    count.backward()
    assert count.item() == 2.0
    assert x.grad is None


def test_tensordot_broadcasts_sizes_of_one():
    a = torch.tensor([[2.0, 3.0]])
    b = torch.tensor([[1.0], [10.0]])
    assert torch.tensordot(a, b, dims=([0], [0])).tolist() == [[22.0], [33.0]]


def test_products_of_no_elements():
    a = torch.zeros(2, 3, 0)
    assert torch.matmul(a, torch.zeros(0, 4)).tolist() == torch.zeros(2, 3, 4).tolist()
    assert (torch.zeros(0, 3, 0) @ torch.zeros(0, 4)).shape == (0, 3, 4)


def test_logcumsumexp_keeps_elements_far_below_the_maximum():
    x = torch.tensor([-200.0, -200.0, 0.0], requires_grad=True)
    y = torch.logcumsumexp(x, 0)
    assert y.tolist() == pytest.approx([-200.0, -199.30685, 0.0])
    y.sum().backward()
    assert x.grad.tolist() == pytest.approx([1.5, 0.5, 1.0])
    with pytest.raises(IndexError):
        torch.logcumsumexp(torch.zeros(0), 3)


def test_sums_keep_the_dtype_that_was_asked_for():
    x = torch.tensor([200, 100], dtype=torch.uint8)
    total = torch.sum(x, dtype=torch.uint8)
    assert (total.dtype, total.item()) == (torch.uint8, 44)
    assert torch.cumsum(x, 0, dtype=torch.uint8).tolist() == [200, 44]
    assert torch.sum(torch.tensor([0, 3]), dim=[0], dtype=torch.bool).item() is True
    assert torch.sum(torch.ones(5000, dtype=torch.int32), dtype=torch.int32).dtype == torch.int32
    assert torch.sum(x).dtype == torch.int64


def test_any_and_all_over_no_dimension_ask_each_element():
    x = torch.tensor([[0.0, 3.0], [2.0, 0.0]])
    each = [[False, True], [True, False]]
    assert torch.any(x, []).tolist() == torch.all(x, ()).tolist() == each
    assert torch.any(x, [], keepdim=True).tolist() == each
    assert x.bool().any(dim=()).tolist() == (x * 1j).all(dim=()).tolist() == each
    assert torch.any(torch.ones(0, 3), []).shape == (0, 3)
    assert torch.any(x, None).tolist() is True
    assert torch.sum(x, []).tolist() == 5.0  # others reduce all
    assert torch.any(torch.ones(40000), []).shape == (40000,)


def test_none_stands_for_all_dimensions():
    x = torch.tensor([[1.0, 4.0], [3.0, 2.0]])
    assert torch.amax(x, None).item() == x.amax(dim=None).item() == 4.0
    assert x.amin(None, True).tolist() == [[1.0]]
    assert torch.roll(x, 1, None).tolist() == [[2.0, 1.0], [4.0, 3.0]]
    assert torch.max_pool2d(x[None], 2, None).tolist() == [[[4.0]]]
    with pytest.raises(TypeError, match="argument 'dim'.*must be tuple of ints, not NoneType"):
        torch.logsumexp(x, None)


def test_truth_values_are_counted_not_rounded():
    x = torch.tensor([[0.3, 0.2], [0.0, 0.5]])
    assert torch.sum(x, 1, dtype=torch.bool).tolist() == [True, True]
    assert torch.prod(x, 1, dtype=torch.bool).tolist() == [True, False]
    assert torch.prod(x, dtype=torch.bool).item() is False
    cancelling = torch.tensor([5, -5], dtype=torch.int16)
    assert torch.nansum(cancelling, 0, dtype=torch.bool).item() is True
    out = torch.empty(2, dtype=torch.bool)
    assert torch.sum(x, 1, out=out).tolist() == [True, True]


def test_dtypes_that_reductions_refuse():
    x = torch.tensor([1.0, 2.0])
    with pytest.raises(RuntimeError, match="could not infer output dtype.*Got: Long"):
        torch.nanmean(x, dtype=torch.int64)
    with pytest.raises(NotImplementedError, match="nansum.*ComplexFloat"):
        torch.nansum(x, dtype=torch.complex64)
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch.prod(torch.tensor(1j), 1)


@pytest.mark.parametrize("columns", [(1,), (2,), (3,), (8,), (33,), (3, 2), (5, 1, 3)])
def test_many_rows_of_few_columns(columns):
    torch.manual_seed(0)
    for rows in (2047, 2048, 2049, 5000):
        x = torch.randn(rows, *columns)
        wide = x.double()
        assert torch.allclose(x.sum(0).double(), wide.sum(0), atol=2e-3)
        assert torch.allclose(x.mean(0, keepdim=True).double(), wide.mean(0, keepdim=True))
        assert torch.equal(x.amax(0), x.max(0).values)
        whole = (x * 100).long()
        assert whole.sum(0).tolist() == numpy.asarray(whole).sum(0).tolist()
        assert torch.equal(whole[::2].sum(0), whole[::2].clone().sum(0))
        turned = whole.movedim(0, -1)
        assert torch.equal(turned.sum(-1), whole.sum(0))
        x[rows // 2] = float("nan")
        assert x.sum(0).isnan().all() and x.amin(0).isnan().all()
