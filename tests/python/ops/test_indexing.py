"""Masks, positions and slices by index, against plain loops: edges, layouts, dtypes, threads."""

import random
from collections.abc import Iterator

import pytest
import rushlight as torch

DTYPES = (torch.float32, torch.float64, torch.float16, torch.int64, torch.bool, torch.complex128)


@pytest.fixture(params=[1, 3])
def threads(request) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def bits(numel: int, share: float) -> list[bool]:
    draw = random.Random(numel)
    return [draw.random() < share for _ in range(numel)]


# Below, at and above the stretches that a mask is read in: 8 and 1024 elements, blocks of 16384.
@pytest.mark.parametrize("numel", [0, 1, 7, 8, 9, 1023, 1024, 1025, 16383, 16385, 50001])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 1.0])
def test_mask_of_a_line(numel: int, share: float, threads: int) -> None:
    held = bits(numel, share)
    mask = torch.tensor(held, dtype=torch.bool)
    at = [i for i, hit in enumerate(held) if hit]
    assert mask.nonzero().flatten().tolist() == at
    x = torch.arange(numel)
    assert x[mask].tolist() == at
    y = x.clone()
    y[mask] = -1
    assert y.tolist() == [-1 if hit else i for i, hit in enumerate(held)]
    y[mask] = x[mask]
    assert y.tolist() == x.tolist()
    assert torch.zeros_like(x).masked_scatter_(mask, x + 1).count_nonzero() == len(at)


@pytest.mark.parametrize(
    "shape",
    [(5, 3), (3, 1024), (3, 1025), (2, 3000), (1, 1, 1), (700, 1, 2), (40, 50, 3, 2), (9, 0)],
)
def test_positions_in_several_dimensions(shape: tuple[int, ...], threads: int) -> None:
    numel = 1
    for size in shape:
        numel *= size
    mask = torch.tensor(bits(numel, 0.4), dtype=torch.bool).view(shape)
    expected = []
    for flat in mask.flatten().nonzero().flatten().tolist():
        position = []
        for size in reversed(shape):
            position.insert(0, flat % size)
            flat //= size
        expected.append(position)
    assert mask.nonzero().tolist() == expected
    turned = [[p[-1], *p[1:-1], p[0]] for p in expected]
    assert mask.transpose(0, -1).nonzero().tolist() == sorted(turned)


def test_any_byte_but_zero_is_true() -> None:
    mask = torch.tensor([0, 1, 2, 128, 255, 0, 16, 0, 4, 0], dtype=torch.uint8).view(torch.bool)
    assert mask.nonzero().flatten().tolist() == [1, 2, 3, 4, 6, 8]
    assert torch.arange(10)[mask].tolist() == [1, 2, 3, 4, 6, 8]
    x = torch.arange(10)
    x[mask] = 0
    assert x.tolist() == [0, 0, 0, 0, 0, 5, 0, 7, 0, 9]


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_number_where_a_mask_holds(dtype: torch.dtype) -> None:
    x = torch.tensor([[1, 0, 1], [0, 1, 1]]).to(dtype)
    mask = torch.tensor([[True, False, False], [False, True, True]])
    expected = torch.tensor([[0, 0, 1], [0, 0, 0]]).to(dtype)
    for target in (x.clone(), x.t().contiguous().t(), torch.stack([x, x], -1)[..., 0]):
        target[mask] = 0
        assert torch.equal(target, expected)
    rows = x.clone()
    rows[torch.tensor([False, True])] = 0
    assert rows.tolist() == [x[0].tolist(), [0, 0, 0]]
    columns = x.clone()
    columns[:, torch.tensor([True, False, True])] = x[0, 0]  # a part of what is written
    assert columns[:, 0].tolist() == columns[:, 2].tolist() == [1, 1]
    assert columns[:, 1].tolist() == x[:, 1].tolist()
    assert torch.equal(x.masked_fill(mask, 0), expected)


