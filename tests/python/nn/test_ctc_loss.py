"""The CTC loss against the sum over all paths."""

import itertools

import numpy as np
import pytest
import rushlight as torch
from rushlight.nn import functional as F


def collapsed(path, blank):
    return [k for k, _ in itertools.groupby(path) if k != blank]


def likelihood(probabilities, labels, blank=0):
    """The sum of the probabilities of all paths that collapse to the labels."""
    steps, classes = probabilities.shape
    total = 0.0
    for path in itertools.product(range(classes), repeat=steps):
        if collapsed(path, blank) == list(labels):
            total += np.prod(probabilities[np.arange(steps), path])
    return total


def scores(dtype=torch.float64):
    torch.manual_seed(0)
    return torch.randn(5, 3, 4, dtype=torch.float64).log_softmax(2).to(dtype)


TARGETS = torch.tensor([[1, 2, 2], [3, 3, 0], [1, 0, 0]])
STEPS, LABELS = torch.tensor([5, 4, 3]), torch.tensor([3, 2, 0])


def wanted(blank=0):
    found = []
    for b in range(3):
        probabilities = scores()[: STEPS[b], b].exp().numpy()
        found.append(-np.log(likelihood(probabilities, TARGETS[b][: LABELS[b]].tolist(), blank)))
    return found


@pytest.mark.parametrize("joined", [False, True])
def test_values(joined):
    targets = torch.tensor([1, 2, 2, 3, 3]) if joined else TARGETS
    for dtype, near in ((torch.float64, 1e-10), (torch.float32, 1e-5)):
        made = F.ctc_loss(scores(dtype), targets, STEPS, LABELS, reduction="none")
        np.testing.assert_allclose(made.numpy(), wanted(), near)
    total = F.ctc_loss(scores(), targets, STEPS.tolist(), LABELS.tolist(), reduction="sum")
    assert total.item() == pytest.approx(sum(wanted()))
    mean = F.ctc_loss(scores(), targets, STEPS, LABELS)
    assert mean.item() == pytest.approx(np.mean(np.array(wanted()) / [3, 2, 1]))


def test_gradient():
    """The gradient is by the scores before a softmax: the loss knows its argument is normalised."""
    logits = torch.randn(5, 3, 4, dtype=torch.float64, requires_grad=True)

    def loss(logits):
        return F.ctc_loss(logits.log_softmax(2), TARGETS, STEPS, LABELS, reduction="none")

    assert torch.autograd.gradcheck(loss, logits)
    scores = logits.detach().log_softmax(2).requires_grad_()
    F.ctc_loss(scores, TARGETS, STEPS, LABELS, reduction="sum").backward()
    assert scores.grad[4, 1].abs().sum() == 0  # beyond the steps of the second sample
    assert torch.allclose(scores.grad.sum(2), torch.zeros(5, 3, dtype=torch.float64), atol=1e-10)


def test_labels_that_do_not_fit():
    scores = torch.zeros(2, 1, 3).log_softmax(2).requires_grad_()
    given = torch.tensor([[1, 1]]), torch.tensor([2]), torch.tensor([2])
    assert F.ctc_loss(scores, *given).item() == float("inf")
    made = F.ctc_loss(scores, *given, zero_infinity=True)
    made.backward()
    assert made.item() == 0 and scores.grad.abs().sum() == 0


def test_one_sample_without_a_batch():
    one = F.ctc_loss(scores()[:, 0], TARGETS[0], torch.tensor(5), torch.tensor(3), reduction="none")
    assert one.shape == () and one.item() == pytest.approx(wanted()[0])


def test_compiled():
    run = torch.compile(lambda s: F.ctc_loss(s, TARGETS, STEPS, LABELS))
    assert torch.equal(run(scores()), F.ctc_loss(scores(), TARGETS, STEPS, LABELS))


ERRORS = [
    (lambda s: F.ctc_loss(s, TARGETS, STEPS, LABELS, blank=4), "blank must be in label range"),
    (lambda s: F.ctc_loss(s, TARGETS, STEPS + 1, LABELS), "input_lengths to have value at most 5"),
    (lambda s: F.ctc_loss(s, TARGETS, STEPS, LABELS + 1), "to have size at least 4"),
    (lambda s: F.ctc_loss(s, TARGETS + 2, STEPS, LABELS), "targets must be in label range"),
    (lambda s: F.ctc_loss(s, TARGETS, STEPS[:2], LABELS), "must be of size batch_size"),
    (lambda s: F.ctc_loss(s, TARGETS.float(), STEPS, LABELS), "scalar types: Long, Int"),
]


@pytest.mark.parametrize("function, text", ERRORS)
def test_errors(function, text):
    with pytest.raises(RuntimeError, match=text):
        function(scores())
