"""Where halves round, and what gradients are where a formula alone would lose them."""

import pytest
import rushlight as torch


def second_order(function, *inputs, weight=None):
    """Gradients of the sum of the first input's gradient, by all inputs."""
    out = function(*inputs)
    (first,) = torch.autograd.grad(
        out, inputs[0], torch.ones_like(out) if weight is None else weight, create_graph=True
    )
    return torch.autograd.grad(first.sum(), inputs, allow_unused=True)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_gradients_of_broadcast_factors_round_after_the_sum(dtype):
    # The square of a number one unit above 1 lies between two halves.
    step = 1 + (2.0**-7 if dtype is torch.bfloat16 else 2.0**-10)
    rows = torch.full((64, 64), step, dtype=dtype)
    exact = 4096 * step * step
    for function in (torch.mul, lambda x, f: torch.addcmul(torch.zeros_like(x), x, f)):
        factor = torch.ones((), dtype=dtype, requires_grad=True)
        out = function(rows, factor)
        (grad,) = torch.autograd.grad(out, factor, rows)
        assert grad.item() == torch.tensor(exact).to(dtype).item()
    column = torch.ones(64, dtype=dtype, requires_grad=True)
    (grad,) = torch.autograd.grad(rows * column, column, rows, create_graph=True)
    wanted = torch.tensor(64 * step * step).to(dtype).item()
    assert grad.tolist() == [wanted] * 64


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_many_halves_are_added_in_float(dtype):
    base = torch.zeros(2, dtype=dtype)
    index = torch.zeros(4096, dtype=torch.int64)
    ones = torch.ones(4096, dtype=dtype)
    assert base.index_add(0, index, ones).tolist() == [4096, 0]
    assert base.scatter_add(0, index, ones).tolist() == [4096, 0]


def test_second_derivative_of_logaddexp_at_equal_arguments():
    a = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    b = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    by_a, by_b = second_order(torch.logaddexp, a, b)
    assert by_a.item() == pytest.approx(0.25)
    assert by_b.item() == pytest.approx(-0.25)


def test_second_derivatives_of_errors_at_zero():
    x = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    target = torch.zeros(1, dtype=torch.float64)
    functional = torch.nn.functional
    huber = second_order(lambda x: functional.huber_loss(x, target, reduction="sum"), x)
    smooth = second_order(lambda x: functional.smooth_l1_loss(x, target, reduction="sum"), x)
    assert huber[0].item() == 1.0
    assert smooth[0].item() == 1.0


def test_second_derivative_of_products_with_a_zero_of_self():
    self = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    src = torch.tensor([0.0, 3.0], dtype=torch.float64, requires_grad=True)
    index = torch.zeros(2, dtype=torch.int64)
    out = self.scatter_reduce(0, index, src, "prod")
    (first,) = torch.autograd.grad(out, src, torch.ones_like(out), create_graph=True)
    # The product is self * src[0] * src[1]: by src[0], then by self, it is src[1].
    (second,) = torch.autograd.grad(first[0], self)
    assert second.item() == 3.0


def test_gradient_of_a_quotient_with_a_narrower_number():
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    by = torch.tensor(4.0, dtype=torch.float32, requires_grad=True)
    (first,) = torch.autograd.grad((x / by).sum(), by, create_graph=True)
    (second,) = torch.autograd.grad(first, by)
    assert first.item() == pytest.approx(-0.125)
    assert second.item() == pytest.approx(0.0625)


def test_soft_margin_loss_of_halves_does_not_overflow():
    x = torch.tensor([-12.0], dtype=torch.float16, requires_grad=True)
    target = torch.ones(1, dtype=torch.float16)
    loss = torch.nn.functional.soft_margin_loss(x, target)
    loss.backward()
    assert loss.item() == 12.0
    assert x.grad.item() == -1.0


def test_softmax_of_integers_with_a_float_dtype():
    x = torch.tensor([0, 0])
    functional = torch.nn.functional
    assert torch.softmax(x, 0, dtype=torch.float32).tolist() == [0.5, 0.5]
    assert functional.softmin(x, 0, dtype=torch.float64).tolist() == [0.5, 0.5]
    assert functional.log_softmax(x == 0, 0, dtype=torch.float64).exp().sum().item() == 1.0
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        torch.softmax(x, 0)


