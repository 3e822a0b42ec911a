"""Sampling at grids: values of PyTorch 2.13, gradients by finite differences."""

import itertools

import pytest
import rushlight as torch
from rushlight.nn import functional as F

GRID = [[[-1.2, -0.9], [0.1, 0.33], [0.5, -0.75]], [[1.3, 0.2], [-0.41, 0.87], [2.6, -3.1]]]
PLANE = [[0.0, 1.0, 4.0, 9.0], [2.0, 7.0, 1.0, 3.0], [5.0, 8.0, 6.0, 2.0]]
VALUES = {
    ("bilinear", "zeros", True): [0.14, 4.288, 4.3125, 1.54, 7.4951, 0.0],
    ("bilinear", "zeros", False): [0.0, 4.681, 5.6875, 0.0, 4.8928, 0.0],
    ("bilinear", "border", True): [0.2, 4.288, 4.3125, 2.8, 7.4951, 9.0],
    ("bilinear", "border", False): [0.0, 4.681, 6.5, 2.7, 7.04, 9.0],
    ("bilinear", "reflection", True): [0.62, 4.288, 4.3125, 2.44, 7.4951, 6.62],
    ("bilinear", "reflection", False): [0.0, 4.681, 6.5, 2.68, 7.04, 5.9],
    ("nearest", "zeros", True): [0.0, 1.0, 4.0, 3.0, 8.0, 0.0],
    ("nearest", "zeros", False): [0.0, 1.0, 4.0, 0.0, 8.0, 0.0],
    ("nearest", "border", True): [0.0, 1.0, 4.0, 3.0, 8.0, 9.0],
    ("nearest", "reflection", False): [0.0, 1.0, 4.0, 3.0, 8.0, 5.0],
    ("bicubic", "zeros", True): [-0.05095, 4.84787, 5.1356, 1.33418, 8.44081, 0.0],
    ("bicubic", "zeros", False): [-0.0197, 5.55581, 7.25218, -0.13086, 5.57121, 0.0],
    ("bicubic", "border", True): [-0.00415, 4.44902, 4.25766, 2.31497, 7.81713, 9.0],
    ("bicubic", "border", False): [-0.22557, 4.89312, 7.16481, 2.0595, 7.44854, 9.0],
    ("bicubic", "reflection", True): [0.07618, 4.67963, 4.91629, 1.54251, 7.85773, 6.83902],
    ("bicubic", "reflection", False): [-0.36268, 4.89312, 7.2196, 2.02022, 7.50463, 6.31592],
}


@pytest.mark.parametrize("how", VALUES)
def test_values(how):
    for dtype in (torch.float32, torch.float64):
        plane = torch.tensor(PLANE, dtype=dtype)[None, None]
        made = F.grid_sample(plane, torch.tensor(GRID, dtype=dtype)[None], *how)
        assert made.shape == (1, 1, 2, 3) and made.dtype == dtype
        assert torch.allclose(made.flatten().float(), torch.tensor(VALUES[how]), atol=2e-5)


MODES = list(
    itertools.product(["bilinear", "nearest", "bicubic"], ["zeros", "border", "reflection"])
)


@pytest.mark.parametrize("align", [True, False])
@pytest.mark.parametrize("mode, border", MODES)
def test_gradients(mode, border, align):
    torch.manual_seed(0)
    planes = torch.randn(2, 2, 4, 5, dtype=torch.float64, requires_grad=True)
    grid = (torch.rand(2, 3, 2, 2, dtype=torch.float64) * 2.6 - 1.3).requires_grad_()

    def sample(planes, grid):
        return F.grid_sample(planes, grid, mode, border, align)

    assert torch.autograd.gradcheck(sample, (planes, grid))
    assert torch.autograd.gradgradcheck(sample, (planes, grid))


