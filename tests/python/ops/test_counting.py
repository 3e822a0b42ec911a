"""bincount and histc against plain loops: edges, layouts, dtypes, threads."""

import random
from collections import Counter
from collections.abc import Iterator

import pytest
import rushlight as torch


@pytest.fixture(params=[1, 3])
def threads(request) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


# Few bins have several tables a thread, many bins one.
@pytest.mark.parametrize("most", [1, 6, 1000, 4096, 9000])
@pytest.mark.parametrize("numel", [1, 3, 1023, 140_001])
def test_bincount(numel: int, most: int, threads: int) -> None:
    draw = random.Random(numel * most)
    values = [draw.randrange(most) for _ in range(numel)]
    times = Counter(values)
    expected = [times[v] for v in range(max(values) + 1)]
    x = torch.tensor(values)
    assert torch.bincount(x).tolist() == expected
    assert torch.bincount(x.to(torch.int16), minlength=5).tolist() == (
        expected + [0] * (5 - len(expected))
    )
    spread = torch.stack([x, x], 1)[:, 0]
    assert torch.bincount(spread, torch.ones(numel)).tolist() == expected


def test_bincount_of_nothing() -> None:
    empty = torch.zeros(0, dtype=torch.int64)
    assert torch.bincount(empty).tolist() == []
    assert torch.bincount(empty, minlength=2).tolist() == [0, 0]
    assert torch.bincount(empty, torch.zeros(0), 2).dtype == torch.float32


def test_bincount_adds_weights_in_order() -> None:
    values = [0, 2, 0, 0, 2]
    weights = [1e8, 0.5, 3.0, -1e8, 0.25]
    assert torch.bincount(torch.tensor(values), torch.tensor(weights)).tolist() == [0.0, 0, 0.75]
    doubles = torch.bincount(torch.tensor(values), torch.tensor(weights, dtype=torch.float64))
    assert doubles.tolist() == [3.0, 0, 0.75]
    integers = torch.bincount(torch.tensor([1, 1]), torch.tensor([2, 3]))
    assert (integers.dtype, integers.tolist()) == (torch.float64, [0, 5])


@pytest.mark.parametrize("at", [0, 3, 200_000])
def test_bincount_takes_no_negative_numbers(at: int, threads: int) -> None:
    x = torch.zeros(200_001, dtype=torch.int64)
    x[at] = -1
    with pytest.raises(RuntimeError, match="non-negative integral inputs"):
        torch.bincount(x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_histc(dtype: torch.dtype, threads: int) -> None:
    # Both ends belong to bins; what lies outside, infinities and NaN to none.
    inf, nan = float("inf"), float("nan")
    values = [-1.0, -0.5, 0.0, 0.5, 0.75, 1.0, 1.25, -1.25, inf, -inf, nan]
    x = torch.tensor(values, dtype=dtype)
    assert torch.histc(x, 4, -1, 1).tolist() == [1, 1, 1, 3]
    assert torch.histc(x, 4, -1, 1).dtype == dtype
    assert torch.histc(torch.stack([x, x], -1)[:, :1], 1, -1, 1).tolist() == [6]
    assert torch.histc(x[:7], 3).tolist() == [2, 1, 4]
    assert torch.histc(x[2:3], 4).tolist() == [0, 0, 1, 0]
    assert torch.histc(x[:0], 2).tolist() == [0, 0]
    # As many as are counted by their bits, and by several threads.
    many = x.repeat(20_000)
    assert torch.histc(many.double(), 4, -1, 1).tolist() == [20000, 20000, 20000, 60000]
    expected = torch.tensor([20000, 20000, 20000, 60000]).to(dtype)
    assert torch.equal(torch.histc(many, 4, -1, 1), expected)


def test_histc_rounds_each_step_to_the_dtype() -> None:
    # 0.1 is 0.09998 there: times ten it is below 1, and rounds to 1.
    x = torch.tensor([0.1, 0.3], dtype=torch.float16)
    assert torch.histc(x, 10, 0, 1).nonzero().flatten().tolist() == [1, 3]
    assert torch.histc(x.repeat(40_000), 10, 0, 1).nonzero().flatten().tolist() == [1, 3]
    assert torch.histc(x.double(), 10, 0, 1).nonzero().flatten().tolist() == [0, 3]


def test_histc_counts_beyond_what_floats_step_by_one() -> None:
    assert torch.histc(torch.zeros(2**24 + 8), 1, -1, 1).tolist() == [2**24 + 8]


def test_histc_of_a_wide_range_and_of_none() -> None:
    big = 3e38
    x = torch.tensor([-big, 0.0, big])
    assert torch.histc(x, 5).sum() == 3
    assert torch.histc(torch.empty(3, device="meta"), 7).shape == (7,)
    with pytest.raises(RuntimeError, match="is not finite"):
        torch.histc(torch.tensor([0.0, float("nan")]))
    with pytest.raises(RuntimeError, match="bins must be > 0, but got 0"):
        torch.histc(x, 0)
