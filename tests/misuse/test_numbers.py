"""Numbers that are too large, of the wrong kind, or where no number may stand."""

import pytest
import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F

HUGE = 2**70
MATRIX = torch.arange(12.0).view(3, 4)


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.zeros(HUGE),
        lambda: torch.zeros([2, HUGE]),
        lambda: MATRIX.reshape([HUGE]),
        lambda: MATRIX.sum([HUGE]),
        lambda: MATRIX.permute([0, -HUGE]),
        lambda: MATRIX.new_zeros(HUGE),
        lambda: MATRIX.split([HUGE]),
        lambda: F.conv2d(torch.ones(1, 1, 4, 4), torch.ones(1, 1, 2, 2), stride=HUGE),
        lambda: nn.Linear(4, HUGE),
    ],
)
def test_integers_in_lists_beyond_64_bits(call):
    with pytest.raises(
        TypeError, match="failed to unpack the object at pos . with error .Overflow"
    ):
        call()


def test_a_single_integer_beyond_64_bits():
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        MATRIX.softmax(HUGE)


def test_floats_may_be_given_as_integers_of_any_size():
    x = torch.ones(3)
    assert torch.isclose(x, x + 1e10, rtol=HUGE).all()
    assert torch.nan_to_num(torch.tensor([float("nan")]), HUGE).item() == float(HUGE)
    assert torch.normal(HUGE, 1.0, (2,)).mean() > 1e20
    assert F.layer_norm(MATRIX, (4,), eps=HUGE).abs().max() < 1e-6
    with pytest.raises(OverflowError, match="int too large to convert to float"):
        torch.isclose(x, x, rtol=10**400)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: torch.tensor_split(MATRIX, 2**62),
            RuntimeError,
            "more parts than a list can hold",
        ),
        (lambda: torch.tril_indices(2**62, 3), RuntimeError, "overflow"),
        (lambda: torch.triu_indices(2**62, 2**62), RuntimeError, "overflow"),
        (lambda: F.interpolate(torch.ones(1, 1, 4), 2**62), RuntimeError, "overflow"),
        (lambda: F.interpolate(torch.ones(1, 1, 4, 4), (2**62, 2**62)), RuntimeError, "overflow"),
        (lambda: F.fold(torch.ones(2, 12, 16), (5, 5), 2**62), RuntimeError, "overflow"),
        (lambda: F.unfold(torch.ones(1, 2, 4, 4), 2**62), RuntimeError, "overflow|no element"),
    ],
)
def test_counts_that_no_memory_holds(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_triangles_far_from_the_diagonal():
    for offset in (-(2**63), -5, -1, 0, 1, 2, 7, 2**63 - 1):
        for rows, columns in ((3, 4), (4, 3), (0, 3), (3, 0), (5, 1)):
            whole = torch.ones(rows, columns)
            shift = max(-10, min(10, offset))
            lower = torch.tril_indices(rows, columns, offset)
            upper = torch.triu_indices(rows, columns, offset)
            assert lower.tolist() == whole.tril(shift).nonzero().T.tolist()
            assert upper.tolist() == whole.triu(shift).nonzero().T.tolist()
    assert torch.tril_indices(2**60, 0).shape == (2, 0)


def test_the_least_integer_as_a_power():
    eye = torch.eye(2)
    assert torch.equal(torch.linalg.matrix_power(eye, -(2**63)), eye)


def test_initial_values_from_a_distribution_without_density():
    x = torch.ones(20)
    assert nn.init.trunc_normal_(x, float("nan")).isnan().all()
    assert nn.init.trunc_normal_(x, 0.0, float("inf")).isnan().all()
    with pytest.warns(UserWarning, match="more than 2 std"):
        far = nn.init.trunc_normal_(x, 1e6, 1.0, -2.0, 2.0)
    assert (far >= 1.9).all() and (far <= 2).all()


def test_right_hand_sides_of_the_wrong_length():
    matrix = torch.eye(4)
    for size in ((7,), (0,), (3, 2)):
        with pytest.raises(RuntimeError, match=r"Incompatible shapes of A and B .*4x4 and [730]x"):
            torch.linalg.solve(matrix, torch.ones(size))
    with pytest.raises(RuntimeError, match="Incompatible shapes"):
        torch.linalg.solve(matrix.expand(2, 4, 4), torch.ones(5))


def test_a_dimension_without_elements_in_a_sum_of_products():
    made = torch.einsum("ij,jk->ik", torch.ones(0, 4), torch.ones(4, 5))
    assert made.shape == (0, 5)
    assert torch.einsum("bij,bjk->bik", torch.ones(2, 3, 4), torch.ones(2, 4, 0)).shape == (2, 3, 0)
    assert torch.einsum("ij,jk->ik", torch.ones(3, 0), torch.ones(0, 2)).tolist() == [[0, 0]] * 3


def test_numbers_have_no_methods():
    with pytest.raises(TypeError, match=r"mul_\(\): argument 'self' must be Tensor, not float"):
        torch.Tensor.mul_(1.5, MATRIX)
    with pytest.raises(TypeError, match="must be Tensor, not int"):
        torch.Tensor.add_(2, MATRIX)


def test_a_complex_order_of_a_norm():
    with pytest.raises(RuntimeError, match="Expected a non-complex scalar as the order of norm"):
        torch.linalg.vector_norm(MATRIX, 1j)


@pytest.mark.parametrize("given", ["yes", 1, None, torch.float32])
def test_requires_grad_that_is_no_bool(given):
    with pytest.raises(TypeError, match="argument 'requires_grad' must be bool"):
        torch.tensor([1.0], requires_grad=given)
    with pytest.raises(TypeError, match="argument 'requires_grad' must be bool"):
        MATRIX.new_tensor([1.0], requires_grad=given)
    with pytest.raises(TypeError, match="argument 'requires_grad' .* must be bool"):
        nn.Parameter(MATRIX, given)
    if given is None:
        assert not torch.zeros(2, requires_grad=given).requires_grad
    else:
        with pytest.raises(TypeError, match="argument 'requires_grad' must be bool, not"):
            torch.zeros(2, requires_grad=given)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: torch.numel([1]), TypeError, r"numel\(\): argument 'input'.* must be Tensor, not"),
        (lambda: torch.is_complex(1), TypeError, r"is_complex\(\): argument .* must be Tensor"),
        (lambda: torch.is_floating_point(1), TypeError, r"is_floating_point\(\): .*not int"),
        (lambda: MATRIX.type([1]), TypeError, "dtype must be a type, str, or dtype object"),
        (lambda: torch.einsum(5, MATRIX), TypeError, "'equation' .* must be str, not int"),
        (lambda: torch.meshgrid(MATRIX[0], indexing=0), TypeError, "indexing.* must be str"),
        (lambda: torch.tensordot(MATRIX, MATRIX, "x"), RuntimeError, "expects dims to be int or"),
        (lambda: torch.tensordot(MATRIX, MATRIX, torch.ones(3, 2)), AssertionError, "got 3"),
        (lambda: torch.vander(MATRIX), RuntimeError, "one-dimensional tensor, got 2 dimensions"),
        (lambda: torch.vander(MATRIX[0], 3, 1), TypeError, "'increasing' .* must be bool, not int"),
        (lambda: torch.vander(MATRIX[0], -1), RuntimeError, "N must be non-negative"),
        (lambda: F.embedding(torch.tensor([0]), [1.0]), TypeError, "'weight' .* must be Tensor"),
        (lambda: F.embedding(torch.tensor([0]), MATRIX[0]), RuntimeError, "must be 2-D, got 1-D"),
        (lambda: nn.utils.rnn.pad_sequence([MATRIX, 1]), TypeError, "Tensor as element 1 .*int"),
        (lambda: nn.utils.rnn.pad_sequence([MATRIX], 1), TypeError, "'batch_first' .* not int"),
        (lambda: F.mse_loss(MATRIX, MATRIX, reduction=[]), ValueError, "not a valid value for red"),
        (lambda: MATRIX.to(torch.int8, dtype=torch.int16), TypeError, "multiple values .*'dtype'"),
        (lambda: MATRIX.to(torch.int8, size=None), TypeError, "unexpected keyword .*'size'"),
        (lambda: F.rms_norm(MATRIX.long(), (4,)), NotImplementedError, "rms_norm.* for 'Long'"),
        (lambda: torch.device(HUGE), ValueError, "Overflow when unpacking long long"),
        (
            lambda: F.binary_cross_entropy_with_logits(MATRIX, MATRIX.long()),
            RuntimeError,
            "Float can't be cast to the desired output type Long",
        ),
        (
            lambda: F.binary_cross_entropy_with_logits(MATRIX.long(), MATRIX),
            NotImplementedError,
            "not implemented for 'Long'",
        ),
        (lambda: torch.Size([1], size=2), TypeError, "takes no keyword arguments"),
        (lambda: nn.utils.clip_grad_norm_([], "x"), ValueError, "could not convert string"),
        (
            lambda: F.batch_norm(torch.ones(2, 3), None, torch.ones(3)),
            ValueError,
            "must either both be None or neither be None, but only running_var",
        ),
    ],
)
def test_wrong_kinds_of_arguments(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_columns_of_no_powers():
    assert torch.vander(MATRIX[0], 0).shape == (4, 0)
    assert torch.vander(MATRIX[0], 1).tolist() == [[1]] * 4


def test_new_tensor_has_the_models_dtype():
    assert MATRIX.new_tensor(torch.ones(2, dtype=torch.int64)).dtype is torch.float32
    assert MATRIX.new_tensor([1], dtype=torch.int8).dtype is torch.int8


def test_sizes_may_be_numpy_integers():
    numpy = pytest.importorskip("numpy")
    two = numpy.int64(2)
    assert F.unfold(torch.ones(1, 1, 4, 4), two).shape == (1, 4, 9)
    assert nn.LayerNorm(numpy.int64(4))(MATRIX).shape == (3, 4)
    assert F.lp_pool1d(torch.ones(1, 1, 4), 2.0, two).shape == (1, 1, 2)