def test_matrix_norms_of_nothing_are_zero():
    inf = float("inf")
    assert torch.linalg.norm(torch.zeros(0, 3), inf).item() == 0.0
    assert torch.linalg.norm(torch.zeros(2, 3, 0), 1, dim=(1, 2)).tolist() == [0.0, 0.0]
    assert torch.linalg.norm(torch.zeros(0, 3), 2).item() == 0.0
    assert torch.linalg.norm(torch.zeros(2, 3, 0), 2, dim=(1, 2), keepdim=True).shape == (2, 1, 1)
    for order in (-1, -2):
        with pytest.raises(IndexError, match="non-zero size"):
            torch.linalg.norm(torch.zeros(3, 0), order)


def test_outputs_that_are_refused():
    with pytest.raises(RuntimeError, match="std_var_all: Unsupported dtype Half"):
        torch.var(torch.ones(3, dtype=torch.float16), correction=1, out=torch.empty(()))
    for function in (torch.var, torch.std):  # whatever makes it one number, but not of none
        row = torch.ones(1, 3, dtype=torch.bfloat16)
        with pytest.raises(RuntimeError, match="std_var_all: Unsupported dtype BFloat16"):
            function(row, 1, unbiased=False, out=torch.empty(1))
        assert function(row.mT, 1, correction=0, out=torch.empty(3)).tolist() == [0.0, 0.0, 0.0]
        assert function(row[0, :0], 0, correction=0, out=torch.empty(())).isnan()
    with pytest.raises(RuntimeError, match="found ComplexDouble|dtype ComplexDouble"):
        x = torch.ones(3, dtype=torch.float64)
        torch.inner(x, x, out=torch.empty((), dtype=torch.complex128))


def test_negative_order_norms_of_small_numbers_keep_their_second_derivative():
    x = torch.tensor([1e-3, 2e-3, 1.0], requires_grad=True)
    (second,) = second_order(lambda x: torch.linalg.norm(x, -3.5), x)
    wide = x.detach().double().requires_grad_(True)
    (wanted,) = second_order(lambda x: torch.linalg.norm(x, -3.5), wide)
    assert second.tolist() == pytest.approx(wanted.tolist(), rel=1e-3)


@pytest.mark.parametrize("p", [2, 3, -3.5])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_second_derivatives_of_norms_of_halves_divide_by_the_exact_norm(p, dtype):
    # One number decides the norm: that of halves is off by more than the rest of them adds.
    x = torch.tensor([0.18, 7.875, 0.8, 8.0625], dtype=dtype, requires_grad=True)
    wide = x.detach().double().requires_grad_(True)
    weight = torch.tensor([1.0, 0.0, 0.0, 0.0])
    for at, length in ((x, dtype), (wide, torch.float64)):
        out = torch.linalg.vector_norm(at, p)
        (first,) = torch.autograd.grad(out, at, create_graph=True)
        (second,) = torch.autograd.grad(first, at, weight.to(length))
        if length is dtype:
            found = second
    limit = 2 * torch.finfo(dtype).eps * second.abs().max().item()
    assert found.tolist() == pytest.approx(second.tolist(), abs=limit)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_losses_of_halves_round_once(dtype):
    functional = torch.nn.functional
    torch.manual_seed(0)
    a, b, c = (torch.randn(4, 6).to(dtype) for _ in range(3))
    positive = c.abs() + 0.5

    def both(function, *tensors):
        """Of halves, and of the same numbers in double, rounded."""
        return function(*tensors), function(*(x.double() for x in tensors)).to(dtype)

    for function, tensors in (
        (torch.dist, (a, b)),
        (functional.pairwise_distance, (a, b)),
        (functional.cosine_similarity, (a, b)),
        (functional.triplet_margin_loss, (a, b, c)),
        (functional.gaussian_nll_loss, (a, b, positive)),
        (functional.binary_cross_entropy_with_logits, (a, b.sigmoid(), positive)),
        (lambda x, y, w: functional.binary_cross_entropy_with_logits(x, y, pos_weight=w),
         (a, b.sigmoid(), positive)),
    ):  # fmt: skip
        found, wanted = both(function, *tensors)
        assert found.dtype is dtype
        assert found.tolist() == wanted.tolist()
