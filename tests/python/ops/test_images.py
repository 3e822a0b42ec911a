"""Resizing and rearranging images, and windows of signal processing."""

import pytest
import rushlight as torch
import rushlight.nn.functional as F


def test_nearest():
    x = torch.tensor([[[1.0, 2.0]]])
    assert F.interpolate(x, scale_factor=2).tolist() == [[[1.0, 1.0, 2.0, 2.0]]]
    assert F.interpolate(x, size=3, mode="nearest-exact").tolist() == [[[1.0, 2.0, 2.0]]]
    assert F.interpolate(x.byte(), size=1).tolist() == [[[1]]]


def test_linear():
    x = torch.tensor([[[0.0, 4.0]]])
    assert F.interpolate(x, size=4, mode="linear").tolist() == [[[0.0, 1.0, 3.0, 4.0]]]
    aligned = F.interpolate(x, size=3, mode="linear", align_corners=True)
    assert aligned.tolist() == [[[0.0, 2.0, 4.0]]]
    plane = torch.tensor([[[[0.0, 2.0], [4.0, 6.0]]]])
    result = F.interpolate(plane, size=(3, 3), mode="bilinear", align_corners=True)
    assert result[0, 0].tolist() == [[0.0, 1.0, 2.0], [2.0, 3.0, 4.0], [4.0, 5.0, 6.0]]


def test_positions_have_the_precision_of_the_elements():
    x = torch.arange(7.0, dtype=torch.float64).view(1, 1, 7)
    made = F.interpolate(x, size=11, mode="linear")
    assert made[0, 0, 1].item() == pytest.approx(7 / 11 * 1.5 - 0.5, rel=1e-15)


def test_cubic_keeps_constants_and_passes_gradients():
    x = torch.full((1, 1, 4, 5), 3.0, dtype=torch.float64, requires_grad=True)
    made = F.interpolate(x, size=(7, 3), mode="bicubic")
    assert made.flatten().tolist() == pytest.approx([3.0] * 21)
    (grad,) = torch.autograd.grad(made.sum(), x)
    assert grad.sum().item() == pytest.approx(21.0)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("antialias", [False, True])
def test_planes_are_resized_row_by_row_and_column_by_column(mode, antialias):
    torch.manual_seed(0)
    x = torch.randn(2, 3, 7, 9, dtype=torch.float64)
    rows = F.interpolate(x, size=(4, 9), mode=mode, antialias=antialias)
    both = F.interpolate(x, size=(4, 13), mode=mode, antialias=antialias)
    assert torch.allclose(F.interpolate(rows, size=(4, 13), mode=mode, antialias=antialias), both)
    turned = F.interpolate(x.mT, size=(13, 4), mode=mode, antialias=antialias)
    assert torch.allclose(turned.mT, both)
    assert torch.allclose(both.float(), F.interpolate(x.float(), size=(4, 13), mode=mode,
                                                      antialias=antialias), atol=1e-5)  # fmt: skip


def test_gradients_of_interpolation():
    x = torch.randn(1, 2, 3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), (x,)
    )
    assert torch.autograd.gradgradcheck(
        lambda x: F.interpolate(x, size=(5, 2), mode="bilinear") ** 2, (x,)
    )


def test_resize_mistakes():
    with pytest.raises(RuntimeError, match="greater than 0"):
        F.interpolate(torch.ones(1, 1, 2), size=0)


def test_pixel_shuffle_and_back():
    x = torch.arange(8).view(1, 4, 1, 2)
    shuffled = F.pixel_shuffle(x, 2)
    assert shuffled.tolist() == [[[[0, 2, 1, 3], [4, 6, 5, 7]]]]
    assert torch.equal(F.pixel_unshuffle(shuffled, 2), x)
    with pytest.raises(RuntimeError, match="divisible by the square"):
        F.pixel_shuffle(x, 3)


