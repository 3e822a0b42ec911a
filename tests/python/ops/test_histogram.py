"""Counting into bins, by hand and beside NumPy."""

import numpy as np
import pytest
import rushlight as torch


def test_equal_bins():
    x = torch.tensor([1.0, 2.0, 1.0, 4.0])
    counts, edges = torch.histogram(x, 3)
    assert counts.tolist() == [2.0, 1.0, 1.0]
    assert edges.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert torch.histogram(torch.ones(4), 3).bin_edges.tolist()[::3] == [0.5, 1.5]
    assert torch.histogram(torch.empty(0), 2).bin_edges.tolist() == [0.0, 0.5, 1.0]
    assert torch.histogram(x, 2, range=(0.0, 2.0)).hist.tolist() == [0.0, 3.0]


def test_given_edges_count_the_last():
    edges = torch.tensor([0.0, 1.0, 4.0])
    x = torch.tensor([-1.0, 0.0, 0.5, 1.0, 4.0, 4.5])
    assert torch.histogram(x, edges).hist.tolist() == [2.0, 2.0]


def test_weights_and_density_agree_with_numpy():
    rng = np.random.default_rng(1)
    x, weight = rng.normal(size=50), rng.uniform(size=50)
    counts, edges = torch.histogram(
        torch.from_numpy(x), 7, weight=torch.from_numpy(weight), density=True
    )
    expected, expected_edges = np.histogram(x, 7, weights=weight, density=True)
    np.testing.assert_allclose(counts.numpy(), expected)
    np.testing.assert_allclose(edges.numpy(), expected_edges)


def test_many_dimensions_agree_with_numpy():
    points = np.random.default_rng(2).normal(size=(60, 2))
    counts, edges = torch.histogramdd(torch.from_numpy(points), [3, 4])
    expected, expected_edges = np.histogramdd(points, [3, 4])
    np.testing.assert_array_equal(counts.numpy(), expected)
    for line, expected_line in zip(edges, expected_edges, strict=True):
        np.testing.assert_allclose(line.numpy(), expected_line)
    given = torch.histogramdd(torch.from_numpy(points), [*edges])
    np.testing.assert_array_equal(given.hist.numpy(), expected)
    assert torch.histogramdd(torch.from_numpy(points), 2).hist.shape == (2, 2)


def test_out_and_mistakes():
    x = torch.tensor([0.0, 1.0])
    counts, edges = torch.empty(0), torch.empty(0)
    torch.histogram(x, 2, out=(counts, edges))
    assert counts.tolist() == [1.0, 1.0]
    leaf = torch.empty(2, requires_grad=True)
    assert torch.histc(x, 2, out=leaf) is leaf
    assert leaf.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="bins must be > 0, but got 0 for dimension 0"):
        torch.histogram(x, 0)
    with pytest.raises(RuntimeError, match="min should not exceed max"):
        torch.histogram(x, 2, range=(2.0, 1.0))
    with pytest.raises(RuntimeError, match="is not finite"):
        torch.histogram(torch.tensor([1.0, float("nan")]), 2)
    with pytest.raises(RuntimeError, match="same shape as the input tensor"):
        torch.histogram(x, 2, weight=torch.ones(3))
    with pytest.raises(RuntimeError, match="size of bins must be equal to the innermost dim"):
        torch.histogramdd(torch.ones(5, 2), [1, 1, 1])
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        torch.histogram(torch.tensor([1, 2]), 2)
