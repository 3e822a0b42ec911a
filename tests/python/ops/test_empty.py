"""Reductions of tensors without elements."""

import pytest
import rushlight as torch


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3), (2, 0, 4)])
def test_sum_over_all_dimensions_is_zero(shape):
    assert torch.ones(shape).sum().item() == 0
    assert torch.ones(shape).prod().item() == 1


def test_sum_over_the_empty_dimension():
    assert torch.ones(3, 0).sum(1).tolist() == [0, 0, 0]
    assert torch.ones(0, 3).sum(0).tolist() == [0, 0, 0]
    assert torch.ones(2, 0, 4).sum((1, 2)).tolist() == [0, 0]


def test_size_of_a_dimension_that_a_number_has_not():
    with pytest.raises(IndexError, match="no dimensions"):
        torch.tensor(1.0).size(0)
    with pytest.raises(IndexError):
        torch.trapezoid(torch.tensor(1.0), torch.tensor(1.0), dim=0)


@pytest.mark.parametrize("shape", [(0,), (3, 0)])
def test_dtypes_and_numbers_are_refused_without_elements_too(shape):
    flags = torch.ones(shape, dtype=torch.bool)
    with pytest.raises(RuntimeError, match="Boolean inputs not supported for relu"):
        flags.relu()
    with pytest.raises(RuntimeError, match="Negation, the `-` operator, on a bool tensor"):
        flags.neg()
    for bound in (torch.clamp_max, torch.clamp_min):
        with pytest.raises(RuntimeError, match="converted to type int8_t without overflow"):
            bound(torch.ones(shape, dtype=torch.int8), 300)
    with pytest.raises(RuntimeError, match="uint8_t without overflow"):
        torch.clamp(torch.ones(shape, dtype=torch.uint8), max=300)