def test_channel_shuffle():
    x = torch.arange(4).view(1, 4, 1)
    assert F.channel_shuffle(x, 2).flatten().tolist() == [0, 2, 1, 3]


def test_windows():
    assert torch.hann_window(4).tolist() == pytest.approx([0.0, 0.5, 1.0, 0.5], abs=1e-6)
    assert torch.hann_window(3, periodic=False).tolist() == pytest.approx([0, 1, 0], abs=1e-6)
    assert torch.bartlett_window(4).tolist() == pytest.approx([0.0, 0.5, 1.0, 0.5])
    assert torch.hamming_window(1).tolist() == [1.0]
    assert torch.blackman_window(0).shape == (0,)
    assert torch.kaiser_window(3, periodic=False)[1].item() == pytest.approx(1.0)
    with pytest.raises(RuntimeError, match="non-negative window_length"):
        torch.hann_window(-1)


def test_rrelu():
    x = torch.tensor([-1.0, 2.0, -1.0])
    assert torch.rrelu(x, 0.25, 0.75).tolist() == [-0.5, 2.0, -0.5]
    drawn = torch.rrelu(x, 0.25, 0.75, training=True)
    assert drawn[1] == 2.0
    assert ((drawn[::2] <= -0.25) & (drawn[::2] >= -0.75)).all()
    with pytest.raises(RuntimeError, match="Lower bound"):
        torch.rrelu(x, 1.0, 0.5)


def bytes_resized(rows, weights, places):
    """One line of bytes by rounded weights, as bytes."""
    made = [sum(x * w for x, w in zip(rows, line, strict=True)) for line in weights]
    return [min(max((total + (1 << (places - 1))) >> places, 0), 255) for total in made]


def test_bytes_are_resized_in_integers():
    line = torch.tensor([10, 21, 200], dtype=torch.uint8).view(1, 1, 1, 3)
    found = F.interpolate(line, size=(1, 2), mode="bilinear", align_corners=False)
    # Weights 3/4 and 1/4 keep 15 binary places in 16 bits.
    weights = [[24576, 8192, 0], [0, 8192, 24576]]
    assert found.flatten().tolist() == bytes_resized([10, 21, 200], weights, 15)


def test_antialias_averages_what_a_step_spans():
    x = torch.arange(8.0).view(1, 1, 1, 8)
    found = F.interpolate(x, size=(1, 2), mode="bilinear", antialias=True)
    # A triangle of half width 4 about 2 and 6, cut off at the ends.
    weights = [1 - abs(i + 0.5 - 2) / 4 for i in range(6)]
    first = sum(i * w for i, w in enumerate(weights)) / sum(weights)
    assert found.flatten().tolist() == pytest.approx([first, 7 - first])
    assert F.interpolate(x, size=(1, 8), mode="bicubic", antialias=True).equal(x)


def test_antialias_differentiates():
    x = torch.rand(1, 1, 5, 4, dtype=torch.float64, requires_grad=True)
    for mode in ("bilinear", "bicubic"):
        assert torch.autograd.gradcheck(
            lambda t, mode=mode: F.interpolate(t, size=(2, 6), mode=mode, antialias=True), (x,)
        )


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_resizing_keeps_channels_last(mode, dtype):
    x = torch.randn(2, 5, 6, 7).to(dtype)
    made = []
    for seen in (x.clone(), x.contiguous(memory_format=torch.channels_last)):
        leaf = seen.requires_grad_()
        out = F.interpolate(leaf, size=(9, 4), mode=mode)
        grad = (torch.arange(out.numel()) % 7 - 3).view(out.shape).to(dtype)
        made.append((out.detach(), *torch.autograd.grad(out, leaf, grad)))
    assert made[0][0].equal(made[1][0])
    assert torch.allclose(made[0][1].float(), made[1][1].float(), rtol=1e-2, atol=1e-5)
    assert made[1][0].is_contiguous(memory_format=torch.channels_last)
