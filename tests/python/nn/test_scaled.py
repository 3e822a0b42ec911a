"""Products of scaled 8-bit floats."""

from __future__ import annotations

import pytest
import rushlight as torch
from rushlight.nn import functional as F

TENSOR, ROW = F.ScalingType.TensorWise, F.ScalingType.RowWise
A = torch.tensor([[1.0, 2.0], [3.0, 4.0]]).to(torch.float8_e4m3fn)
B = torch.tensor([[1.0, 0.5], [2.0, -1.0]]).to(torch.float8_e4m3fn)


def test_one_scale_for_a_matrix():
    two, half = torch.tensor(2.0), torch.tensor(0.5)
    made = F.scaled_mm(A, B, two, TENSOR, half, TENSOR)
    assert made.dtype is torch.bfloat16 and made.tolist() == [[5.0, -1.5], [11.0, -2.5]]


def test_scales_of_rows_bias_and_dtype():
    rows, columns = torch.tensor([[1.0], [2.0]]), torch.tensor([[1.0, 10.0]])
    made = F.scaled_mm(
        A, B, [rows], [ROW], [columns], [ROW], bias=torch.tensor([1.0, 2.0]),
        output_dtype=torch.float32,
    )  # fmt: skip
    assert made.tolist() == [[6.0, -13.0], [23.0, -48.0]]
    one = torch.tensor(1.0)
    assert F.scaled_mm(A, B, one, TENSOR, one, TENSOR, output_dtype=None).dtype is A.dtype


def test_misuse():
    one = torch.tensor(1.0)
    with pytest.raises(ValueError, match="mat_a should be float8, got torch.float32"):
        F.scaled_mm(A.float(), B, one, TENSOR, one, TENSOR)
    with pytest.raises(ValueError, match=r"scale_a should be float32 of sizes \(2, 1\)"):
        F.scaled_mm(A, B, one, ROW, one, TENSOR)
    with pytest.raises(NotImplementedError, match="TensorWise or RowWise"):
        F.scaled_mm(A, B, one, F.ScalingType.BlockWise1x32, one, TENSOR)
    with pytest.raises(NotImplementedError, match="NO_SWIZZLE"):
        F.scaled_mm(A, B, one, TENSOR, one, TENSOR, swizzle_a=F.SwizzleType.SWIZZLE_32_4_4)


def test_names_of_scalings():
    assert [kind.value for kind in F.ScalingType] == [0, 1, 2, 3, 4, 5]
    assert F.SwizzleType(1).name == "SWIZZLE_32_4_4"


def test_channels_dealt_out_under_their_other_name():
    x = torch.arange(8.0).reshape(1, 4, 1, 2)
    assert F.native_channel_shuffle(x, 2).flatten().tolist() == [0, 1, 4, 5, 2, 3, 6, 7]
