"""The normalisations that return their statistics, beside those that do not."""

import pytest
import rushlight as torch
import rushlight.nn.functional as F


def assert_close(found, expected):
    assert torch.allclose(found, expected)


def test_group_norm_returns_statistics():
    x = torch.rand(2, 6, 3, dtype=torch.float64)
    weight, bias = torch.rand(2, 6, dtype=torch.float64)
    out, mean, rstd = torch.native_group_norm(x, weight, bias, 2, 6, 3, 2, 1e-5)
    assert_close(out, F.group_norm(x, 2, weight, bias))
    rows = x.view(2, 2, 9)
    assert_close(mean, rows.mean(2))
    assert_close(rstd, (rows.var(2, correction=0) + 1e-5).rsqrt())
    with pytest.raises(RuntimeError, match="divisible by num_groups"):
        torch.native_group_norm(x, weight, bias, 2, 6, 3, 4, 1e-5)


def test_group_norm_differentiates_by_its_statistics():
    x = torch.rand(2, 4, 3, dtype=torch.float64, requires_grad=True)
    weight = torch.rand(4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda t, w: torch.native_group_norm(t, w, None, 2, 4, 3, 2, 1e-3), (x, weight)
    )


def test_batch_norm_returns_statistics():
    x = torch.rand(4, 3, 2)
    mean, var = torch.zeros(3), torch.ones(3)
    out, saved_mean, saved_rstd = torch.native_batch_norm(x, None, None, mean, var, True, 0.5, 1e-5)
    assert_close(out, F.batch_norm(x, None, None, training=True))
    assert_close(saved_mean, x.mean((0, 2)))
    assert_close(saved_rstd, (x.var((0, 2), correction=0) + 1e-5).rsqrt())
    assert_close(mean, x.mean((0, 2)) / 2)
    out, saved_mean, _ = torch.native_batch_norm(x, None, None, mean, var, False, 0.5, 1e-5)
    assert_close(out, F.batch_norm(x, mean, var))
    assert saved_mean.shape == (0,)


def test_forms_of_batch_norm():
    x, mean, var = torch.rand(4, 3), torch.zeros(3), torch.ones(3)
    plain = torch._native_batch_norm_legit(x, None, None, True, 0.1, 1e-5)
    kept = torch._native_batch_norm_legit(x, None, None, mean.clone(), var.clone(), True, 0.1, 1e-5)
    assert all(a.equal(b) for a, b in zip(plain, kept, strict=True))
    aten = torch.ops.aten
    updated = aten._batch_norm_with_update(x, None, None, mean, var, 0.1, 1e-5)
    assert updated[0].equal(plain[0])
    assert updated[3].dtype == torch.uint8
    assert_close(mean, x.mean(0) * 0.1)
    still = aten._batch_norm_no_update(x, None, None, mean, var, 0.1, 1e-5)
    assert still[0].equal(F.batch_norm(x, mean, var))


def test_softmax_gradients_as_operators():
    x = torch.rand(3, 4, dtype=torch.float64, requires_grad=True)
    grad = torch.rand(3, 4, dtype=torch.float64, requires_grad=True)
    for forward, backward in (
        (torch.softmax, torch._softmax_backward_data),
        (torch.log_softmax, torch._log_softmax_backward_data),
    ):
        y = forward(x, 1)
        (expected,) = torch.autograd.grad(y, x, grad)
        assert_close(backward(grad, y.detach(), 1, torch.float64), expected)
        assert torch.autograd.gradcheck(
            lambda g, t, b=backward: b(g, t, 1, torch.float64), (grad, x)
        )


def test_safe_softmax_of_rows_without_elements():
    x = torch.tensor([[1.0, 1.0], [-torch.inf, -torch.inf]], requires_grad=True)
    made = torch._safe_softmax(x, 1)
    assert made.tolist() == [[0.5, 0.5], [0.0, 0.0]]
    made[:, 0].sum().backward()
    assert x.grad.tolist() == [[0.25, -0.25], [0.0, 0.0]]


def test_dropout_gradient_as_an_operator():
    grad, mask = torch.tensor([1.0, 2.0]), torch.tensor([True, False])
    assert torch.ops.aten.native_dropout_backward(grad, mask, 2.0).tolist() == [2.0, 0.0]


def test_softmax_of_integers_in_a_given_dtype():
    x = torch.tensor([[1, 1], [0, 0]])
    assert torch.softmax(x, 1, dtype=torch.float32).tolist() == [[0.5, 0.5], [0.5, 0.5]]
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        torch.softmax(x, 1)


def test_batch_norm_in_evaluation_writes_flat_statistics():
    x, out, flat = torch.rand(3, 2), torch.empty(3, 2), torch.empty(0)
    arguments = (x, None, None, torch.zeros(2), torch.ones(2), False, 0.1, 1e-5)
    torch.native_batch_norm(*arguments, out=(out, flat, flat.clone()))
    assert torch.allclose(out, x, atol=1e-4)
    with pytest.raises(RuntimeError, match="expected statistics of 1 dimension"):
        torch.native_batch_norm(*arguments, out=(out, torch.empty(2, 2), torch.empty(2)))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("norm", [F.instance_norm, F.batch_norm], ids=["instance", "batch"])
def test_gradients_of_halves_are_rounded_once(norm, dtype):
    x = torch.randn(1 if norm is F.batch_norm else 3, 2, 3, dtype=torch.float64).to(dtype)
    seed = torch.randn(x.shape, dtype=torch.float64).to(dtype)

    def gradient(x, seed):
        x = x.detach().clone().requires_grad_()
        options = {} if norm is F.instance_norm else {"training": True}
        running = () if norm is F.instance_norm else (None, None)
        return torch.autograd.grad(norm(x, *running, **options), x, seed)[0]

    assert gradient(x, seed).equal(gradient(x.float(), seed.float()).to(dtype))
