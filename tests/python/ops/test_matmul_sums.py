"""Products that are added to a tensor: what the tensor may be."""

import pytest
import rushlight as torch

A = torch.ones(2, 3)
LEFT, RIGHT = torch.ones(4, 2, 5), torch.ones(4, 5, 3)
U, V = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 3.0, 5.0])


def test_addbmm_expands_a_tensor_of_its_dtype():
    assert torch.addbmm(torch.tensor(1.0), LEFT, RIGHT).tolist() == [[21.0] * 3] * 2
    assert torch.addbmm(V, LEFT, RIGHT).tolist() == [[21.0, 23.0, 25.0]] * 2
    for self in (A.long(), A.double()):
        with pytest.raises(RuntimeError, match="self and mat2 must have the same dtype"):
            torch.addbmm(self, LEFT, RIGHT)
    for self in (torch.ones(5, 3), torch.ones(0, 3)):
        with pytest.raises(RuntimeError, match="The expanded size of the tensor"):
            torch.addbmm(self, LEFT, RIGHT)
    with pytest.raises(RuntimeError, match="must be greater or equal to the number of dimensions"):
        torch.addbmm(A[None], LEFT, RIGHT)


def test_addr_promotes_all_three():
    assert torch.addr(A.long(), U, V, beta=0.5).tolist() == [[1.5, 3.5, 5.5], [2.5, 6.5, 10.5]]
    assert torch.addr(torch.tensor(1.0).double(), U, V).dtype == torch.float64
    whole = torch.addr(A.byte(), U.long() * 200, V.long(), beta=3, alpha=2)
    assert whole.dtype == torch.int64 and whole.tolist()[0] == [403, 1203, 2003]
    with pytest.raises(RuntimeError, match="argument beta must not be a floating point number"):
        torch.addr(A.long(), U.long(), V.long(), beta=0.5)
    with pytest.raises(RuntimeError, match="without overflow"):
        torch.addr(A, U, V, beta=1j)
    with pytest.raises(RuntimeError, match="The expanded size of the tensor"):
        torch.addr(torch.ones(1, 3), U[:1], V[:1])
    with pytest.raises(RuntimeError, match="must be greater or equal to the number of dimensions"):
        torch.addr(A[None], U, V)
