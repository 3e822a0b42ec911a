"""Batch, group and instance normalisation: values and gradients in each layout, against sums in
float64, and the same bits for any number of threads."""

import math

import pytest
import rushlight as torch
import rushlight.nn.functional as F

SHAPES = [
    (4, 6),
    (3, 6, 5),
    (2, 6, 7, 9),
    (1, 4, 3, 3),
    (2, 6, 1, 1),
    (2, 4, 3, 2, 5),
    (3, 4, 40, 41),
]
TOLERANCE = {
    torch.float64: 1e-10,
    torch.float32: 1e-4,
    torch.float16: 1e-2,
    torch.bfloat16: 5e-2,
}


def plain(x, weight, bias, groups, eps):
    """The definition: over the batch where groups is 0."""
    shape = x.shape
    if groups == 0:
        rows, dims = x, [d for d in range(x.dim()) if d != 1]
    else:
        rows, dims = x.reshape(shape[0], groups, -1), [2]
    mean = rows.mean(dims, keepdim=True)
    variance = ((rows - mean) ** 2).mean(dims, keepdim=True)
    normal = ((rows - mean) / (variance + eps).sqrt()).reshape(shape)
    by_channel = [1, -1] + [1] * (x.dim() - 2)
    return normal * weight.reshape(by_channel) + bias.reshape(by_channel)


def laid_out(x, last):
    if not last or x.dim() not in (4, 5):
        return x
    return x.contiguous(
        memory_format=torch.channels_last if x.dim() == 4 else torch.channels_last_3d
    )


def normalized(kind, x, weight, bias):
    if kind == "batch":
        return F.batch_norm(x, None, None, weight, bias, True, 0.1, 1e-3)
    if kind == "group":
        return F.group_norm(x, 2, weight, bias, 1e-3)
    return F.instance_norm(x, None, None, weight, bias, True, 0.1, 1e-3)


def groups_of(kind, x):
    return {"batch": 0, "group": 2, "instance": x.shape[1]}[kind]


def with_gradients(run, x, weight, bias, grad):
    leaves = [t.detach().requires_grad_() for t in (x, weight, bias)]
    out = run(*leaves)
    return [out.detach(), *torch.autograd.grad(out, leaves, grad)]


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize("kind", ["batch", "group", "instance"])
def test_values_and_gradients(kind, dtype, last):
    torch.manual_seed(0)
    for shape in SHAPES:
        positions = math.prod(shape[2:])
        if kind == "instance" and positions == 1:
            continue
        x = laid_out(torch.randn(shape).to(dtype), last)
        grad = laid_out(torch.randn(shape).to(dtype), last)
        weight, bias = torch.randn(2, shape[1]).to(dtype)
        groups = groups_of(kind, x)
        made = with_gradients(lambda *a, k=kind: normalized(k, *a), x, weight, bias, grad)
        wanted = with_gradients(
            lambda *a, g=groups: plain(*a, g, 1e-3),
            *(t.double() for t in (x, weight, bias, grad)),
        )
        for name, a, b in zip(("out", "input", "weight", "bias"), made, wanted, strict=True):
            worst = (a.double() - b).abs().max() / b.abs().max().clamp(min=1)
            assert worst < TOLERANCE[dtype], (shape, name, worst.item())
            assert a.dtype == dtype
        if last and x.dim() == 4 and positions > 1:
            assert made[0].is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("kind", ["batch", "group", "instance"])
