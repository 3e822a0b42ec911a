"""Losses of margins and distances, and batch statistics, on values worked out by hand."""

import math

import pytest
import rushlight as torch
import rushlight.nn.functional as F


def test_margin_ranking_loss():
    a, b = torch.tensor([1.0, 2.0]), torch.tensor([0.0, 4.0])
    target = torch.tensor([1.0, 1.0])
    loss = F.margin_ranking_loss(a, b, target, margin=0.5, reduction="none")
    assert loss.tolist() == [0.0, 2.5]


def test_hinge_embedding_loss():
    x = torch.tensor([0.25, 0.25, 3.0])
    target = torch.tensor([1.0, -1.0, -1.0])
    assert F.hinge_embedding_loss(x, target, reduction="none").tolist() == [0.25, 0.75, 0.0]


def test_cosine_similarity_and_embedding_loss():
    a, b = torch.tensor([[3.0, 4.0]]), torch.tensor([[4.0, 3.0]])
    assert F.cosine_similarity(a, b).item() == pytest.approx(0.96, abs=1e-6)
    near = F.cosine_embedding_loss(a, b, torch.tensor([1.0]))
    far = F.cosine_embedding_loss(a, b, torch.tensor([-1.0]), margin=0.5)
    assert near.item() == pytest.approx(0.04, abs=1e-6)
    assert far.item() == pytest.approx(0.46, abs=1e-6)


def test_triplet_margin_loss():
    anchor, positive = torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]])
    negative = torch.tensor([[0.0, 2.0]])
    loss = F.triplet_margin_loss(anchor, positive, negative, margin=1.0)
    assert loss.item() == pytest.approx(4.0, abs=1e-4)


def test_poisson_and_soft_margin_loss():
    x, target = torch.tensor([0.0, 1.0]), torch.tensor([2.0, 0.0])
    loss = F.poisson_nll_loss(x, target, reduction="none")
    assert loss.tolist() == pytest.approx([1.0, math.e], abs=1e-6)
    soft = F.soft_margin_loss(torch.tensor([0.0]), torch.tensor([1.0]))
    assert soft.item() == pytest.approx(math.log(2), abs=1e-6)


def test_multi_margin_loss():
    x = torch.tensor([[0.5, 0.25, 1.0]], requires_grad=True)
    loss = F.multi_margin_loss(x, torch.tensor([0]))
    assert loss.item() == pytest.approx((0.75 + 1.5) / 3)
    loss.backward()
    assert x.grad.tolist()[0] == pytest.approx([-2 / 3, 1 / 3, 1 / 3])
    with pytest.raises(RuntimeError, match="target out of range"):
        F.multi_margin_loss(x, torch.tensor([3]))


def test_multilabel_margin_loss():
    x = torch.tensor([[0.1, 0.2, 0.4, 0.8]])
    target = torch.tensor([[3, 0, -1, 1]])
    assert F.multilabel_margin_loss(x, target).item() == pytest.approx(0.85)


def test_batch_norm_statistics():
    x = torch.tensor([[1.0, 10.0], [3.0, 30.0]], requires_grad=True)
    mean, variance = torch.zeros(2), torch.ones(2)
    y = F.batch_norm(x, mean, variance, training=True, momentum=0.5, eps=1e-12)
    assert y.flatten().tolist() == pytest.approx([-1.0, -1.0, 1.0, 1.0])
    assert mean.tolist() == [1.0, 10.0]
    assert variance.tolist() == [1.5, 100.5]
    y.sum().backward()
    assert x.grad.flatten().tolist() == pytest.approx([0.0] * 4, abs=1e-5)
    still = F.batch_norm(x, torch.tensor([1.0, 10.0]), torch.tensor([4.0, 100.0]), eps=1e-12)
    assert still.flatten().tolist() == pytest.approx([0.0, 0.0, 1.0, 2.0])


def test_instance_norm_is_by_sample():
    x = torch.tensor([[[1.0, 3.0]], [[10.0, 30.0]]])
    y = F.instance_norm(x, eps=1e-12)
    assert y.flatten().tolist() == pytest.approx([-1.0, 1.0, -1.0, 1.0])


@pytest.mark.parametrize("target", [torch.zeros(3, dtype=torch.int64), torch.zeros(3)])
def test_batch_sizes_are_compared_first(target):
    with pytest.raises(ValueError, match="to match target batch_size"):
        F.cross_entropy(torch.zeros(2, 4), target)


def test_class_weights_and_targets_of_other_dtypes():
    x, target = torch.zeros(2, 4), torch.tensor([0, 1])
    with pytest.raises(RuntimeError, match="expected scalar type Float but found Double"):
        F.nll_loss(x, target, weight=torch.ones(4, dtype=torch.float64))
    with pytest.raises(RuntimeError, match="ignore_index is not supported for floating point"):
        F.cross_entropy(x, torch.rand(2, 4), ignore_index=2)


def test_soft_margin_loss_far_from_zero():
    x = torch.tensor([-200.0, 200.0], requires_grad=True)
    loss = F.soft_margin_loss(x, torch.ones(2), reduction="none")
    (grad,) = torch.autograd.grad(loss.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(grad.sum(), x)
    assert loss.tolist() == [200.0, 0.0]
    assert grad.tolist() == [-1.0, 0.0]
    assert second.tolist() == [0.0, 0.0]
