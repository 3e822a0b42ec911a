"""The loss of a linear layer's logits, against the same composed of parts that hold them."""

import math

import pytest
import rushlight as torch
import rushlight.nn as nn
import rushlight.nn.functional as F


def close(actual, expected, rtol=1e-5, atol=1e-6):
    assert actual.shape == expected.shape and actual.dtype == expected.dtype
    assert torch.allclose(actual, expected, rtol=rtol, atol=atol), (actual, expected)


def composed(x, w, target, b=None, weight=None, reduction="mean", ignore=-100, smooth=0.0, z=0.0):
    """What the loss means, in float64 tensors that require grad as the operands do."""
    scores = torch.tensordot(x, w, dims=([-1], [-1]))
    if b is not None:
        scores = scores + b
    dim = 1 if x.dim() == 2 else 0
    loss = F.cross_entropy(
        scores, target, weight, ignore_index=ignore, reduction=reduction, label_smoothing=smooth
    )
    if z:
        squares = scores.logsumexp(dim) ** 2
        if target.is_floating_point():
            counted = torch.ones_like(squares)
        else:
            counted = (target != ignore).to(squares.dtype)
        squares = squares * counted
        if reduction == "sum":
            squares = squares.sum()
        elif reduction == "mean":
            squares = squares.sum() / counted.sum()
        loss = loss + z * squares
    return loss


def operands(rows, features, classes, outs, dtype, bias, probabilities, weighted):
    torch.manual_seed(rows * 7 + classes)
    x = torch.randn(rows, features, dtype=torch.float64).to(dtype)
    w = torch.randn(classes, *outs, features, dtype=torch.float64).to(dtype)
    b = torch.randn(classes, *outs, dtype=torch.float64).to(dtype) if bias else None
    if probabilities:
        target = torch.randn(rows, classes, *outs, dtype=torch.float64).softmax(1).to(dtype)
    else:
        target = torch.randint(0, classes, (rows, *outs))
    weight = torch.rand(classes, dtype=torch.float64).to(dtype) + 0.5 if weighted else None
    return x, w, b, target, weight


def as_double(x):
    return None if x is None or not x.is_floating_point() else x.detach().double()


CASES = [
    # rows, features, classes, outs, bias, probabilities, weighted, smoothing, z_loss
    (5, 4, 7, (), False, False, False, 0.0, 0.0),
    (1, 1, 1, (), True, False, False, 0.0, 0.0),
    (33, 20, 300, (), True, False, True, 0.1, 1e-2),
    (50, 37, 129, (), True, True, True, 0.2, 1e-2),
    (9, 5, 11, (3, 2), True, False, True, 0.1, 0.0),
    (9, 5, 11, (2,), False, True, False, 0.0, 1e-3),
    (400, 16, 40, (), False, False, False, 0.0, 1e-3),
    (3, 300, 600, (), True, False, False, 0.3, 0.0),
]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [(torch.float64, 1e-9), (torch.float32, 2e-4), (torch.bfloat16, 0.05), (torch.float16, 0.01)],
    ids=str,
)
def test_agrees_with_its_composition(case, dtype, tolerance, reduction):
    rows, features, classes, outs, bias, probabilities, weighted, smooth, z = case
    x, w, b, target, weight = operands(
        rows, features, classes, outs, dtype, bias, probabilities, weighted
    )
    if not probabilities and rows > 4:
        target[1] = -100
        target[3] = -100
    leaves = [t.clone().requires_grad_() for t in (x, w, b) if t is not None]
    loss = F.linear_cross_entropy(
        leaves[0],
        leaves[1],
        target,
        linear_bias=leaves[2] if bias else None,
        weight=weight,
        reduction=reduction,
        label_smoothing=smooth,
        z_loss=z,
    )
    wide = [as_double(t).requires_grad_() for t in (x, w, b) if t is not None]
    expected = composed(
        wide[0],
        wide[1],
        as_double(target) if probabilities else target,
        wide[2] if bias else None,
        as_double(weight),
        reduction,
        smooth=smooth,
        z=z,
    )
    assert loss.dtype == dtype and loss.shape == expected.shape
    close(loss.double(), expected, rtol=tolerance, atol=tolerance)
    up = torch.randn(expected.shape, dtype=torch.float64)
    loss.backward(up.to(dtype))
    expected.backward(up)
    for mine, theirs in zip(leaves, wide):
        scale = theirs.grad.abs().max().item() + 1e-3
        gap = (mine.grad.double() - theirs.grad).abs().max().item()
        assert gap <= 4 * tolerance * scale