@pytest.mark.parametrize("border", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_volumes(mode, border):
    torch.manual_seed(0)
    planes = torch.randn(1, 2, 3, 4, 3, dtype=torch.float64, requires_grad=True)
    grid = (torch.rand(1, 2, 3, 2, 3, dtype=torch.float64) * 2.6 - 1.3).requires_grad_()

    def sample(planes, grid):
        return F.grid_sample(planes, grid, mode, border, False)

    assert torch.autograd.gradcheck(sample, (planes, grid))
    assert torch.autograd.gradgradcheck(sample, (planes, grid))
    # A volume of one layer is a plane.
    flat = F.grid_sample(planes[:, :, 1], grid[:, 0, ..., :2].contiguous(), mode, border, False)
    layer = torch.cat([grid[:, :1, ..., :2], torch.zeros_like(grid[:, :1, ..., :1])], -1)
    deep = F.grid_sample(planes[:, :, 1:2], layer, mode, border, False)
    assert torch.allclose(deep[:, :, 0], flat)


def test_the_identity_gives_the_planes_back():
    planes = torch.rand(2, 3, 5, 7)
    theta = torch.tensor([[[1.0, 0, 0], [0, 1, 0]]]).expand(2, 2, 3)
    for align in (True, False):
        grid = F.affine_grid(theta, (2, 3, 5, 7), align)
        assert torch.allclose(F.grid_sample(planes, grid, align_corners=align), planes, atol=1e-5)
    volume = torch.rand(1, 2, 3, 4, 5)
    theta = torch.eye(4)[None, :3]
    grid = F.affine_grid(theta, volume.shape, True)
    assert torch.allclose(F.grid_sample(volume, grid, align_corners=True), volume, atol=1e-5)


def test_affine_grid_gradient():
    theta = torch.randn(2, 2, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda t: F.affine_grid(t, (2, 1, 3, 4), False), theta)
    corners = F.affine_grid(torch.tensor([[[2.0, 0, 1], [0, 3, 0]]]), (1, 1, 2, 3), True)
    assert corners[0, 0, 0].tolist() == [-1, -3] and corners[0, 1, 2].tolist() == [3, 3]


def test_nan_and_infinity_sample_nothing():
    grid = torch.tensor([[[[float("nan"), 0.0], [float("inf"), 0.0], [1e30, -1e30]]]])
    planes = torch.ones(1, 1, 3, 3)
    for mode in ("bilinear", "nearest"):
        assert F.grid_sample(planes, grid, mode, align_corners=True).tolist() == [[[[0, 0, 0]]]]


def test_what_is_not_sampled_does_not_matter():
    planes = torch.full((1, 1, 2, 2), float("inf"))
    planes[0, 0, 1, 1] = 2
    grid = torch.tensor([[[[1.5, 1.5]]]])  # three of the four corners are outside
    assert F.grid_sample(planes, grid, align_corners=False).item() == 2 * 0.0
    assert F.grid_sample(planes, grid / 1.2, align_corners=False).isfinite().all()


def test_threads_do_not_show():
    torch.manual_seed(0)
    planes = torch.randn(2, 20, 30, 31, requires_grad=True)
    grid = (torch.rand(2, 40, 41, 2) * 2.2 - 1.1).requires_grad_()
    found = set()
    threads = torch.get_num_threads()
    try:
        for number in (1, 2, 3):
            torch.set_num_threads(number)
            made = F.grid_sample(planes, grid, align_corners=False)
            grads = torch.autograd.grad(made.square().sum(), (planes, grid))
            found.add(b"".join(t.detach().numpy().tobytes() for t in (made, *grads)))
    finally:
        torch.set_num_threads(threads)
    assert len(found) == 1


def test_compiled():
    planes, grid = torch.rand(1, 2, 4, 4), torch.rand(1, 3, 3, 2)
    compiled = torch.compile(lambda p, g: F.grid_sample(p * 2, g, align_corners=True) + 1)
    assert torch.equal(
        compiled(planes, grid), F.grid_sample(planes * 2, grid, align_corners=True) + 1
    )
    assert F.grid_sample(planes.to("meta"), grid.to("meta"), align_corners=True).shape == (
        1,
        2,
        3,
        3,
    )


ERRORS = [
    ((1, 1, 4, 4), (2, 3, 3, 2), "same batch size"),
    ((1, 1, 4, 4), (1, 3, 3, 3), "size 2 in last dimension"),
    ((1, 1, 4, 4), (1, 3, 2), "same number of dimensions"),
    ((1, 1, 0, 4), (1, 3, 3, 2), "non-empty spatial dimensions"),
]


@pytest.mark.parametrize("planes, grid, text", ERRORS)
def test_errors(planes, grid, text):
    with pytest.raises(RuntimeError, match=text):
        F.grid_sample(torch.zeros(planes), torch.zeros(grid), align_corners=True)


def test_errors_of_types():
    with pytest.raises(RuntimeError, match="same dtype"):
        F.grid_sample(torch.zeros(1, 1, 2, 2), torch.zeros(1, 1, 1, 2).double(), align_corners=True)
    with pytest.raises(RuntimeError, match="bicubic interpolation only supports 4D"):
        volume, grid = torch.zeros(1, 1, 2, 2, 2), torch.zeros(1, 1, 1, 1, 3)
        F.grid_sample(volume, grid, mode="bicubic", align_corners=True)
