"""Sobol sequences: the numbers that PyTorch draws, and how they are drawn."""

import pytest
import rushlight as torch
from rushlight.quasirandom import SobolEngine

# By column, of the direction numbers of all 21201 dimensions, as PyTorch has them.
CHECKSUMS = [
    50733, 7312, 7892, 47536, 28884, 64126, 35945, 22678, 60463, 46238, 26091, 56719, 44544, 18198,
    14298, 22291, 25180, 37023, 45627, 33868, 49284, 49245, 15035, 63882, 60773, 19725, 5120, 449,
    50501, 48247,
]  # fmt: skip


def test_the_first_points():
    engine = SobolEngine(3)
    expected = [[0, 0, 0], [0.5, 0.5, 0.5], [0.75, 0.25, 0.25], [0.25, 0.75, 0.75]]
    assert torch.equal(engine.draw(4), torch.tensor(expected))
    later = torch.tensor([[0.375, 0.375, 0.625], [0.875, 0.875, 0.125]], dtype=torch.float64)
    assert torch.equal(engine.draw(2, dtype=torch.float64), later)
    assert engine.num_generated == 6


def test_scrambled_points():
    engine = SobolEngine(3, scramble=True, seed=7)
    assert engine.shift.tolist() == [214182645, 183537049, 804615878]
    state = [[545853173, 438452617], [662285411, 1065302244], [816589273, 758585655]]
    assert engine.sobolstate[:, :2].tolist() == state
    expected = [[0.1995, 0.1709, 0.7494], [0.6922, 0.7115, 0.4898], [0.8505, 0.2963, 0.7880]]
    torch.testing.assert_close(engine.draw(3), torch.tensor(expected), atol=5e-5, rtol=0)


def test_every_dimension_of_the_table():
    state = SobolEngine(SobolEngine.MAXDIM).sobolstate
    assert state.shape == (21201, 30)
    lowest = state & -state  # number j is odd times 2^(29 - j): each bit splits what is left in two
    assert torch.equal(lowest, (2 ** torch.arange(29, -1, -1)).expand(21201, 30))
    weighted = (state % 65521 * (torch.arange(21201)[:, None] % 997 + 1)).sum(0) % 65521
    assert weighted.tolist() == CHECKSUMS


def test_points_are_balanced():
    points = SobolEngine(20).draw_base2(8)
    assert torch.equal((points < 0.5).sum(0), torch.full((20,), 128))
    sorted_points = points.sort(0).values
    assert torch.equal(sorted_points, (torch.arange(256) / 256)[:, None].expand(256, 20))


def test_one_draw_or_several():
    together = SobolEngine(5, scramble=True, seed=1).draw(20)
    engine = SobolEngine(5, scramble=True, seed=1)
    assert torch.equal(torch.cat([engine.draw(1), engine.draw(7), engine.draw(12)]), together)
    assert torch.equal(engine.reset().draw(20), together)
    assert torch.equal(engine.reset().fast_forward(13).draw(7), together[13:])


def test_where_points_go():
    out = torch.empty(0, dtype=torch.float64)
    assert SobolEngine(2).draw(3, out=out) is out
    assert out.tolist() == [[0.0, 0.0], [0.5, 0.5], [0.75, 0.25]]
    assert repr(SobolEngine(2, scramble=True, seed=3)) == (
        "SobolEngine(dimension=2, scramble=True, seed=3)"
    )


def test_mistakes():
    for dimension in (0, 21202):
        with pytest.raises(ValueError, match=r"Supported range of dimensionality .* \[1, 21201\]"):
            SobolEngine(dimension)
    engine = SobolEngine(2)
    engine.draw(3)
    with pytest.raises(ValueError, match=r"require n to be a power of 2\. 3 points have been"):
        engine.draw_base2(2)
    with pytest.raises(RuntimeError, match="the number of points to draw, got 0"):
        SobolEngine(2).draw(0)