def test_known_values():
    x = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    w = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    loss = F.linear_cross_entropy(x, w, torch.tensor([0, 1]), reduction="none")
    # log(e + 2) - 1 and log(e^2 + 2) - 2
    close(loss, torch.tensor([0.5514447, 0.2395448]), rtol=1e-6, atol=1e-6)


def test_unbatched_input_and_byte_targets():
    x, w = torch.randn(4), torch.randn(7, 4)
    loss = F.linear_cross_entropy(x, w, torch.tensor(3), reduction="none")
    assert loss.shape == ()
    close(loss, F.cross_entropy(w @ x, torch.tensor(3)))
    batch = torch.tensor([1, 6], dtype=torch.uint8)
    both = F.linear_cross_entropy(x.expand(2, 4), w, batch)
    close(both, F.cross_entropy((w @ x).expand(2, 7), batch.long()))


def test_ignored_rows_learn_nothing():
    x = torch.randn(4, 3, requires_grad=True)
    w = torch.randn(5, 3, requires_grad=True)
    target = torch.tensor([1, 2, 2, 4])
    loss = F.linear_cross_entropy(x, w, target, ignore_index=2, z_loss=0.1)
    loss.backward()
    assert x.grad[1].abs().sum() == 0 and x.grad[2].abs().sum() == 0
    assert x.grad[0].abs().sum() > 0
    everything = F.linear_cross_entropy(x, w, torch.full((4,), 2), ignore_index=2)
    assert everything.isnan()


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_backward_runs_again(reduction):
    x = torch.randn(6, 3, requires_grad=True)
    w = torch.randn(5, 3, requires_grad=True)
    loss = F.linear_cross_entropy(x, w, torch.randint(0, 5, (6,)), reduction=reduction).sum()
    loss.backward(retain_graph=True)
    once = x.grad.clone(), w.grad.clone()
    loss.backward(retain_graph=True)
    loss.backward()
    close(x.grad, 3 * once[0])
    close(w.grad, 3 * once[1])
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        loss.backward()


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("probabilities", [False, True])
def test_gradients_of_gradients(reduction, probabilities):
    torch.manual_seed(2)
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    w = torch.randn(5, 2, 3, dtype=torch.float64, requires_grad=True)
    b = torch.randn(5, 2, dtype=torch.float64, requires_grad=True)
    weight = torch.rand(5, dtype=torch.float64) + 0.5
    target = torch.randint(0, 5, (4, 2))
    if probabilities:
        target = torch.rand(4, 5, 2, dtype=torch.float64)
    else:
        target[0, 1] = -100

    def loss(x, w, b):
        return F.linear_cross_entropy(
            x,
            w,
            target,
            linear_bias=b,
            weight=weight,
            reduction=reduction,
            label_smoothing=0.1,
            z_loss=0.05,
        )

    assert torch.autograd.gradcheck(loss, (x, w, b))
    assert torch.autograd.gradgradcheck(loss, (x, w, b))


def test_probabilities_that_learn():
    x = torch.randn(4, 3, dtype=torch.float64)
    w = torch.randn(5, 3, dtype=torch.float64)
    target = torch.rand(4, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda t: F.linear_cross_entropy(x, w, t), (target,))


def test_only_what_is_asked_for():
    x, w = torch.randn(6, 3), torch.randn(5, 3, requires_grad=True)
    target = torch.randint(0, 5, (6,))
    F.linear_cross_entropy(x, w, target).backward()
    assert x.grad is None
    other = w.detach().clone().requires_grad_()
    F.cross_entropy(x @ other.T, target).backward()
    close(w.grad, other.grad, rtol=1e-5, atol=1e-6)
    x.requires_grad_()
    with torch.no_grad():
        assert not F.linear_cross_entropy(x, w, target).requires_grad


def test_tied_weights():
    torch.manual_seed(3)
    embedding = nn.Embedding(11, 4)
    loss = nn.LinearCrossEntropyLoss(4, 11)
    loss.linear.weight = embedding.weight
    tokens, target = torch.randint(0, 11, (8,)), torch.randint(0, 11, (8,))
    loss(embedding(tokens), target).backward()
    tied = embedding.weight.grad.clone()
    embedding.weight.grad = None
    F.cross_entropy(embedding(tokens) @ embedding.weight.T, target).backward()
    close(tied, embedding.weight.grad, rtol=1e-5, atol=1e-6)


