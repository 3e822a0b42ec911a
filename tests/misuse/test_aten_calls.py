"""Calls of operators by their schemas that fit none: one mistake a test, a RuntimeError each."""

import pytest
import rushlight as torch

aten = torch.ops.aten


def test_too_many_arguments():
    with pytest.raises(RuntimeError, match=r"relu\(\) takes 1 positional argument but 2 were"):
        aten.relu(torch.ones(2), torch.ones(2))


def test_missing_argument():
    with pytest.raises(RuntimeError, match=r'relu\(\) missing 1 required .*: "self"'):
        aten.relu.default()


def test_wrong_type():
    with pytest.raises(RuntimeError, match="argument 'self' .* must be Tensor, not str"):
        aten.add.Tensor("a", torch.ones(2))


def test_unknown_keyword():
    with pytest.raises(RuntimeError, match="unexpected keyword argument 'by'"):
        aten.relu(torch.ones(2), by=2)


def test_overloads_of_which_none_fits():
    with pytest.raises(RuntimeError, match="received an invalid combination of arguments"):
        aten.sum("a", 0)


def test_form_without_out():
    x, mean = torch.rand(4, 3), torch.zeros(3)
    with pytest.raises(RuntimeError, match="unexpected keyword argument 'out'"):
        aten._batch_norm_with_update(x, None, None, mean, mean + 1, 0.1, 1e-5, out=torch.empty(0))
