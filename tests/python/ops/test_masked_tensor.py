"""Tensors that know which of their elements are there."""

import pytest
import rushlight as torch
from rushlight.masked import MaskedTensor, as_masked_tensor, is_masked_tensor, masked_tensor

ROW = [True, False, True]


def row(requires_grad=False):
    return masked_tensor(torch.tensor([1.0, 2.0, 3.0]), torch.tensor(ROW), requires_grad)


def table():
    mask = torch.tensor([ROW, [False, False, False]])
    return masked_tensor(torch.arange(6.0).view(2, 3), mask)


def check(found, values, mask):
    assert isinstance(found, MaskedTensor)
    assert found.get_mask().tolist() == mask
    torch.testing.assert_close(found.to_tensor(0), torch.tensor(values), check_dtype=False)


def test_text():
    wanted = """MaskedTensor(
  [
    [  0.0000,       --,   2.0000],
    [      --,       --,       --]
  ]
)"""
    assert repr(table()) == str(table()) == f"{table()}" == wanted
    assert repr(table().sum()) == "MaskedTensor(  2.0000, True)"
    assert repr(table()[1, 1]) == "MaskedTensor(--, False)"
    numbers = masked_tensor(torch.tensor([10, 2]), torch.tensor([True, False]))
    assert repr(numbers) == "MaskedTensor(\n  [10,       --]\n)"


def test_elementwise():
    check(row().exp().log(), [1.0, 0.0, 3.0], ROW)
    check(-row() + 1, [0.0, 0.0, -2.0], ROW)
    check(2 * row() * row(), [2.0, 0.0, 18.0], ROW)
    check(row() > 2, [0, 0, 1], ROW)
    check(table() + torch.ones(3), [[1.0, 0.0, 3.0], [0.0] * 3], [ROW, [False] * 3])
    check(row().double(), [1.0, 0.0, 3.0], ROW)
    copy = row().clone()
    assert copy.add_(1) is copy
    check(copy, [2.0, 0.0, 4.0], ROW)
    other = masked_tensor(torch.ones(3), torch.tensor([True, True, True]))
    with pytest.raises(ValueError, match="Input masks must match"):
        row() + other


@pytest.mark.parametrize(
    ("name", "of_all", "of_rows"),
    [
        ("sum", 2.0, 2.0), ("mean", 1.0, 1.0), ("prod", 0.0, 0.0), ("amax", 2.0, 2.0),
        ("amin", 0.0, 0.0), ("argmax", 2, 2), ("argmin", 0, 0), ("var", 2.0, 2.0),
        ("std", 2.0**0.5, 2.0**0.5), ("all", 0, 0),
    ],
)  # fmt: skip
def test_reductions(name, of_all, of_rows):
    check(getattr(table(), name)(), of_all, True)
    check(getattr(table(), name)(1), [of_rows, 0], [True, False])
    check(getattr(table(), name)(dim=1, keepdim=True), [[of_rows], [0]], [[True], [False]])


def test_softmax_and_where():
    check(torch.softmax(row(), 0), [0.1192029, 0.0, 0.8807971], ROW)
    condition = torch.tensor([True, True, False])
    check(torch.where(condition, row(), torch.zeros(3)), [1.0, 0.0, 0.0], [True, False, True])


def test_views_and_joins():
    check(table()[0], [0.0, 0.0, 2.0], ROW)
    mask = [[True, False], [False, False], [True, False]]
    check(table().T, [[0.0, 0.0], [0.0, 0.0], [2.0, 0.0]], mask)
    check(row().view(3, 1), [[1.0], [0.0], [3.0]], [[True], [False], [True]])
    check(torch.cat([row(), row()]), [1.0, 0.0, 3.0] * 2, ROW * 2)
    first, second = row().split(2)
    check(first, [1.0, 0.0], ROW[:2])
    check(second, [3.0], ROW[2:])
    check(row()[row().get_mask()], [1.0, 3.0], [True, True])


def test_gradients():
    x = row(requires_grad=True)
    (x * x).sum().backward()
    check(x.grad, [2.0, 0.0, 6.0], ROW)
    x = torch.tensor([-10.0, 0.0, 100.0])
    low = x < 0
    small = masked_tensor(x, low, requires_grad=True)
    ones = masked_tensor(torch.ones_like(x), ~low, requires_grad=True)
    torch.where(low, small.exp(), ones).sum().backward()
    check(small.grad, [4.54e-5, 0.0, 0.0], [True, False, False])
    leaf = torch.ones(3, requires_grad=True)
    as_masked_tensor(leaf * 2, torch.tensor(ROW)).sum().backward()
    assert leaf.grad.tolist() == [2.0, 0.0, 2.0]
    x = row(requires_grad=True)
    x.to_tensor(5).sum().backward()
    check(x.grad, [1.0, 0.0, 1.0], ROW)


def test_misuse():
    assert is_masked_tensor(row()) and not is_masked_tensor(1)
    mask = torch.tensor(ROW)
    with pytest.raises(ValueError, match="data.size.. must equal mask.size.."):
        masked_tensor(torch.ones(2), mask)
    with pytest.raises(TypeError, match="mask must have dtype bool"):
        masked_tensor(torch.ones(3), torch.ones(3))
    with pytest.raises(TypeError, match="data must be a Tensor"):
        masked_tensor([1.0], mask)
    with pytest.raises(TypeError, match="torch.complex64 is not supported in MaskedTensor"):
        masked_tensor(torch.ones(3, dtype=torch.complex64), mask)
    with pytest.warns(UserWarning, match="with a tensor that requires_grad"):
        masked_tensor(torch.ones(3, requires_grad=True), mask)
    failed = r"failed for 'rushlight.matmul'.*\n\n  - tensor subclass"
    with pytest.raises(TypeError, match=failed):
        torch.matmul(row(), row())
    with pytest.raises(ValueError, match="cannot be written to `out`"):
        torch.sin(row(), out=torch.ones(3))
