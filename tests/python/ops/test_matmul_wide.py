"""Products with out_dtype=, and of groups."""

from __future__ import annotations

import pytest
import rushlight as torch
from rushlight.nn import functional as F


def test_sums_of_halves_are_not_rounded():
    # 1 + 2**-12 has no float16: the product in half precision loses it.
    a = torch.tensor([[1.0, 1.0]], dtype=torch.float16)
    b = torch.tensor([[1.0], [2.0**-12]], dtype=torch.float16)
    assert torch.mm(a, b).item() == 1.0
    wide = torch.mm(a, b, torch.float32)
    assert wide.dtype is torch.float32 and wide.item() == 1 + 2.0**-12
    assert torch.bmm(a[None], b[None], out_dtype=torch.float32).item() == 1 + 2.0**-12


def test_added_products_of_halves():
    a = torch.tensor([[1.0, 2.0]], dtype=torch.bfloat16)
    b = torch.tensor([[3.0], [4.0]], dtype=torch.bfloat16)
    one = torch.ones(1, 1)
    made = torch.addmm(one, a, b, torch.float32, beta=2, alpha=3)
    assert made.dtype is torch.float32 and made.item() == 35.0
    made = torch.baddbmm(one.bfloat16()[None], a[None], b[None], torch.float32)
    assert made.item() == 12.0
    out = torch.empty(1, 1)
    assert torch.mm(a, b, torch.float32, out=out) is out and out.item() == 11.0


def test_gradient_through_out_dtype():
    a = torch.tensor([[1.0, 2.0]], dtype=torch.float16, requires_grad=True)
    b = torch.tensor([[3.0], [4.0]], dtype=torch.float16)
    torch.mm(a, b, torch.float32).sum().backward()
    assert a.grad.dtype is torch.float16 and a.grad.tolist() == [[3.0, 4.0]]


def test_out_dtype_that_is_not_wider():
    a = torch.ones(2, 2)
    with pytest.raises(RuntimeError, match=r"mm: argument 'out_dtype'.* but got float64"):
        torch.mm(a, a, torch.float64)
    with pytest.raises(RuntimeError, match=r"addmm: argument 'self'.* but got float64"):
        torch.addmm(a.double(), a.half(), a.half(), torch.float32)


def offsets(*ends):
    return torch.tensor(ends, dtype=torch.int32)


A = torch.arange(12.0).reshape(4, 3)
B = torch.arange(12.0).reshape(2, 3, 2)


def test_groups_of_rows():
    made = F.grouped_mm(A, B, offs=offsets(1, 4))
    assert made.tolist() == [[10.0, 13.0], [100.0, 112.0], [172.0, 193.0], [244.0, 274.0]]


def test_rows_past_the_last_group_are_zeros():
    assert F.grouped_mm(A, B, offs=offsets(1, 2))[2:].tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_groups_of_columns():
    left = torch.arange(6.0).reshape(2, 1, 3)
    made = F.grouped_mm(left, A.t().contiguous(), offs=offsets(1, 4))
    assert made.tolist() == [[5.0, 50.0, 86.0, 122.0]]


def test_groups_of_terms():
    made = F.grouped_mm(A.t().contiguous(), A, offs=offsets(1, 1))
    assert made.shape == (2, 3, 3) and made[1].abs().sum() == 0
    assert made[0].tolist() == [[0.0, 0.0, 0.0], [0.0, 1.0, 2.0], [0.0, 2.0, 4.0]]


def test_batches_without_offsets():
    left = torch.ones(2, 1, 3)
    assert F.grouped_mm(left, B).tolist() == [[[6.0, 9.0]], [[24.0, 27.0]]]


def test_gradient_of_groups():
    a, b = A.clone().requires_grad_(), B.clone().requires_grad_()
    F.grouped_mm(a, b, offs=offsets(1, 3)).sum().backward()
    assert a.grad.tolist() == [[1.0, 5.0, 9.0], [13.0, 17.0, 21.0], [13.0, 17.0, 21.0], [0.0] * 3]
    assert b.grad[0].tolist() == [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]


def test_shapes_of_groups_without_data():
    made = F.grouped_mm(A.to("meta"), B.to("meta"), offs=offsets(1, 4).to("meta"))
    assert made.is_meta and made.shape == (4, 2)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: F.grouped_mm(A, B), "Have to provide offsets"),
        (lambda: F.grouped_mm(B, B.mT, offs=offsets(1, 2)), "no offset if both matrices are 3d"),
        (lambda: F.grouped_mm(A, B, offs=torch.tensor([1, 4])), "Offsets have to be int32"),
        (lambda: F.grouped_mm(A, B, offs=offsets(4)), "matrix batch sizes have to match"),
        (lambda: F.grouped_mm(A, B, offs=offsets(3, 2)), "but got 2 after 3"),
        (lambda: F.grouped_mm(A, B, offs=offsets(3, 9)), "at most 4, but got 9"),
        (lambda: F.grouped_mm(A, B.half(), offs=offsets(1, 4)), "the same dtype"),
        (lambda: F.grouped_mm(A.double(), B.double(), offs=offsets(1, 4)), "got float64"),
        (lambda: F.grouped_mm(A, B, offs=offsets(1, 4), bias=A), "Bias not supported"),
        (lambda: F.grouped_mm(A, B.mT, offs=offsets(1, 4)), "contraction dimension"),
        (lambda: F.grouped_mm(A, B, offs=offsets(1, 4), out_dtype=torch.half), "output dtype"),
    ],
)
def test_misuse_of_groups(call, text):
    with pytest.raises(RuntimeError, match=text):
        call()
