"""Operators of gradients called with gradients that fit nothing, one mistake a test."""

import pytest
import rushlight as torch

aten = torch.ops.aten


@pytest.mark.parametrize(
    "function",
    [
        lambda: aten.select_backward(torch.ones(3), [2, 2], 0, 0),
        lambda: aten.slice_backward(torch.ones(4, 4), [2, 2], 0, 0, 2, 1),
        lambda: aten.diagonal_backward(torch.ones(5), [2, 2], 0, 0, 1),
        lambda: aten.unfold_backward(torch.ones(9, 2), [4], 0, 2, 2),
        lambda: aten.unfold_backward(torch.ones(9, 2), [4], 0, 2, 1),
    ],
)
def test_a_gradient_of_another_shape(function):
    with pytest.raises(RuntimeError, match="must match the size of tensor b"):
        function()


@pytest.mark.parametrize(
    "function",
    [
        # by a pooled dimension, by dtype, and by a shape that windows do not give
        lambda: aten._adaptive_avg_pool_backward(torch.tensor(3.0), [2, 4, 4], 2),
        lambda: aten._adaptive_avg_pool_backward(torch.ones(1, 2, 2), [1, 4, 4], 9),
        lambda: aten._max_pool_backward(torch.ones(17), torch.arange(17), [], [], [], [], False),
        lambda: aten._max_pool_backward(
            torch.ones(1, 2), torch.arange(4)[None], [2], [2], [0], [1], False
        ),
        lambda: aten._max_pool_backward(
            torch.ones(1, 2), torch.ones(1, 400), [2], [2], [0], [1], False
        ),
        lambda: aten._max_pool_backward(
            torch.ones(1, 1, 1, 1, 1), torch.ones(1, 1, 1, 1, 1), [1] * 4, [1], [0], [1], False
        ),
    ],
)
def test_a_gradient_that_pooling_does_not_make(function):
    with pytest.raises(RuntimeError, match="expected (grad_output of|1 to 3 spatial)"):
        function()


BAGS = (torch.tensor([0, 1, 2]), torch.tensor([0, 2]))


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (
            lambda: aten._embedding_bag_weights_gradient(
                torch.ones(2, 4, dtype=torch.bfloat16), torch.ones(3, 4), *BAGS, False, -1
            ),
            "a table with rows like the gradient's",
        ),
        (
            lambda: aten._embedding_bag_weights_gradient(
                torch.ones(2, 4), torch.ones(3, 400), *BAGS, False, -1
            ),
            "a table with rows like the gradient's",
        ),
        (
            lambda: aten._embedding_bag_weights_gradient(
                torch.ones(1, 4), torch.ones(3, 4), *BAGS, False, -1
            ),
            "expected a gradient of 2 bags",
        ),
        (
            lambda: aten._embedding_bag_table_gradient(
                torch.ones(2, 4), *BAGS, torch.full((2, 4), 10**6), 3, False, 2, None, False, -1
            ),
            r"maximum_indices must be in \[0, 3\), got 1000000",
        ),
        (
            lambda: aten._embedding_bag_table_gradient(
                torch.ones(2, 4), *BAGS, torch.zeros(2), 3, False, 2, None, False, -1
            ),
            "expected maximum_indices of shape",
        ),
        (
            lambda: aten._embedding_bag_table_gradient(
                torch.ones(2, 4), *BAGS, torch.zeros(0), 3, False, 0, torch.ones(2), False, -1
            ),
            "expected per_sample_weights to be 1D with the length of indices",
        ),
    ],
)
def test_a_gradient_that_bags_do_not_make(function, text):
    with pytest.raises(RuntimeError, match=text):
        function()


@pytest.mark.parametrize("rank", [0, 1])
def test_rows_whose_first_argument_has_fewer_dimensions(rank):
    first = torch.ones((2,) * rank)
    assert aten._product_sum(first, torch.ones(3, 2, 2), [0, 1], False).tolist() == [6, 6]
    out, mean, _ = aten._layer_norm(first, torch.full((3, 2, 2), 2.0), None, 0.0, 1, True)
    assert out.shape == (3, 2, 2) and mean.shape == (3, 1, 2)