def test_a_mask_that_is_written_itself() -> None:
    mask = torch.tensor([[True, True], [False, True]])
    mask[mask.t()] = False
    assert mask.tolist() == [[False, True], [False, False]]
    x = torch.tensor([True, False, True])
    x[x] = torch.tensor([False, True])
    assert x.tolist() == [False, False, True]


def test_targets_whose_elements_share_memory() -> None:
    line = torch.zeros(3)
    spread = line.expand(2, 3)
    spread[torch.tensor([[True, False, False], [False, True, False]])] = 1.0
    assert line.tolist() == [1, 1, 0]
    windows = torch.zeros(4).unfold(0, 3, 1)
    windows[torch.tensor([[False, True, False], [False, False, False]])] = 2.0
    assert windows.tolist() == [[0, 2, 0], [2, 0, 0]]


def test_values_that_do_not_fit_a_mask() -> None:
    x = torch.zeros(2, 3)
    mask = torch.ones(2, 3, dtype=torch.bool)
    with pytest.raises(RuntimeError, match=r"shape mismatch: value tensor of shape \[5\]"):
        x[mask] = torch.ones(5)
    with pytest.raises(IndexError, match=r"mask \[2\] at index 0 does not match .* \[3, 2\]"):
        x.t()[torch.tensor([True, False])] = 1.0
    with pytest.raises(RuntimeError, match="source and destination dtypes match"):
        x.index_put_((mask,), torch.tensor(1))
    assert x.count_nonzero() == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_take(dtype: torch.dtype, threads: int) -> None:
    x = torch.tensor([[1, 0, 1], [0, 0, 1]]).to(dtype)
    at = torch.tensor([[0, -1], [3, -6], [2, 2]])
    for source in (x, x.t().contiguous().t()):
        assert source.take(at).tolist() == [[1, 1], [0, 1], [1, 1]]
        assert source.take(at[:, ::2]).tolist() == [[1], [0], [1]]
        assert source.take(at[:0]).shape == (0, 2)
        for wrong in (6, -7, 2**63 - 1, -(2**63)):
            with pytest.raises(IndexError, match=f"access index {wrong} on a tensor of 6 elements"):
                source.take(torch.tensor([1, wrong, 99]))
    y = x.clone()
    with pytest.raises(IndexError, match="access index 6 on a tensor of 6 elements"):
        y.put_(torch.tensor([1, 6]), x.flatten()[:2])
    assert torch.equal(y, x)
    y.zero_().t().put_(torch.tensor([1, -2]), x.flatten()[::2][:2])
    assert y.tolist() == [[0, 0, 1], [1, 0, 0]]


def test_the_first_index_outside_is_named(threads: int) -> None:
    at = torch.zeros(200_000, dtype=torch.int64)
    at[150_000], at[70_000] = 9, -2
    for call in (
        lambda: torch.zeros(5).gather(0, at),
        lambda: torch.zeros(5).scatter_add(0, at, torch.ones(200_000)),
        lambda: torch.zeros(5).index_add(0, at, torch.ones(200_000)),
    ):
        with pytest.raises(RuntimeError, match="index -2 is out of bounds for dimension 0"):
            call()


