"""Losses against values worked out beforehand."""

import pytest
import rushlight as torch
import rushlight.nn.functional as F
from rushlight import nn

LOGITS = [[1.0, 2.0, 3.0], [4.0, 6.0, 9.0]]
A = [0.0, 1.0, 2.0]
B = [0.5, 1.0, 0.0]


def near(value, expected):
    assert value.item() == pytest.approx(expected, abs=2e-6)


def test_cross_entropy():
    logits = torch.tensor(LOGITS)
    target = torch.tensor([0, 2])
    near(nn.CrossEntropyLoss()(logits, target), 1.231296)
    near(nn.CrossEntropyLoss(label_smoothing=0.1)(logits, target), 1.314629)
    near(nn.CrossEntropyLoss(torch.tensor([1.0, 2.0, 3.0]))(logits, target), 0.643140)
    ignored = torch.tensor([0, -100])
    near(nn.CrossEntropyLoss(reduction="sum")(logits, ignored), 2.407606)


def test_nll_is_cross_entropy_of_log_softmax():
    near(nn.NLLLoss()(F.log_softmax(torch.tensor(LOGITS), 1), torch.tensor([0, 2])), 1.231296)


def test_linear_cross_entropy_is_the_loss_of_a_linear_layer():
    torch.manual_seed(0)
    loss = nn.LinearCrossEntropyLoss(4, 3, bias=True)
    x, target = torch.randn(5, 4), torch.tensor([0, 1, 2, 1, 0])
    expected = F.cross_entropy(loss.linear(x), target)
    near(loss(x, target), expected.item())


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (nn.MSELoss(), 1.416667),
        (nn.MSELoss(reduction="sum"), 4.25),
        (nn.L1Loss(), 0.833333),
        (nn.SmoothL1Loss(), 0.541667),
        (nn.HuberLoss(delta=0.5), 0.333333),
    ],
    ids=repr,
)
def test_distances(loss, expected):
    near(loss(torch.tensor(A), torch.tensor(B)), expected)


def test_weighted_mean_is_over_the_weights():
    weight = torch.tensor([1.0, 2.0, 1.0])
    near(F.mse_loss(torch.tensor(A), torch.tensor(B), weight=weight), 1.0625)


def test_reduction_none_keeps_the_shape():
    loss = nn.MSELoss(reduction="none")(torch.tensor(A), torch.tensor(B))
    assert loss.tolist() == [0.25, 0.0, 4.0]


def test_binary_cross_entropy_with_logits():
    near(nn.BCEWithLogitsLoss()(torch.tensor(A), torch.tensor([1.0, 0.0, 1.0])), 0.711112)


def test_gaussian_nll():
    near(nn.GaussianNLLLoss()(torch.tensor(A), torch.tensor(B), torch.ones(3)), 0.708333)
    with pytest.raises(ValueError, match="var has negative entry/entries"):
        F.gaussian_nll_loss(torch.tensor(A), torch.tensor(B), -torch.ones(3))


def test_older_flags_name_their_successor():
    with pytest.warns(UserWarning, match="please use reduction='sum' instead"):
        loss = nn.L1Loss(size_average=False)
    assert loss.reduction == "sum"


def test_shapes_that_differ_are_warned_about():
    with pytest.warns(UserWarning, match="different to the input size"):
        F.mse_loss(torch.ones(2, 1), torch.ones(2))


def test_unknown_reduction():
    with pytest.raises(ValueError, match="most is not a valid value for reduction"):
        F.mse_loss(torch.ones(2), torch.ones(2), reduction="most")


def test_binary_target_must_have_the_inputs_shape():
    with pytest.raises(ValueError, match="must be the same as input size"):
        F.binary_cross_entropy_with_logits(torch.ones(2), torch.ones(3))


def test_nll_loss_of_planes_and_ignored_targets():
    x = torch.arange(24.0).view(2, 3, 4)
    target = torch.tensor([[0, 1, 2, -1], [2, -1, 0, 0]])
    each = F.nll_loss(x, target, reduction="none", ignore_index=-1)
    assert each.tolist() == [[-0.0, -5.0, -10.0, 0.0], [-20.0, 0.0, -14.0, -15.0]]
    assert F.nll_loss(x, target, ignore_index=-1).item() == pytest.approx(-64 / 6)
    assert F.nll_loss(x, target, reduction="sum", ignore_index=-1).item() == -64
    assert F.nll_loss(x.mT.contiguous().mT, target, reduction="sum", ignore_index=-1).item() == -64
    assert F.nll_loss(torch.tensor([1.0, 2.0]), torch.tensor(1)).item() == -2
    assert F.nll_loss(x.half(), target, ignore_index=-1, reduction="sum").item() == -64
    with pytest.raises(IndexError, match="Target 3 is out of bounds"):
        F.nll_loss(x, target.clamp(min=0) + 1)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_gradients_of_nll_loss(reduction):
    x = torch.randn(3, 4, 2, dtype=torch.float64, requires_grad=True)
    target = torch.tensor([[0, 3], [-100, 1], [2, 2]])
    loss = lambda x: F.nll_loss(x, target, reduction=reduction)  # noqa: E731
    assert torch.autograd.gradcheck(loss, (x,))
    assert torch.autograd.gradgradcheck(lambda x: loss(x) ** 2, (x,))


@pytest.mark.parametrize("shape", [(5, 4), (2, 3, 4, 5)])
def test_gradient_of_ignored_targets_is_zero(shape):
    x = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    target = torch.randint(0, shape[1], (shape[0], *shape[2:]))
    target.view(-1)[1] = -7
    run = lambda t: F.nll_loss(t, target, ignore_index=-7, reduction="sum")  # noqa: E731
    (grad,) = torch.autograd.grad(run(x), x)
    kept = F.one_hot(target.clamp(min=0), shape[1]).movedim(-1, 1) * (target != -7).unsqueeze(1)
    assert grad.equal(-kept.double())
    assert torch.autograd.gradcheck(run, (x,))
    assert torch.autograd.gradgradcheck(lambda t: run(t * t), (x,))


@pytest.mark.parametrize("weights", [{}, {"weight": True}, {"pos_weight": True}])
def test_logits_and_targets_of_two_dtypes(weights):
    torch.manual_seed(0)
    logits = torch.randn(5, requires_grad=True)
    targets = torch.rand(5, dtype=torch.float64)
    given = {name: torch.rand(5) for name in weights}
    loss = F.binary_cross_entropy_with_logits(logits, targets, **given)
    wide = {name: w.double() for name, w in given.items()}
    expected = F.binary_cross_entropy_with_logits(logits.double(), targets, **wide)
    assert loss.dtype is torch.float64
    torch.testing.assert_close(loss, expected)
    (gradient,) = torch.autograd.grad(loss, logits)
    assert gradient.dtype is torch.float32
    torch.testing.assert_close(gradient, torch.autograd.grad(expected, logits)[0])
    assert F.binary_cross_entropy_with_logits(logits, targets.half()).dtype is torch.float16
