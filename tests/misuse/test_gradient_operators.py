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
