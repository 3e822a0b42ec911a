"""The first and the middle of rows in order: what a stable sort of them gives."""

import numpy
import pytest
import rushlight as torch

NAN = float("nan")
ROWS = {
    "random": lambda n: torch.randn(n),
    "few values": lambda n: torch.randint(0, 3, (n,)).float(),
    "ascending": lambda n: torch.arange(n).float(),
    "descending": lambda n: torch.arange(n).neg().float(),
    "equal": lambda n: torch.full((n,), -2.5),
    "zeros of both signs": lambda n: torch.tensor([0.0, -0.0]).repeat(n)[:n],
    "infinite": lambda n: torch.tensor([float("inf"), 1.0, -float("inf")]).repeat(n)[:n],
    "nan": lambda n: torch.where(torch.rand(n) < 0.1, NAN, torch.randn(n)),
    "whole": lambda n: torch.randint(-(2**62), 2**62, (n,)),
    "bytes": lambda n: torch.randint(0, 255, (n,)).to(torch.uint8),
    "halves": lambda n: torch.randn(n).to(torch.bfloat16),
    "wide": lambda n: torch.randn(n, dtype=torch.float64),
}


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("length", [5, 64, 129, 1000, 4095, 4096, 10_000])
def test_the_first_of_a_row(name, length):
    torch.manual_seed(length)
    row = ROWS[name](length)
    for largest in (True, False):
        order = row.sort(descending=largest, stable=True)
        for count in {1, 2, min(10, length), length // 5, length // 2, length}:
            values, indices = row.topk(count, largest=largest)
            assert torch.equal(indices, order.indices[:count])
            assert torch.equal(values.isnan(), order.values[:count].isnan())
            assert torch.equal(values.nan_to_num(), order.values[:count].nan_to_num())


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("length", [5, 129, 4095, 4096, 10_001])
def test_the_middle_of_a_row(name, length):
    torch.manual_seed(length)
    row = ROWS[name](length)
    order = row.sort(stable=True)
    for rank in {1, 2, length // 3, length // 2 + 1, length}:
        found = row.kthvalue(rank)
        assert found.indices == order.indices[rank - 1]
        assert torch.equal(found.values.nan_to_num(), order.values[rank - 1].nan_to_num())
    nan = row.isnan()
    if nan.any():
        assert row.median().isnan() and row.median(0).indices == nan.nonzero()[0]
        kept = row[~nan].sort().values
        assert row.nanmedian() == kept[(len(kept) - 1) // 2]
    else:
        assert row.median() == order.values[(length - 1) // 2]
        assert row.median(0).indices == order.indices[(length - 1) // 2]


def test_rows_of_a_matrix():
    torch.manual_seed(0)
    x = torch.randn(3, 5000, 4)
    order = x.sort(1, descending=True)
    found = x.topk(6, dim=1)
    assert torch.equal(found.values, order.values[:, :6])
    assert torch.equal(found.indices, order.indices[:, :6])
    assert torch.equal(x.median(1).values, order.values[:, 2500])


WHOLE = ["bool", "uint8", "int8", "int16", "int32", "int64"]


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("high", [2, 100, 2**62])
def test_distinct_whole_numbers(name, high):
    torch.manual_seed(high)
    dtype = getattr(torch, name)
    for count in (1, 7, 5000):
        x = torch.randint(-high, high, (count,)).to(dtype).view(-1, 1)
        expected = numpy.unique(x.numpy(), return_inverse=True, return_counts=True)
        made = torch.unique(x, return_inverse=True, return_counts=True)
        assert made[0].dtype == dtype and made[1].shape == x.shape
        for part, known in zip(made, expected, strict=True):
            assert part.flatten().tolist() == known.flatten().tolist()
        assert torch.equal(torch.unique(x), made[0])
    ends = torch.tensor([2**63 - 1, -(2**63), 0, -1])
    assert torch.unique(ends).tolist() == [-(2**63), -1, 0, 2**63 - 1]
    assert torch.unique(ends[:2] // 2**62).tolist() == [-2, 1]


@pytest.mark.parametrize("name", ["float32", "float64", "bfloat16", "int64", "uint8"])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 64, 1000])
def test_places_in_ordered_rows(name, count):
    torch.manual_seed(count)
    dtype = getattr(torch, name)
    rows = torch.randint(0, 50, (3, count)).to(dtype).sort(1).values
    values = torch.randint(-1, 52, (3, 40)).to(dtype)
    for side in ("left", "right"):
        made = torch.searchsorted(rows, values, side=side)
        for row, line, found in zip(rows, values, made, strict=True):
            known = numpy.searchsorted(row.float().numpy(), line.float().numpy(), side)
            assert found.tolist() == known.tolist()
            assert torch.equal(torch.bucketize(line, row, right=side == "right"), found)
    if dtype.is_floating_point and count > 1:
        rows[:, -1] = NAN
        assert torch.searchsorted(rows, torch.full((3, 1), NAN, dtype=dtype)).unique() == count