def test_gradients_differentiate(kind, last):
    torch.manual_seed(1)
    x = laid_out(torch.randn(2, 4, 3, 2, dtype=torch.float64), last).requires_grad_()
    weight = torch.randn(4, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(4, dtype=torch.float64, requires_grad=True)
    run = lambda *a: normalized(kind, *a)  # noqa: E731
    assert torch.autograd.gradcheck(run, (x, weight, bias))
    assert torch.autograd.gradgradcheck(run, (x, weight, bias))


def test_evaluation_differentiates():
    torch.manual_seed(2)
    mean, variance = torch.randn(4, dtype=torch.float64), torch.rand(4, dtype=torch.float64) + 0.5
    for shape in ((3, 4), (2, 4, 3, 2)):
        x = torch.randn(shape, dtype=torch.float64, requires_grad=True)
        weight = torch.randn(4, dtype=torch.float64, requires_grad=True)
        bias = torch.randn(4, dtype=torch.float64, requires_grad=True)
        run = lambda *a: F.batch_norm(a[0], mean, variance, *a[1:])  # noqa: E731
        assert torch.autograd.gradcheck(run, (x, weight, bias))
        assert torch.autograd.gradgradcheck(run, (x, weight, bias))
        scale = (variance + 1e-5).rsqrt()
        by = [1, 4] + [1] * (len(shape) - 2)
        wanted = (x - mean.view(by)) * (scale * weight).view(by) + bias.view(by)
        assert torch.allclose(run(x, weight, bias), wanted)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("kind", ["batch", "group", "instance"])
def test_threads_do_not_change_bits(kind, last, dtype):
    torch.manual_seed(3)
    x = laid_out(torch.randn(6, 32, 28, 29).to(dtype), last)
    grad = laid_out(torch.randn(6, 32, 28, 29).to(dtype), last)
    weight, bias = torch.randn(2, 32).to(dtype)
    before = torch.get_num_threads()
    found = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            run = lambda *a: normalized(kind, *a)  # noqa: E731
            found.append(with_gradients(run, x, weight, bias, grad))
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        assert all(a.equal(b) for a, b in zip(found[0], other, strict=True))


def test_running_statistics_follow_the_batch():
    torch.manual_seed(4)
    x = torch.randn(4, 3, 5, 6) * 2 + 1
    for last in (False, True):
        mean, variance = torch.zeros(3), torch.ones(3)
        F.batch_norm(laid_out(x, last), mean, variance, training=True, momentum=0.25)
        assert torch.allclose(mean, 0.25 * x.mean((0, 2, 3)), atol=1e-6)
        assert torch.allclose(variance, 0.75 + 0.25 * x.var((0, 2, 3)), atol=1e-5)
        mean, variance = torch.zeros(3), torch.ones(3)
        F.instance_norm(laid_out(x, last), mean, variance, momentum=0.25)
        assert torch.allclose(mean, 0.25 * x.mean((2, 3)).mean(0), atol=1e-6)
        assert torch.allclose(variance, 0.75 + 0.25 * x.var((2, 3)).mean(0), atol=1e-5)


def test_gradients_of_other_layouts():
    """A gradient that is broadcast, as the mean of the result has it."""
    x = torch.randn(3, 4, 5, 6)
    for last in (False, True):
        leaf = laid_out(x.clone(), last).requires_grad_()
        F.batch_norm(leaf, None, None, training=True).pow(2).mean((2, 3)).sum().backward()
        wanted = x.double().requires_grad_()
        one, none = torch.ones(4).double(), torch.zeros(4).double()
        plain(wanted, one, none, 0, 1e-5).pow(2).mean((2, 3)).sum().backward()
        assert torch.allclose(leaf.grad.double(), wanted.grad, atol=1e-5)


def test_the_operator_called_alone_says_what_it_lacks():
    run = torch.ops.aten._channel_normalized
    flat = torch.randn(4, requires_grad=True)
    one = torch.ones(())
    with pytest.raises(RuntimeError, match="expected self with a dimension of channels"):
        run(flat, one, one, None, None, [0], 1e-5, 0.0).sum().backward()
    image = torch.randn(2, 5, 3, requires_grad=True)
    moments = torch.ones(2, 5, 1)
    with pytest.raises(RuntimeError, match="groups that divide 5 channels, got 2"):
        run(image, moments, moments, None, None, [2], 1e-5, 2.0).sum().backward()
