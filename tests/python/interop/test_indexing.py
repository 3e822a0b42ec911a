"""Subscripts, read and written."""

import pytest
import rushlight as torch


@pytest.fixture
def x():
    return torch.arange(12).reshape(3, 4)


READS = [
    "x[1]", "x[-1]", "x[1, 2]", "x[1:]", "x[:, 1:3]", "x[::2, ::3]", "x[...]", "x[..., 0]",
    "x[None]", "x[:, None, 1]", "x[True]", "x[False]", "x[True, 0]", "x[[0, 2]]",
    "x[[0, 2], [1, 3]]",
    "x[:, [0, 2]]", "x[[True, False, True]]", "x[x > 3]", "x[t.tensor(1)]", "x[t.tensor([0, 0])]",
    "x[t.tensor([[0, 1], [1, 2]])]", "x[1, t.tensor([0, 3])]", "x[t.tensor([0, 1]), 1:3]",
    "x[()]", "x[range(2)]", "x[None, ..., None]", "x[:, t.tensor([0, 1])[:, None]]",
    "x[t.tensor([True, False, True]), 1]", "x[2:1]", "x[[]]", "x[0:100]", "x[..., x[0] > 1]",
]  # fmt: skip
WRITES = [
    "x[0] = 5", "x[0] = t.tensor([1, 2, 3, 4])", "x[:2] = t.ones(1, 1, 2, 4)", "x[x > 3] = 0",
    "x[True] = 7", "x[False] = 7", "x[None] = 3", "x[...] = 3", "x[0] = 1.9", "x[1, ::2] = 9",
    "x[[0, 1], [1, 2]] = t.tensor([50, 60])", "x[0, [1, 2]] = 5",
    "x[..., 0] = t.tensor([[5, 6, 7]])",
    "x[t.tensor(1)] = 4", "x[0][0] = 7", "x[t.tensor([0, 0])] = t.tensor([[1] * 4, [2] * 4])",
]  # fmt: skip


@pytest.mark.parametrize("text", READS)
def test_reads_equal_pytorchs(text, theirs):
    results = []
    for t in (torch, theirs):
        result = eval(text, {"t": t, "x": t.arange(12).reshape(3, 4)})
        results.append((tuple(result.shape), result.tolist()))
    assert results[0] == results[1]


@pytest.mark.parametrize("text", WRITES)
def test_writes_equal_pytorchs(text, theirs):
    results = []
    for t in (torch, theirs):
        x = t.arange(12).reshape(3, 4)
        exec(text, {"t": t, "x": x})
        results.append(x.tolist())
    assert results[0] == results[1]


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("x[5]", IndexError, "index 5 is out of bounds for dimension 0 with size 3"),
        ("x[0, 9]", IndexError, "index 9 is out of bounds for dimension 1 with size 4"),
        ("x[0, 0, 0]", IndexError, "too many indices for tensor of dimension 2"),
        ("t.tensor(1)[0]", IndexError, "invalid index of a 0-dim tensor"),
        ("x[1.5]", IndexError, r"only integers, slices .* \(got float\)"),
        ("x[{}]", IndexError, r"\(got dict\)"),
        ("x[::-1]", ValueError, "step must be greater than zero"),
        ("x[::0]", ValueError, "slice step cannot be zero"),
        ("x['a':2]", TypeError, "slice indices must be integers"),
        ("x[t.tensor([0, 5])]", IndexError, "index 5 is out of bounds for dimension 0 with size 3"),
        ("x[t.tensor([1.5])]", IndexError, "must be long, int, byte or bool"),
        ("x[[0, 1], [0, 1, 2]]", IndexError, "shape mismatch: indexing tensors could not be"),
        ("x.__setitem__(0, 'a')", TypeError, "can't assign a str to a torch.LongTensor"),
        ("x.__setitem__(0, t.ones(2))", RuntimeError, r"The expanded size of the tensor \(4\)"),
        ("x.__setitem__(x > 3, t.tensor([1, 2]))", RuntimeError, "shape mismatch: value tensor"),
    ],
)
def test_what_does_not_fit_is_refused(x, text, kind, message):
    with pytest.raises(kind, match=message):
        eval(text, {"t": torch, "x": x})


def test_numpy_indices(x):
    numpy = pytest.importorskip("numpy")
    assert x[numpy.int64(1)].tolist() == [4, 5, 6, 7]
    assert x[numpy.array([0, 2])].shape == (2, 4)
    assert x[numpy.array([True, False, True])].shape == (2, 4)


def test_views_share_memory_and_gradients_flow():
    x = torch.zeros(3, 4, requires_grad=True)
    (x[1, ::2].sum() + 2 * x[[0, 0], [1, 1]].sum()).backward()
    assert x.grad.tolist() == [[0, 4, 0, 0], [1, 0, 1, 0], [0, 0, 0, 0]]
