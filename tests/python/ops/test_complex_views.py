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


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_polar(dtype):
    size = torch.tensor([[1.0], [-2.0]], dtype=dtype)
    angle = torch.tensor([0.0, 0.5, 3.0], dtype=dtype)
    made = torch.polar(size, angle)
    assert made.dtype == (torch.complex64 if dtype == torch.float32 else torch.complex128)
    assert made.real.equal(size * angle.cos())
    assert made.imag.equal(size * angle.sin())
    out = torch.empty(0, dtype=made.dtype)
    assert torch.polar(size, angle, out=out) is out
    assert out.equal(made)
    meta = torch.polar(size.to("meta"), angle.to("meta"))
    assert (meta.shape, meta.dtype, meta.is_meta) == (made.shape, made.dtype, True)


def test_gradients_of_polar():
    size = torch.tensor([1.0, -2.0, 0.0], dtype=torch.float64, requires_grad=True)
    angle = torch.tensor([[0.5], [4.0]], dtype=torch.float64, requires_grad=True)
    assert type(torch.polar(size, angle).grad_fn).__name__ == "PolarBackward0"
    assert torch.autograd.gradcheck(torch.polar, (size, angle))
    assert torch.autograd.gradgradcheck(torch.polar, (size, angle))


def rotated(x, angles):
    turns = torch.polar(torch.ones_like(angles), angles)
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turns).flatten(-2)


def test_rotary_embedding_compiled():
    def loss(q, k, angles):
        return (rotated(q, angles) @ rotated(k, angles).mT).square().mean()

    torch.manual_seed(0)
    angles = torch.outer(torch.arange(5.0), 100.0 ** -torch.arange(0, 1, 0.25))
    made = []
    for run in (loss, torch.compile(loss)):
        torch.manual_seed(1)
        q, k = (torch.randn(2, 5, 8, requires_grad=True) for _ in range(2))
        value = run(q, k, angles)
        value.backward()
        made.append((value.item(), q.grad, k.grad))
    eager, compiled = made
    assert eager[0] == compiled[0]
    assert eager[1].equal(compiled[1])
    assert eager[2].equal(compiled[2])
    # What is turned keeps its length, and a product depends on the distance of positions alone.
    ones = torch.ones(5, 8)
    turned = rotated(ones, angles)
    assert torch.allclose(turned.norm(dim=-1), ones.norm(dim=-1))
    products = turned @ turned.mT
    assert torch.allclose(products[1:, 1:], products[:-1, :-1], atol=1e-5)


def test_mistakes_in_polar():
    half, single, double = (torch.ones(2, dtype=t) for t in (torch.half, torch.float, torch.double))
    with pytest.raises(RuntimeError, match="scalar type Float but got scalar type Double"):
        torch.polar(single, double)
    with pytest.raises(RuntimeError, match="Half, Float or Double tensors but got Long and Long"):
        torch.polar(single.long(), single.long())
    with pytest.raises(NotImplementedError, match="polar: not implemented for 'Half'"):
        torch.polar(half, half)
    with pytest.raises(RuntimeError, match="must match the size of tensor b"):
        torch.polar(single, torch.ones(3))
    with pytest.raises(RuntimeError, match="ComplexFloat but got scalar type ComplexDouble"):
        torch.polar(single, single, out=torch.empty(2, dtype=torch.complex128))
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        out = torch.empty(2, dtype=torch.complex64)
        torch.polar(single.requires_grad_(), double.float(), out=out)


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
