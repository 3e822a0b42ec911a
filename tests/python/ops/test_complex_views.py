"""Complex numbers as pairs of real ones."""

import pytest
import rushlight as torch


def test_views_share_memory():
    pairs = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    numbers = torch.view_as_complex(pairs)
    assert numbers.dtype == torch.complex64
    assert numbers.tolist() == [1 + 2j, 3 + 4j]
    torch.view_as_real(numbers)[0, 1] = 9
    assert pairs[0, 1] == 9
    torch.imag(numbers).fill_(0)
    assert pairs.tolist() == [[1.0, 0.0], [3.0, 0.0]]
    assert torch.real(numbers).data_ptr() == pairs.data_ptr()


def test_complex_from_parts():
    made = torch.complex(torch.tensor([1.0, 2.0]), torch.tensor(3.0))
    assert made.tolist() == [1 + 3j, 2 + 3j]
    out = torch.empty(2, dtype=torch.complex64)
    assert torch.complex(torch.ones(2), torch.zeros(2), out=out) is out
    assert out.tolist() == [1, 1]
    assert torch.view_as_real_copy(out).tolist() == [[1.0, 0.0], [1.0, 0.0]]


def test_gradients_of_parts():
    real = torch.tensor([1.0, 2.0], requires_grad=True)
    imag = torch.tensor([3.0, 4.0], requires_grad=True)
    made = torch.complex(real, imag)
    assert type(made.grad_fn).__name__ == "ComplexBackward0"
    (torch.view_as_real(made) * torch.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    assert real.grad.tolist() == [1.0, 3.0]
    assert imag.grad.tolist() == [2.0, 4.0]


def test_mistakes():
    with pytest.raises(RuntimeError, match="only supported for complex tensors"):
        torch.view_as_real(torch.ones(2))
    with pytest.raises(RuntimeError, match="last dimension of size 2"):
        torch.view_as_complex(torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="last dimension with stride 1"):
        torch.view_as_complex(torch.ones(2, 4)[:, ::2])
    with pytest.raises(RuntimeError, match="storage_offset divisible by 2"):
        torch.view_as_complex(torch.ones(3, 4)[:, 1:3])
    with pytest.raises(RuntimeError, match="not implemented for tensors with non-complex dtypes"):
        torch.imag(torch.ones(2))
    with pytest.raises(RuntimeError, match="scalar type Float but got scalar type Double"):
        torch.complex(torch.ones(2), torch.ones(2, dtype=torch.float64))
    with pytest.raises(RuntimeError, match="ComplexFloat but got scalar type Float for argument"):
        torch.complex(torch.ones(2), torch.ones(2), out=torch.empty(2))
