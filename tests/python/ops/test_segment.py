"""segment_reduce on values worked out by hand."""

import pytest
import rushlight as torch

DATA = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
LENGTHS = torch.tensor([2, 0, 3, 1])


@pytest.mark.parametrize(
    ("reduce", "expected", "with_initial"),
    [
        ("sum", [3.0, 0.0, 12.0, 6.0], [5.0, 2.0, 14.0, 8.0]),
        ("max", [2.0, -torch.inf, 5.0, 6.0], [2.0, 2.0, 5.0, 6.0]),
        ("min", [1.0, torch.inf, 3.0, 6.0], [1.0, 2.0, 2.0, 2.0]),
        ("prod", [2.0, 1.0, 60.0, 6.0], [4.0, 2.0, 120.0, 12.0]),
    ],
)
def test_reductions(reduce, expected, with_initial):
    assert torch.segment_reduce(DATA, reduce, lengths=LENGTHS).tolist() == expected
    offsets = torch.tensor([0, 2, 2, 5, 6])
    assert torch._segment_reduce(DATA, reduce, offsets=offsets).tolist() == expected
    found = torch.segment_reduce(DATA, reduce, lengths=LENGTHS, initial=2)
    assert found.tolist() == with_initial


def test_mean_and_other_axes():
    assert torch.segment_reduce(DATA, "mean", lengths=LENGTHS)[1].isnan()
    found = torch.segment_reduce(DATA, "mean", lengths=LENGTHS, initial=2)
    assert found.tolist() == pytest.approx([2.5, 2.0, 14 / 3, 8.0])
    both = torch.stack([DATA, DATA * 2])
    found = torch.segment_reduce(both, "sum", lengths=torch.stack([LENGTHS, LENGTHS]), axis=1)
    assert found.tolist() == [[3.0, 0.0, 12.0, 6.0], [6.0, 0.0, 24.0, 12.0]]
    assert torch.segment_reduce(both.t(), "sum", lengths=LENGTHS).shape == (4, 2)


@pytest.mark.parametrize(
    ("reduce", "data", "expected"),
    [
        ("max", [1.0, 1.0, 3.0, 0.0, 4.0, 9.0], [0.5, 0.5, 0.0, 0.0, 3.0, 4.0]),
        ("min", [1.0, 2.0, 3.0, 0.0, 4.0, 9.0], [1.0, 0.0, 0.0, 3.0, 0.0, 4.0]),
        ("mean", [1.0, 2.0, 3.0, 0.0, 4.0, 9.0], [0.5, 0.5, 1.0, 1.0, 1.0, 4.0]),
        ("prod", [0.0, 0.0, 3.0, 0.0, 4.0, 9.0], [0.0, 0.0, 0.0, 36.0, 0.0, 4.0]),
    ],
)
def test_gradients(reduce, data, expected):
    x = torch.tensor(data, requires_grad=True)
    found = torch.segment_reduce(x, reduce, lengths=LENGTHS)
    assert type(found.grad_fn).__name__ == "SegmentReduceBackward0"
    found.backward(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    assert x.grad.tolist() == expected


def test_mistakes():
    with pytest.raises(RuntimeError, match="Either lengths or offsets must be defined"):
        torch.segment_reduce(DATA, "sum")
    with pytest.raises(RuntimeError, match="to sum to data.size"):
        torch.segment_reduce(DATA, "sum", lengths=torch.tensor([2, 2]))
    assert torch.segment_reduce(
        DATA, "sum", lengths=torch.tensor([2, 2]), unsafe=True
    ).tolist() == [3.0, 7.0]
    with pytest.raises(RuntimeError, match="lengths contains negative value"):
        torch.segment_reduce(DATA, "sum", lengths=torch.tensor([-2, 8]))
    with pytest.raises(RuntimeError, match="to sum to data.size"):
        torch.segment_reduce(DATA, "sum", lengths=torch.tensor([8]), unsafe=True)
    with pytest.raises(RuntimeError, match="offsets to ascend"):
        torch.segment_reduce(DATA, "sum", offsets=torch.tensor([0, 9]))
    with pytest.raises(RuntimeError, match="must be either sum, prod, mean"):
        torch.segment_reduce(DATA, "middle", lengths=LENGTHS)


def test_compiled():
    compiled = torch.compile(lambda x: torch.segment_reduce(x * 2, "sum", lengths=LENGTHS))
    assert compiled(DATA).tolist() == [6.0, 0.0, 24.0, 12.0]