@pytest.mark.parametrize("index_dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("dtype", DTYPES)
def test_gather_and_scatter_by_expanded_indices(
    dtype: torch.dtype, index_dtype: torch.dtype
) -> None:
    x = torch.tensor([[1, 0, 1], [0, 1, 1]]).to(dtype)
    at = torch.tensor([1, 0, 1], dtype=index_dtype)
    assert x.gather(0, at.expand(2, 3)).tolist() == [[0, 0, 1], [0, 0, 1]]
    column = torch.tensor([[2], [0]], dtype=index_dtype).expand(2, 2)
    assert x.gather(1, column).tolist() == [[1, 1], [0, 0]]
    added = torch.zeros(2, 3, dtype=dtype).scatter_add(0, at.expand(2, 3), x)
    assert added.tolist() == torch.tensor([[0, 1, 0], [1, 0, 2]]).to(dtype).tolist()
    with pytest.raises(RuntimeError, match="index 2 is out of bounds for dimension 0 with size 2"):
        x.gather(0, (at + 1).expand(2, 3))


@pytest.mark.parametrize("width", [1, 2, 5, 64, 65])
def test_gather_and_scatter_along_short_lines(width: int, threads: int) -> None:
    draw = random.Random(1)
    x = torch.arange(4 * 300 * 7).view(4, 300, 7)
    picked = [[[draw.randrange(7) for _ in range(width)] for _ in range(300)] for _ in range(4)]
    at = torch.tensor(picked)
    lists = x.tolist()
    expected = [
        [[row[i] for i in line] for row, line in zip(*planes, strict=True)]
        for planes in zip(lists, picked, strict=True)
    ]
    assert x.gather(2, at).tolist() == expected
    assert x[:, ::3].gather(2, at[:, ::3]).tolist() == [plane[::3] for plane in expected]
    assert x.gather(-1, at[:, :1].expand(4, 300, width)).shape == (4, 300, width)
    source = torch.arange(at.numel()).view(at.shape)
    added, written = torch.zeros_like(x).tolist(), torch.zeros_like(x).tolist()
    for p, plane in enumerate(picked):
        for r, line in enumerate(plane):
            for c, i in enumerate(line):
                added[p][r][i] += source[p, r, c].item()
                written[p][r][i] = source[p, r, c].item()
    assert torch.zeros_like(x).scatter_add(2, at, source).tolist() == added
    assert torch.zeros_like(x).scatter(2, at, source).tolist() == written
    assert x[0, 0].gather(0, at[0, 0]).tolist() == expected[0][0]


def test_rows_are_added_in_order_for_any_number_of_threads(threads: int) -> None:
    draw = random.Random(0)
    for rows in ([draw.randrange(40) for _ in range(500)], [7] * 500, [0] * 499 + [39]):
        for width in (63, 64, 200):
            for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.int32):
                source = (torch.arange(500 * width).remainder(97) * 0.37).view(500, width).to(dtype)
                expected = torch.ones(40, width, dtype=dtype)
                added = expected.clone().index_add_(0, torch.tensor(rows), source)
                if dtype == torch.bfloat16:  # added up in float, and rounded once
                    expected, source = expected.float(), source.float()
                for at, line in zip(rows, source, strict=True):
                    expected[at] += line
                assert torch.equal(added, expected.to(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_index_fill(dtype: torch.dtype, threads: int) -> None:
    x = torch.zeros(300, 128, dtype=dtype)
    at = torch.tensor([0, 5, 5, -1])
    for dim, target in ((0, x.clone()), (1, x.t().clone()), (0, torch.stack([x, x], -1)[..., 1])):
        target.index_fill_(dim, at, 1)
        filled = target if dim == 0 else target.t()
        assert [i for i, row in enumerate(filled) if row.any()] == [0, 5, 299]
        assert filled[5].all()
    assert torch.equal(x.index_fill(0, at[:0], 1), x)
    with pytest.raises(IndexError, match="index 300 is out of bounds for dimension 0"):
        x.index_fill(0, torch.tensor([300]), 1)


@pytest.mark.parametrize("width", [1, 3, 32, 33])
def test_few_columns_of_many_rows(width: int, threads: int) -> None:
    draw = random.Random(width)
    columns = [draw.randrange(5) for _ in range(width)]
    at = torch.tensor(columns)
    x = torch.arange(3 * 4000 * 5).view(3, 4000, 5)
    expected = [[[row[i] for i in columns] for row in plane] for plane in x.tolist()]
    assert x[..., at].tolist() == expected
    assert x.index_select(2, at).tolist() == expected
    assert x[:, ::2].index_select(-1, at).tolist() == [plane[::2] for plane in expected]
    assert x.transpose(0, 1)[..., at].transpose(0, 1).tolist() == expected
    assert x[0, 0].index_select(0, at).tolist() == expected[0][0]
