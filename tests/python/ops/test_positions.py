"""Positions found, padded, unravelled, masked; chunks; hashes; copies of views into tensors."""

import numpy
import pytest
import rushlight as torch


def test_nonzero_static():
    x = torch.tensor([[0, 1], [2, 0]])
    assert torch.nonzero_static(x, size=3).tolist() == [[0, 1], [1, 0], [-1, -1]]
    assert x.nonzero_static(size=1, fill_value=7).tolist() == [[0, 1]]
    with pytest.raises(RuntimeError, match="non-negative integer"):
        torch.nonzero_static(x, size=-1)


def test_unravel_index():
    rows, columns = torch.unravel_index(torch.tensor([[5, 1], [7, -1]]), (2, 3))
    assert rows.tolist() == [[1, 0], [0, 1]]
    assert columns.tolist() == [[2, 1], [1, 2]]
    assert torch.unravel_index(torch.tensor(5), 6)[0] == 5
    with pytest.raises(TypeError, match="to be integer dtype"):
        torch.unravel_index(torch.tensor(1.0), (2, 3))
    with pytest.raises(ValueError, match="cannot have negative values"):
        torch.unravel_index(torch.tensor(1), (2, -3))


def test_masked_index_ignores_what_the_mask_hides():
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    at = torch.tensor([0, 99, 2, 0])
    mask = torch.tensor([True, False, True, True])
    found = torch._unsafe_masked_index(x, mask, [at], 7)
    assert found.tolist() == [1.0, 7.0, 3.0, 1.0]
    found.sum().backward()
    assert x.grad.tolist() == [2.0, 0.0, 1.0]
    added = torch._unsafe_masked_index_put_accumulate(x, mask, [at], torch.ones(4))
    assert added.tolist() == [3.0, 2.0, 4.0]


def test_hash_tensor():
    assert torch.hash_tensor(torch.tensor([1, 2, 4])) == 7
    ones = torch.tensor([-1], dtype=torch.int8)
    assert torch.hash_tensor(ones).item() == 2**64 - 1
    bits = torch.tensor([1.5], dtype=torch.float64).view(torch.int64).item()
    assert torch.hash_tensor(torch.tensor([1.5], dtype=torch.bfloat16)).item() == bits
    x = torch.tensor([[1, 2], [4, 8]])
    assert x.hash_tensor(dim=1, keepdim=True).tolist() == [[3], [12]]
    with pytest.raises(RuntimeError, match="Unknown hash_tensor mode: 1"):
        torch.hash_tensor(x, mode=1)
    with pytest.raises(IndexError, match="to have non-zero size"):
        torch.hash_tensor(torch.empty(0, 3), dim=0)


def test_chunk_cat():
    a = torch.arange(1, 7).view(3, 2)
    b = torch.arange(1, 10).view(3, 3)
    assert torch._chunk_cat([a, b], 0, 2).tolist() == [
        [1, 2, 3, 4, 1, 2, 3, 4, 5, 6],
        [5, 6, 0, 0, 7, 8, 9, 0, 0, 0],
    ]
    with pytest.raises(RuntimeError, match="expects positive num_chunks"):
        torch._chunk_cat([a], 0, 0)
    with pytest.raises(RuntimeError, match="expects same sizes"):
        torch._chunk_cat([a, torch.ones(2, 2, dtype=torch.int64)], 1, 2)


def test_empty_permuted():
    assert torch.empty_permuted((2, 3, 5), (0, 2, 1)).stride() == (15, 1, 3)
    with pytest.raises(RuntimeError, match="Duplicate dim not allowed"):
        torch.empty_permuted((2, 3), (0, 0))
    with pytest.raises(RuntimeError, match="expected to be between 0 and 0"):
        torch.empty_permuted((2,), (3,))


def test_copies_into_given_tensors():
    x = torch.arange(6.0).view(3, 2)
    parts = [torch.empty(0), torch.zeros(4)[::2], torch.empty(5)]
    assert torch.unbind_copy(x, out=parts) is None
    assert [part.tolist() for part in parts] == x.tolist()
    assert parts[1].stride() == (2,)
    torch.split_copy(x, 2, out=parts[:2])
    assert parts[0].tolist() == [[0.0, 1.0], [2.0, 3.0]]
    torch.split_with_sizes_copy(x, [1, 2], out=parts[:2])
    assert parts[1].tolist() == [[2.0, 3.0], [4.0, 5.0]]
    assert len(torch.unbind_copy(x, out=None)) == 3
    with pytest.raises(RuntimeError, match="expected an out= argument of size 3, got size 2"):
        torch.unbind_copy(x, out=parts[:2])
    with pytest.raises(RuntimeError, match="out tensor to have dtype"):
        torch.unbind_copy(x, out=[torch.empty(2, dtype=torch.int32) for _ in range(3)])
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        torch.unbind_copy(x, out=[torch.empty(2, requires_grad=True) for _ in range(3)])


def test_zero_function():
    x = torch.ones(2)
    assert torch.zero_(x) is x
    assert x.tolist() == [0.0, 0.0]
    assert not hasattr(torch, "zero")


BORDERS = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@pytest.mark.parametrize("mode", BORDERS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int16, torch.uint8])
def test_borders_of_elements(mode, dtype):
    x = torch.arange(2 * 3 * 4 * 5).view(2, 3, 4, 5).to(dtype)
    for pad in ((1, 2), (3, 0, 0, 2), (2, 1, 3, 3), (1, 1, 1, 1, 2, 1)):
        y = x if len(pad) > 2 else x[0]
        widths = [(0, 0)] * (y.dim() - len(pad) // 2) + [
            pad[i : i + 2] for i in range(len(pad) - 2, -1, -2)
        ]
        expected = numpy.pad(y.numpy(), widths, BORDERS[mode])
        made = torch.nn.functional.pad(y, pad, mode=mode)
        assert made.tolist() == expected.tolist()
        turned = torch.nn.functional.pad(y.mT.contiguous().mT, pad, mode=mode)
        assert torch.equal(turned, made)


@pytest.mark.parametrize("mode", BORDERS)
def test_negative_borders_cut_off(mode):
    x = torch.arange(12.0).view(1, 3, 4)
    made = torch.nn.functional.pad(x, (-1, 2), mode=mode)
    rest = {"reflect": [2, 1], "replicate": [3, 3], "circular": [1, 2]}[mode]
    assert made[0, 0].tolist() == [1, 2, 3, *rest]
    assert torch.nn.functional.pad(x, (-1, -1), mode=mode)[0, 2].tolist() == [9, 10]


@pytest.mark.parametrize("mode", BORDERS)
def test_gradients_of_borders(mode):
    x = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    padded = lambda x: torch.nn.functional.pad(x, (2, -1), mode=mode)  # noqa: E731
    assert torch.autograd.gradcheck(padded, (x,))
    assert torch.autograd.gradgradcheck(lambda x: padded(x) ** 2, (x,))
    x = torch.randn(1, 2, 3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda x: torch.nn.functional.pad(x, (1, 2, 2, 0), mode=mode), (x,)
    )
