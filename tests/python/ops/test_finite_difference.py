"""torch.gradient on polynomials, whose derivatives it knows, and beside NumPy."""

import numpy as np
import pytest
import rushlight as torch


def test_equal_steps():
    squares = torch.arange(5) ** 2
    assert torch.gradient(squares)[0].tolist() == [1.0, 2.0, 4.0, 6.0, 7.0]
    assert torch.gradient(squares, spacing=2)[0].tolist() == [0.5, 1.0, 2.0, 3.0, 3.5]
    assert torch.gradient(squares.float(), edge_order=2)[0].tolist() == [0.0, 2.0, 4.0, 6.0, 8.0]


@pytest.mark.parametrize("order", [1, 2])
def test_uneven_steps_agree_with_numpy(order):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(4, 5))
    rows, columns = np.cumsum(rng.uniform(0.1, 1, 4)), np.cumsum(rng.uniform(0.1, 1, 5))
    found = torch.gradient(
        torch.from_numpy(x),
        spacing=(torch.from_numpy(rows), torch.from_numpy(columns)),
        edge_order=order,
    )
    expected = np.gradient(x, rows, columns, edge_order=order)
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine.numpy(), theirs)
    only = torch.gradient(torch.from_numpy(x), spacing=(0.5,), dim=(-1,), edge_order=order)[0]
    np.testing.assert_allclose(only.numpy(), np.gradient(x, 0.5, axis=1, edge_order=order))


def test_differentiates():
    x = torch.rand(4, 4, dtype=torch.float64, requires_grad=True)
    steps = torch.tensor([0.0, 0.5, 2.0, 2.5], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda t: torch.gradient(t, spacing=(steps, steps)), (x,))


def test_mistakes():
    x = torch.ones(3, 3)
    with pytest.raises(RuntimeError, match="spacing argument of length 1 and a dim argument of"):
        torch.gradient(x, spacing=(0.1,), dim=(1, 0))
    with pytest.raises(RuntimeError, match="only supports edge_order=1 and edge_order=2"):
        torch.gradient(x, edge_order=3)
    with pytest.raises(RuntimeError, match="dim 1 appears multiple times"):
        torch.gradient(x, spacing=0.1, dim=(1, 1))
    with pytest.raises(RuntimeError, match=r"size to be at least edge_order\+1"):
        torch.gradient(torch.ones(2, 2), edge_order=2)
    with pytest.raises(RuntimeError, match="does not support uint8"):
        torch.gradient(torch.ones(3, dtype=torch.uint8))
