"""Layers and losses at the edges: no channels, one sample, parameters of other dtypes."""

import math

import pytest
import rushlight as torch
import rushlight.nn.functional as F

X = torch.arange(36.0).reshape(2, 6, 3)
W = torch.ones(6)
LINE = torch.tensor([0.0, 1.0, 2.0])
EMPTY = torch.zeros(0, dtype=torch.int64)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves_beside_wide_parameters_stay_halves(dtype):
    for out in (
        F.group_norm(X.to(dtype), 2, W, W),
        F.group_norm(X.to(dtype), 2, W),
        F.layer_norm(X.to(dtype), (3,), torch.ones(3), torch.ones(3)),
        F.batch_norm(X.to(dtype), W.clone(), W.clone(), W, W, True),
    ):
        assert out.dtype == dtype
    assert F.group_norm(X.to(dtype), 2, W, W)[0, 1, 1].item() == 1.0


def test_other_parameters_share_the_dtype_of_the_input():
    three = torch.ones(3)
    with pytest.raises(
        RuntimeError, match="mixed dtype .CPU.: all inputs must share same datatype"
    ):
        F.group_norm(X.double(), 2, W, W)
    with pytest.raises(RuntimeError, match="all inputs must share same datatype"):
        F.layer_norm(X.double(), (3,), three)
    with pytest.raises(RuntimeError, match="all inputs must share same datatype"):
        F.batch_norm(X.double(), None, None, W, W, True)
    with pytest.raises(RuntimeError, match="all inputs must share same datatype"):
        F.instance_norm(X.double(), None, None, W, W)
    with pytest.raises(RuntimeError, match="expect parameter to have scalar type of Float"):
        F.layer_norm(X, (3,), three.double())
    assert F.rms_norm(X.double(), (3,), three).dtype == torch.float64
    with pytest.raises(ValueError, match="must have at least 1 dimensions, but got 0"):
        F.rms_norm(LINE.sum(), (3,))


def test_one_sample_and_its_class():
    for function in (F.nll_loss, F.cross_entropy):
        target = torch.tensor([1])
        assert function(LINE, target).item() == function(LINE, target[0]).item()
        with pytest.raises(ValueError, match="1D target must have size 1, but got target size: 2"):
            function(LINE, torch.tensor([1, 1]))
    with pytest.raises(ValueError, match="Expected 1 or more dimensions"):
        F.nll_loss(LINE.sum(), torch.tensor([1]))
    with pytest.raises(IndexError):
        F.cross_entropy(LINE.sum(), torch.tensor([1]))
    assert F.multilabel_margin_loss(torch.ones(1), torch.tensor(0)).shape == ()


def test_margins_of_no_samples():
    none = torch.ones(0, 5)
    assert F.multi_margin_loss(none, EMPTY, reduction="none").shape == (0,)
    assert math.isnan(F.multi_margin_loss(none, EMPTY).item())
    assert F.multilabel_margin_loss(none, none.long(), reduction="none").shape == (0,)
    with pytest.raises(RuntimeError, match="Expected non-empty vector or matrix"):
        F.multi_margin_loss(torch.ones(5, 0), torch.zeros(5, dtype=torch.int64))


def test_divergence_refuses_integers():
    for pair in ((LINE, LINE.long()), (LINE.long(), LINE)):
        with pytest.raises(RuntimeError, match="Integral inputs not supported"):
            F.kl_div(*pair, reduction="sum")


def test_borders_of_nothing():
    for mode in ("reflect", "replicate"):
        with pytest.raises(RuntimeError, match="Expected 2D or 3D .batch mode.*got: .0, 3"):
            F.pad(torch.ones(0, 3), (1, 2), mode)
        assert F.pad(torch.ones(0, 2, 3), (1, 2), mode).shape == (0, 2, 6)
    with pytest.raises(RuntimeError, match="Expected 3D or 4D"):
        F.pad(torch.ones(5, 0, 4, 4), (1, 2, 0, 0), "replicate")
    with pytest.raises(RuntimeError, match="length must be non-negative"):
        F.pad(torch.ones(1, 3, 4, 1), (-2, 2))


def test_averages_of_no_channels():
    assert F.adaptive_avg_pool1d(torch.ones(2, 0, 8), 5).shape == (2, 0, 5)
    assert F.adaptive_avg_pool2d(torch.ones(0, 8, 8), 5).shape == (0, 5, 5)
    assert F.adaptive_avg_pool3d(torch.ones(0, 8, 8, 8), 5).shape == (0, 5, 5, 5)
    assert F.adaptive_max_pool2d(torch.ones(0, 8, 8), 5).shape == (0, 5, 5)
    assert F.interpolate(torch.ones(2, 0, 4), size=3, mode="area").shape == (2, 0, 3)
    for shape, pool in (
        ((1, 2, 0, 8), F.adaptive_avg_pool2d),
        ((1, 0, 8, 8), F.adaptive_max_pool2d),
    ):
        with pytest.raises(RuntimeError, match="non-zero size for non-batch dimensions"):
            pool(torch.ones(shape), 5)
    assert torch.pdist(torch.ones(4, 0), math.inf).tolist() == [0.0] * 6
