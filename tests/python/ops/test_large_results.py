"""Results that are stored past the caches: the bits of small ones, wherever they begin and end."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import rushlight as torch
from rushlight import Tensor
from rushlight.nn import functional as F

COUNT = (5 << 20) + 37  # 20 MB of f32
ROWS, COLUMNS = 5003, 1030
Function = Callable[[Tensor], Tensor]


@pytest.fixture(autouse=True, params=[1, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield
    torch.set_num_threads(before)


def values(count: int) -> Tensor:
    return torch.arange(count).remainder(1009).float() * 0.01 - 3


@pytest.mark.parametrize("start", [0, 1, 16])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + x,
        lambda x: x.exp(),
        lambda x: x.clone(),
        lambda x: x.double(),
        lambda x: (x.double() > 0.5).to(torch.int32),
        lambda x: torch.mul(x, 3, out=torch.empty(x.numel() + 3)[3:]),
    ],
    ids=["add", "exp", "clone", "double", "int", "out"],
)
def test_elements_are_those_of_small_pieces(function: Function, start: int) -> None:
    x = values(COUNT + start)[start:]
    piece = 1 << 18
    wanted = torch.cat([function(x[i : i + piece]) for i in range(0, COUNT, piece)])
    assert torch.equal(function(x), wanted)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.layer_norm(x, x.shape[-1:]),
        lambda x: x.softmax(-1),
        lambda x: x.cumsum(-1),
        lambda x: x + x[:, :1],
        lambda x: torch.compile(lambda y: F.rms_norm(y, y.shape[-1:]) * y.sigmoid())(x),
    ],
    ids=["layer_norm", "softmax", "cumsum", "broadcast", "compiled"],
)
def test_rows_are_those_of_few_rows(function: Function) -> None:
    x = values(ROWS * COLUMNS).view(ROWS, COLUMNS)
    wanted = torch.cat([function(x[i : i + 100]) for i in range(0, ROWS, 100)])
    assert torch.equal(function(x), wanted)


def test_results_in_place_of_an_operand() -> None:
    x = values(COUNT)
    wanted = x + 1
    assert torch.equal(x.add_(1), wanted)
    assert torch.equal(torch.add(x, 1, out=x), wanted + 1)
