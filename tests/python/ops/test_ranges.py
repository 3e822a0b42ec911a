"""Evenly spaced numbers, element by element."""

import numpy
import pytest
import rushlight as torch

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_arange_of_integers(dtype):
    assert torch.arange(3, 120, 4, dtype=dtype).tolist() == list(range(3, 120, 4))
    if dtype != torch.uint8:
        assert torch.arange(50, -60, -7, dtype=dtype).tolist() == list(range(50, -60, -7))


def test_arange_of_large_integers():
    start = 2**62 + 1
    assert torch.arange(start, start + 10, 3).tolist() == list(range(start, start + 10, 3))
    assert torch.arange(100_000).sum().item() == 99_999 * 50_000


@pytest.mark.parametrize("dtype", FLOATS)
def test_arange_of_floats(dtype):
    expected = [0.5 + 0.1 * i for i in range(25)]
    made = torch.arange(0.5, 3.0, 0.1, dtype=dtype)
    assert made.tolist() == torch.tensor(expected, dtype=torch.float64).to(dtype).tolist()


def test_arange_refuses_complex_numbers():
    with pytest.raises(NotImplementedError, match="complex64"):
        torch.arange(3, dtype=torch.complex64)


@pytest.mark.parametrize("steps", [1, 2, 3, 16, 17, 1001])
def test_linspace_counts_from_both_ends(steps):
    made = torch.linspace(-0.3, 0.7, steps).tolist()
    one = numpy.float32
    first, last = one(-0.3), one(0.7)
    step = (last - first) / one(steps - 1) if steps > 1 else one(0)
    expected = [
        first + step * one(i) if i < steps // 2 or steps == 1 else last - step * one(steps - 1 - i)
        for i in range(steps)
    ]
    assert made == [float(x) for x in expected]


def test_linspace_dtypes():
    assert torch.linspace(0, 10, 5, dtype=torch.int64).tolist() == [0, 2, 5, 7, 10]
    assert torch.linspace(3, -3, 4, dtype=torch.float64).tolist() == [3.0, 1.0, -1.0, -3.0]
    assert torch.linspace(0, 1, 3, dtype=torch.bfloat16).tolist() == [0.0, 0.5, 1.0]
    assert torch.linspace(1, 2, 0).tolist() == []