def test_threads_do_not_show():
    x = torch.randn(70, 40, requires_grad=True)
    w = torch.randn(3000, 40, requires_grad=True)
    target = torch.randint(0, 3000, (70,))
    threads = torch.get_num_threads()
    results = []
    for count in (1, 2, 5):
        torch.set_num_threads(count)
        loss = F.linear_cross_entropy(x, w, target, label_smoothing=0.1)
        rows = F.linear_cross_entropy(x, w, target, reduction="none")
        gradients = torch.autograd.grad(loss, (x, w)) + torch.autograd.grad(rows.sum(), (x, w))
        results.append((loss, rows, *gradients))
    torch.set_num_threads(threads)
    for other in results[1:]:
        for first, second in zip(results[0], other):
            assert torch.equal(first, second)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("probabilities", [False, True])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_operands_with_gaps_between_their_elements(dtype, probabilities, reduction):
    def spread(x):
        wide = torch.full((*x.shape[:-1], 2 * x.shape[-1]), 1, dtype=x.dtype)
        wide[..., ::2] = x
        return wide[..., ::2]

    given = operands(6, 5, 4, (3,), dtype, True, probabilities, True)
    x, w, b, target, weight = map(spread, given)
    assert not weight.is_contiguous()
    loss = F.linear_cross_entropy(
        x, w, target, linear_bias=b, weight=weight, reduction=reduction, z_loss=0.1
    )
    x, w, b, target, weight = given
    expected = F.linear_cross_entropy(
        x, w, target, linear_bias=b, weight=weight, reduction=reduction, z_loss=0.1
    )
    assert torch.equal(loss, expected)


def test_strided_operands():
    x = torch.randn(4, 9).t()
    w = torch.randn(4, 7, 2).permute(1, 2, 0)
    target = torch.randint(0, 7, (9, 2))
    loss = F.linear_cross_entropy(x, w, target)
    close(loss, F.linear_cross_entropy(x.clone(), w.contiguous(), target))
    close(loss, composed(x, w, target), rtol=1e-5, atol=1e-6)


def test_module():
    loss = nn.LinearCrossEntropyLoss(4, 7, out_features=(2,), bias=True, weight=torch.rand(7))
    assert list(loss.state_dict()) == ["weight", "linear.weight", "linear.bias"]
    assert loss.linear.weight.shape == (14, 4)
    x, target = torch.randn(5, 4), torch.randint(0, 7, (5, 2))
    expected = composed(
        x, loss.linear.weight.view(7, 2, 4), target, loss.linear.bias.view(7, 2), loss.weight
    )
    close(loss(x, target), expected, rtol=1e-5, atol=1e-6)
    assert "z_loss=0.5" in repr(nn.LinearCrossEntropyLoss(4, 7, z_loss=0.5))


def test_options():
    options = nn.LinearCrossEntropyOptions(batch_chunk_size=2, acc_policy="balanced")
    assert repr(options) == (
        "LinearCrossEntropyOptions(allow_retain_graph=False, batch_chunk_size=2, "
        "chunking_method='auto', acc_policy='balanced', acc_dtype=None)"
    )
    assert options == nn.LinearCrossEntropyOptions(batch_chunk_size=2, acc_policy="balanced")
    assert nn.LinearCrossEntropyOptions(chunking_method="aspect_ratio:3").acc_dtype is None
    x, w, target = torch.randn(5, 4), torch.randn(7, 4), torch.randint(0, 7, (5,))
    with_options = F.linear_cross_entropy(x, w, target, options=options)
    assert torch.equal(with_options, F.linear_cross_entropy(x, w, target))


def test_inputs_without_features():
    target = torch.tensor([0, 3])
    loss = F.linear_cross_entropy(torch.ones(2, 0), torch.ones(7, 0), target)
    assert loss.item() == pytest.approx(math.log(7))
    loss = F.linear_cross_entropy(
        torch.ones(2, 0), torch.ones(7, 3, 0), target[:, None].expand(2, 3), reduction="none"
    )
    assert loss.shape == (2, 3)


def test_gradients_are_handed_on_without_a_copy():
    x, w = torch.randn(6, 3), torch.randn(5, 3, requires_grad=True)
    seen = []
    w.register_hook(lambda gradient: seen.append(gradient.data_ptr()))
    F.linear_cross_entropy(x, w, torch.zeros(6, dtype=torch.long)).backward()
    assert seen == [w.grad.data_ptr()]


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_autocast(reduction):
    torch.manual_seed(4)
    x = torch.randn(6, 8, dtype=torch.bfloat16, requires_grad=True)
    w = torch.randn(5, 8, requires_grad=True)
    target = torch.randint(0, 5, (6,))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = F.linear_cross_entropy(x, w, target, reduction=reduction)
    assert loss.dtype == torch.float32
    expected = F.cross_entropy(x.float() @ w.bfloat16().float().T, target, reduction=reduction)
    close(loss, expected, rtol=1e-4, atol=1e-4)
    loss.sum().backward()
    assert x.grad.dtype == torch.bfloat16 and w.grad.dtype == torch.float32
