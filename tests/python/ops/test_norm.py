"""Norms and products of linear algebra."""

import math

import pytest
import rushlight as torch

A = torch.tensor([[1.0, -2.0], [3.0, 4.0]])
L = torch.linalg


def test_matrix_norms():
    assert L.matrix_norm(A).item() == pytest.approx(math.sqrt(30))
    assert L.matrix_norm(A, 1).item() == 6.0
    assert L.matrix_norm(A, -1).item() == 4.0
    assert L.matrix_norm(A, math.inf).item() == 7.0
    assert L.matrix_norm(A, -math.inf, keepdim=True).tolist() == [[3.0]]
    # Of the singular values the squares add up to 30 and the product is det = 10.
    greatest, least = (math.sqrt(15 + sign * math.sqrt(125)) for sign in (1, -1))
    assert L.matrix_norm(A, 2).item() == pytest.approx(greatest)
    assert L.matrix_norm(A, -2).item() == pytest.approx(least)
    assert L.matrix_norm(A, "nuc").item() == pytest.approx(greatest + least)
    with pytest.raises(RuntimeError, match="not supported"):
        L.matrix_norm(A, 3)


def test_norm_chooses_by_shape():
    assert L.norm(A).item() == pytest.approx(math.sqrt(30))
    assert L.norm(A, 1).item() == 6.0
    assert L.norm(A, 1, dim=1).tolist() == [3.0, 7.0]
    assert L.norm(A, "fro", dim=(0, 1)).item() == pytest.approx(math.sqrt(30))
    with pytest.raises(RuntimeError, match="1D or 2D"):
        L.norm(torch.ones(2, 2, 2), 1)


def test_cross():
    x, y = torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.0, 1.0, 0.0])
    assert torch.cross(x, y, dim=0).tolist() == [0.0, 0.0, 1.0]
    assert L.cross(y, x).tolist() == [0.0, 0.0, -1.0]
    with pytest.raises(RuntimeError, match="must have length 3"):
        L.cross(torch.ones(2), torch.ones(2))


def test_matrix_power():
    assert torch.matrix_power(A, 3).tolist() == (A @ A @ A).tolist()
    assert torch.matrix_power(A, 0).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert torch.allclose(torch.matrix_power(A, -1), torch.tensor([[0.4, 0.2], [-0.3, 0.1]]))


def test_zeroth_power_has_a_gradient():
    x = A.clone().requires_grad_()
    (grad,) = torch.autograd.grad(torch.matrix_power(x, 0).sum(), x)
    assert grad.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert L.vander(torch.tensor(2), N=3).tolist() == [[1, 2, 4]]


def test_multi_dot():
    a, b, c = torch.ones(2, 3), torch.ones(3, 4), torch.ones(4)
    assert L.multi_dot([a, b, c]).tolist() == [12.0, 12.0]
    with pytest.raises(RuntimeError, match="at least 2 tensors"):
        L.multi_dot([a])


def test_vander_and_vecdot():
    x = torch.tensor([2, 3])
    assert L.vander(x, N=3).tolist() == [[1, 2, 4], [1, 3, 9]]
    assert L.vecdot(A, A).tolist() == [5.0, 25.0]


def test_vander_of_torch_has_the_highest_power_first():
    x = torch.tensor([1, 2, 3])
    assert torch.vander(x).tolist() == [[1, 1, 1], [4, 2, 1], [9, 3, 1]]
    assert torch.vander(x, 2, increasing=True).tolist() == [[1, 1], [1, 2], [1, 3]]


@pytest.mark.parametrize("norm", [L.vector_norm, L.norm, torch.norm])
def test_vector_norms_refuse_dtypes(norm):
    def refuses(text, tensor, dtype):
        with pytest.raises(RuntimeError, match=f"linalg.vector_norm: {text}"):
            norm(tensor, dtype=dtype)

    line = A[0]
    narrowing = r"the dtype of the input \({}\) should be convertible without narrowing to .*{}"
    refuses(narrowing.format("Float", "Half"), line, torch.float16)
    refuses(narrowing.format("Half", "BFloat16"), line.half(), torch.bfloat16)
    refuses("dtype should be real for real inputs, but got ComplexFloat", line, torch.complex64)
    refuses("dtype should be complex for complex inputs, but got Float", line + 0j, torch.float32)
    refuses("dtype should be floating point or complex, but got Int", line, torch.int32)
    refuses("Expected a floating point or complex tensor as input. Got Long", line.long(), None)
    refuses("Expected a floating.* Got Long", line.long(), torch.float32)
    assert norm(line.bfloat16(), dtype=torch.float32).item() == pytest.approx(math.sqrt(5))


def test_matrix_norms_refuse_narrowing():
    with pytest.raises(RuntimeError, match="linalg.matrix_norm: the dtype of the input .Float."):
        L.matrix_norm(A, dtype=torch.float16)
    with pytest.raises(RuntimeError, match="linalg.matrix_norm: dtype should be floating point"):
        L.matrix_norm(A, dtype=torch.int64)
