"""make_tensor."""

import pytest
import rushlight as torch
from rushlight.testing import make_tensor

DTYPES = {
    torch.bool: (0, 1),
    torch.uint8: (0, 9),
    torch.int8: (-9, 9),
    torch.int64: (-9, 9),
    torch.float16: (-9, 9),
    torch.float32: (-9, 9),
    torch.float64: (-9, 9),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_values_fill_the_default_interval(dtype):
    drawn = make_tensor(2000, dtype=dtype, device="cpu")
    assert drawn.dtype == dtype and drawn.shape == (2000,)
    low, high = DTYPES[dtype]
    least, greatest = float(drawn.min()), float(drawn.max())
    assert low <= least < low + 0.1
    assert high - 0.1 < greatest <= high


def test_numbers_are_those_of_uniform():
    torch.manual_seed(0)
    drawn = make_tensor((2, 3), dtype=torch.float32, device="cpu", low=2, high=5)
    torch.manual_seed(0)
    assert torch.equal(drawn, torch.empty(2, 3).uniform_(2, 5))


def test_bounds_are_rounded_up_for_integers_and_cut_to_the_dtype():
    drawn = make_tensor(200, dtype=torch.int32, device="cpu", low=2.5, high=4.2)
    assert set(drawn.tolist()) == {3, 4}
    drawn = make_tensor(200, dtype=torch.uint8, device="cpu", low=-5, high=3)
    assert set(drawn.tolist()) == {0, 1, 2}


def test_layout_and_gradient():
    spread = make_tensor((3, 4), dtype=torch.float32, device="cpu", noncontiguous=True)
    assert spread.shape == (3, 4) and not spread.is_contiguous()
    image = make_tensor(
        (2, 3, 4, 5),
        dtype=torch.float32,
        device="cpu",
        memory_format=torch.channels_last,
    )
    assert image.is_contiguous(memory_format=torch.channels_last)
    assert make_tensor(3, dtype=torch.float32, device="cpu", requires_grad=True).requires_grad


def test_zeros_are_replaced():
    drawn = make_tensor(100, dtype=torch.int64, device="cpu", low=0, high=2, exclude_zero=True)
    assert set(drawn.tolist()) == {1}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"dtype": torch.float32, "low": 3, "high": 2}, "`low` must be less than `high`, but got"),
        ({"dtype": torch.float32, "low": float("nan")}, "cannot be NaN, but got low=nan"),
        ({"dtype": torch.bool, "low": 2, "high": 5}, r"torch.bool only supports \[0, 2\)"),
        ({"dtype": torch.int64, "requires_grad": True}, "not supported for boolean and integral"),
        (
            {
                "dtype": torch.float32,
                "noncontiguous": True,
                "memory_format": torch.channels_last,
            },
            "are mutually exclusive",
        ),
    ],
)
def test_mistakes(arguments, text):
    with pytest.raises(ValueError, match=text):
        make_tensor(3, device="cpu", **arguments)


def test_an_interval_of_one_value_is_deprecated():
    with pytest.warns(FutureWarning, match="Passing `low==high`"):
        drawn = make_tensor(2, dtype=torch.float32, device="cpu", low=3, high=3)
    assert drawn.tolist() == [3.0, 3.0]
