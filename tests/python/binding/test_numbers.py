"""Tensor's operators against plain Python arithmetic, and conversions to numbers."""

import operator

import pytest
import rushlight as torch

BINARY = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.pow, operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge,
]  # fmt: skip
BITS = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]
INPLACE = [
    operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv,
    operator.imod, operator.ipow,
]  # fmt: skip


@pytest.mark.parametrize("function", BINARY)
def test_arithmetic_agrees_with_python(function):
    a, b = 4.0, 2.0
    expected = function(a, b)
    assert function(torch.tensor(a), torch.tensor(b)).item() == expected
    assert function(torch.tensor(a), b).item() == expected
    assert function(a, torch.tensor(b)).item() == expected


@pytest.mark.parametrize("function", BITS)
def test_bits_agree_with_python(function):
    a, b = 12, 2
    assert function(torch.tensor(a), torch.tensor(b)).item() == function(a, b)
    assert function(torch.tensor(a), b).item() == function(a, b)
    assert function(a, torch.tensor(b)).item() == function(a, b)


@pytest.mark.parametrize("function", INPLACE)
def test_in_place_arithmetic_keeps_the_object(function):
    x = torch.tensor([4.0])
    assert function(x, 2.0) is x
    assert x.item() == function(4.0, 2.0)


def test_unary_operators():
    x = torch.tensor([-1.5, 2.0])
    assert (-x).tolist() == [1.5, -2.0]
    assert abs(x).tolist() == [1.5, 2.0]
    assert (+x) is x
    assert (~torch.tensor([True, False])).tolist() == [False, True]
    with pytest.raises(TypeError, match="operator.invert"):
        ~x


def test_matrix_product():
    a = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert (a @ a).tolist() == [[7.0, 10.0], [15.0, 22.0]]
    with pytest.raises(TypeError, match="unsupported operand"):
        a @ 2


@pytest.mark.parametrize("other", ["a", None, [1, 2], object()])
def test_operands_of_other_types_are_refused(other):
    x = torch.ones(2)
    with pytest.raises(TypeError):
        x + other
    with pytest.raises(TypeError):
        x += other
    with pytest.raises(TypeError, match="not supported between instances"):
        x < other
    assert (x == other) is False
    assert (x != other) is True


def test_one_element_is_a_number():
    assert int(torch.tensor([3.7])) == 3
    assert float(torch.tensor(2)) == 2.0
    assert complex(torch.tensor(2.0)) == 2 + 0j
    assert bool(torch.tensor([0])) is False
    assert [10, 20, 30][torch.tensor(1)] == 20
    assert f"{torch.tensor(1.234):.2f}" == "1.23"
    assert isinstance(torch.tensor(1).item(), int)


def test_what_is_no_number_is_refused():
    many = torch.ones(2)
    with pytest.raises(
        RuntimeError, match="Boolean value of Tensor with more than one value is ambiguous"
    ):
        bool(many)
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with no values is ambiguous"):
        bool(torch.ones(0))
    with pytest.raises(ValueError, match="only one element tensors"):
        int(many)
    with pytest.raises(TypeError, match="only integer tensors of a single element"):
        operator.index(torch.tensor(1.0))
    with pytest.raises(RuntimeError, match="cannot be converted to Scalar"):
        many.item()
    with pytest.raises(ValueError, match="NaN"):
        int(torch.tensor(float("nan")))


def test_container_protocol():
    x = torch.arange(3)
    assert len(x) == 3
    assert [int(item) for item in x] == [0, 1, 2]
    assert 2 in x and 5 not in x
    with pytest.raises(TypeError, match="len\\(\\) of a 0-d tensor"):
        len(torch.tensor(1))
    with pytest.raises(TypeError, match="iteration over a 0-d tensor"):
        iter(torch.tensor(1))
    with pytest.raises(RuntimeError, match="only supports Tensor or scalar"):
        "a" in x
