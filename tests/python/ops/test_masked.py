"""rushlight.masked against the same function of the elements that are left."""

import math

import pytest
import rushlight as torch
import rushlight.masked as M

X = torch.tensor([[3.0, 1.0, 4.0], [1.0, 5.0, 9.0], [2.0, 6.0, 5.0]])
MASK = torch.tensor([[True, False, True], [False, True, True], [False, False, False]])
EMPTY = {
    "sum": 0.0,
    "prod": 1.0,
    "amax": -math.inf,
    "amin": math.inf,
    "mean": math.nan,
    "var": math.nan,
    "std": math.nan,
    "norm": 0.0,
    "median": math.nan,
}


def same(a: float, b: float) -> bool:
    return math.isnan(a) and math.isnan(b) or a == pytest.approx(b, rel=1e-6)


@pytest.mark.parametrize("name", EMPTY)
def test_reductions_see_the_valid_elements_only(name: str) -> None:
    extra = (2.0,) if name == "norm" else ()
    got = getattr(M, name)(X, *extra, 1, mask=MASK).tolist()
    for row in range(2):
        left = X[row][MASK[row]]
        if name == "norm":
            expected = torch.linalg.vector_norm(left)
        else:
            expected = getattr(torch, name)(left, 0)
            expected = expected if isinstance(expected, torch.Tensor) else expected.values
        assert same(got[row], expected.item())
    assert same(got[2], EMPTY[name])


def test_all_dimensions_are_reduced_without_dim_and_with_an_empty_one() -> None:
    assert M.sum(X, mask=MASK).item() == 21
    assert M.sum(X, (), mask=MASK).item() == 21
    assert M.amax(X, (0, 1), keepdim=True, mask=MASK).tolist() == [[9.0]]


def test_dtypes_follow_the_input() -> None:
    small = X.to(torch.int8)
    assert M.sum(small, 1, mask=MASK).dtype == torch.int64
    assert M.cumsum(small, 1, mask=MASK).dtype == torch.int8
    assert M.argmax(X, 1, mask=MASK).tolist() == [2.0, 2.0, 0.0]
    assert M.var(small, 1, mask=MASK).dtype == torch.float32
    assert M.amax(small, 1, mask=MASK).tolist() == [4, 9, -128]
    for mask in (None, MASK):
        assert M.std(X.to(torch.complex64), 1, mask=mask).dtype == torch.complex64


def test_scans_and_softmax() -> None:
    assert M.cumsum(X, 1, mask=MASK).tolist() == [[3, 3, 7], [0, 5, 14], [0, 0, 0]]
    assert M.cumprod(X, 1, mask=MASK).tolist() == [[3, 3, 12], [1, 5, 45], [1, 1, 1]]
    probabilities = M.softmax(X, 1, mask=MASK)
    assert probabilities[0].tolist() == pytest.approx([1 / (1 + math.e), 0, math.e / (1 + math.e)])
    assert torch.isnan(probabilities[2]).all()
    assert torch.allclose(M.softmin(-X, 1, mask=MASK)[:2], probabilities[:2])
    assert torch.allclose(M.log_softmax(X, 1, mask=MASK)[:2].exp(), probabilities[:2])


def test_normalize_and_logaddexp() -> None:
    assert M.normalize(X, 2.0, 1, mask=MASK).tolist()[0] == pytest.approx([0.6, 0, 0.8])
    both = M.logaddexp(X, X, input_mask=MASK)
    assert torch.allclose(both, torch.where(MASK, X + math.log(2), X))
    total = M.logsumexp(X, 1, mask=MASK).tolist()
    assert total[0] == pytest.approx(math.log(math.exp(3) + math.exp(4)))
    assert total[2] == -math.inf
    complex_total = M.logsumexp(X.to(torch.complex128), 1, mask=MASK)
    assert complex_total.real.tolist() == pytest.approx(total)
    assert complex_total.imag.tolist() == [0, 0, 0]


def test_gradients_reach_the_valid_elements_only() -> None:
    x = X.clone().requires_grad_()
    M.var(x[:2], 1, mask=MASK[:2]).sum().backward()
    assert (x.grad[~MASK] == 0).all()
    assert x.grad[0].tolist() == pytest.approx([-1.0, 0.0, 1.0])


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: M.sum(X, (1, 1)), RuntimeError, "dim=1 appears multiple times"),
        (lambda: M.sum(X, 2), IndexError, r"range of \[-2, 1\], but got 2"),
        (lambda: M.sum(X, mask=MASK[None]), IndexError, "mask dimensionality higher"),
        (lambda: M.mean(X.long()), ValueError, r"mean\(\): Could not infer output dtype"),
        (lambda: M.amax(X > 1, 1, mask=MASK), NotImplementedError, "identity of amax on"),
        (lambda: M.median(X.long(), 1, mask=MASK), ValueError, "no fully masked out rows"),
        (lambda: M.var(X > 1, 1), RuntimeError, "with a bool tensor is not supported"),
        (lambda: M.var(X, 1, True, correction=2), AssertionError, "Only one of unbiased"),
    ],
)
def test_mistakes(call, kind, text) -> None:
    with pytest.raises(kind, match=text):
        call()
