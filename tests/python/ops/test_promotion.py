"""Dtypes of results: tensors with dimensions decide before those without, those before numbers."""

import pytest
import rushlight as torch

LINE = torch.tensor([0.5, 2.0])
ONE = torch.tensor(0.5)


@pytest.mark.parametrize(
    ("tensor", "weak", "expected"),
    [
        (torch.float32, torch.complex128, torch.complex64),
        (torch.float64, torch.complex64, torch.complex128),
        (torch.bfloat16, torch.complex128, torch.complex64),
        (torch.int64, torch.complex128, torch.complex128),
        (torch.uint16, torch.complex64, torch.complex64),
        (torch.int64, torch.bfloat16, torch.bfloat16),
        (torch.float32, torch.float64, torch.float32),
    ],
)
def test_a_tensor_without_dimensions_is_weak(tensor, weak, expected):
    a, b = torch.ones(2).to(tensor), torch.tensor(1.0).to(weak)
    assert (a + b).dtype == (b + a).dtype == torch.result_type(a, b) == expected
    assert (a * b).tolist() == [1, 1]


def test_tensors_without_dimensions_promote_each_other():
    assert (ONE + torch.tensor(1j, dtype=torch.complex128)).dtype == torch.complex128
    assert (torch.tensor(0.5, dtype=torch.float64) + 1j).dtype == torch.complex128


def test_a_tensor_without_dimensions_is_no_number():
    bound = torch.tensor(0.5, dtype=torch.float64)
    count = torch.tensor([0, 1])
    assert torch.clamp_max(ONE, bound).dtype == torch.float64
    assert torch.clamp(count, bound, bound).dtype == torch.float64
    half = bound.half()
    assert torch.clamp(count, min=half).tolist() == [0.5, 1.0]
    assert torch.clamp(count, min=half).dtype == torch.float16
    assert torch.clamp_min(count, half).dtype == torch.clip(count, half).dtype == torch.float16
    assert torch.clamp(count, torch.tensor(1), 3.5).dtype == torch.float32  # one is a number
    assert torch.lerp(ONE, ONE, bound).dtype == torch.float64
    assert torch.lerp(LINE, LINE + 1, bound).tolist() == [1.0, 2.5]
    assert torch.lerp(LINE, LINE, torch.tensor(1j)).dtype == torch.complex64
    with pytest.raises(RuntimeError, match="expected dtype float32 for `weight`"):
        torch.lerp(LINE, LINE, LINE.double())


def test_normal_has_the_dtype_of_its_mean():
    assert torch.normal(ONE, ONE.double()).dtype == torch.float32
    assert torch.normal(LINE.half(), LINE).dtype == torch.float16
    assert torch.normal(1.0, ONE.double()).dtype == torch.float64
    torch.manual_seed(0)
    drawn = torch.normal(torch.tensor([1 + 2j, 3j]), torch.zeros(2))
    assert drawn.tolist() == [1 + 2j, 3j]
    with pytest.raises(NotImplementedError, match="Long"):
        torch.normal(torch.arange(2), LINE)
