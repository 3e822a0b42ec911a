"""Which Python arguments fit an operator, and what the error says where none do."""

import pytest
import rushlight as torch


@pytest.fixture
def x():
    return torch.ones(2, 2)


def test_positions_and_keywords_may_be_mixed(x):
    for y in (
        torch.add(x, x),
        torch.add(x, other=x),
        torch.add(input=x, other=x),
        x.add(other=x),
        torch.add(x, x, alpha=1),
    ):
        assert y.tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_numbers_stand_for_tensors(x):
    assert torch.add(x, 2).tolist() == [[3.0, 3.0], [3.0, 3.0]]
    assert torch.mul(2, x).tolist() == [[2.0, 2.0], [2.0, 2.0]]
    assert torch.sub(2, x).tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert (torch.arange(3) + 1).dtype is torch.int64
    assert (torch.arange(3) + 1.5).dtype is torch.float32


def test_sizes_come_as_a_sequence_or_one_by_one(x):
    assert (
        x.view(4).shape == x.view((4,)).shape == x.view([4]).shape == x.view(torch.Size([4])).shape
    )
    assert x.view(1, 4).shape == (1, 4)
    assert torch.zeros(2, 3).shape == torch.zeros((2, 3)).shape == torch.zeros(size=(2, 3)).shape
    assert x.permute(1, 0).shape == (2, 2)
    assert torch.zeros(()).shape == ()


def test_one_integer_stands_for_a_sized_list(x):
    assert x.sum(0).shape == x.sum((0,)).shape == x.sum(dim=[0]).shape == (2,)


def test_numpy_names_of_arguments(x):
    assert torch.sum(x, axis=0, keepdims=True).shape == (1, 2)
    assert torch.add(x1=x, x2=x).tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_one_element_integer_tensors_are_integers(x):
    assert x.unsqueeze(torch.tensor(1)).shape == (2, 1, 2)
    assert x.sum(torch.tensor(0)).shape == (2,)


def test_zero_dim_tensors_are_scalars(x):
    assert torch.full((2,), torch.tensor(3.0)).tolist() == [3.0, 3.0]
    assert torch.add(x, x, alpha=torch.tensor(2)).tolist() == [[3.0, 3.0], [3.0, 3.0]]


def test_numpy_scalars_are_numbers(x):
    numpy = pytest.importorskip("numpy")
    assert (x * numpy.float32(2)).tolist() == [[2.0, 2.0], [2.0, 2.0]]
    assert x.sum(numpy.int64(0)).shape == (2,)


def test_dtypes_may_be_python_types():
    assert torch.zeros(2, dtype=float).dtype is torch.float64
    assert torch.zeros(2, dtype=int).dtype is torch.int64
    assert torch.zeros(2, dtype=bool).dtype is torch.bool


def test_out_is_written_and_returned(x):
    y = torch.zeros(2, 2)
    assert torch.add(x, x, out=y) is y
    assert y.tolist() == [[2.0, 2.0], [2.0, 2.0]]
    values, indices = torch.zeros(2), torch.zeros(2, dtype=torch.int64)
    result = torch.max(x, 0, out=(values, indices))
    assert result.values is values and result.indices is indices


def test_factories_take_requires_grad():
    assert torch.zeros(2, requires_grad=True).requires_grad
    with pytest.raises(RuntimeError, match="floating point"):
        torch.zeros(2, dtype=torch.int64, requires_grad=True)


def test_in_place_forms_return_self(x):
    assert x.add_(1) is x
    assert torch.relu_(x) is x
    x += 1
    assert x.tolist() == [[3.0, 3.0], [3.0, 3.0]]


def test_several_results_have_names(x):
    result = torch.max(x, 0)
    assert isinstance(result, tuple) and isinstance(result, torch.return_types.max)
    assert result.values.tolist() == [1.0, 1.0]
    assert repr(result).startswith("torch.return_types.max(\nvalues=tensor(")


def test_functions_do_not_bind_and_methods_do():
    class Net:
        act = torch.relu

    assert Net().act(torch.tensor(-1.0)).item() == 0.0
    bound = torch.tensor(-1.0).relu
    assert bound().item() == 0.0
    assert torch.Tensor.relu(torch.tensor(-1.0)).item() == 0.0


ERRORS = [
    (
        lambda x: torch.add(x, "s"),
        r"add\(\): argument 'other' \(position 2\) must be Tensor, not str",
    ),
    (lambda x: x.add("s"), r"add\(\): argument 'other' \(position 1\) must be Tensor, not str"),
    (lambda x: torch.abs(), r'abs\(\) missing 1 required positional arguments: "input"'),
    (lambda x: torch.abs("x"), r"abs\(\): argument 'input' \(position 1\) must be Tensor, not str"),
    (lambda x: torch.abs(x, foo=1), r"abs\(\) got an unexpected keyword argument 'foo'"),
    (lambda x: torch.mv(x, x, x), r"mv\(\) takes 2 positional arguments but 3 were given"),
    (lambda x: torch.mv(x, x, vec=x), r"mv\(\) got multiple values for argument 'vec'"),
    (lambda x: torch.add(x, x, alpha="s"), r"add\(\): argument 'alpha' must be Number, not str"),
    (
        lambda x: torch.unsqueeze(x, 0.5),
        r"unsqueeze\(\): argument 'dim' \(position 2\) must be int, not float",
    ),
    (
        lambda x: torch.unsqueeze(x, True),
        r"unsqueeze\(\): argument 'dim' \(position 2\) must be int, not bool",
    ),
    (
        lambda x: torch.flip(x, 0),
        r"flip\(\): argument 'dims' \(position 2\) must be tuple of ints, not int",
    ),
    (
        lambda x: torch.zeros("a"),
        r"zeros\(\): argument 'size' \(position 1\) must be tuple of ints, not str",
    ),
    (
        lambda x: torch.zeros(2, 2.5),
        r"zeros\(\): argument 'size' failed to unpack the object at pos 2",
    ),
    (lambda x: torch.cat([x, 1]), r"expected Tensor as element 1 in argument 0, but got int"),
    (lambda x: torch.ones(2, dtype=3), r"ones\(\): argument 'dtype' must be torch.dtype, not int"),
    (
        lambda x: torch.ones(2, device=1.5),
        r"ones\(\): argument 'device' must be torch.device, not float",
    ),
    (
        lambda x: torch.sum(x, 0, 1),
        r"sum\(\): argument 'keepdim' \(position 3\) must be bool, not int",
    ),
    (
        lambda x: torch.sum(x, "s"),
        r"sum\(\) received an invalid combination of arguments - "
        r"got \(Tensor, str\), but expected one of:",
    ),
]


@pytest.mark.parametrize(("call", "text"), ERRORS)
def test_a_call_that_fits_nothing_says_why(x, call, text):
    with pytest.raises(TypeError, match=text):
        call(x)


def test_integers_past_64_bits_are_refused(x):
    with pytest.raises(ValueError, match="Overflow when unpacking long"):
        x.unsqueeze(10**30)
    with pytest.raises(OverflowError):
        x.add(10**30)


def test_unknown_devices_are_refused():
    with pytest.raises(RuntimeError, match="foo"):
        torch.zeros(2, device="foo")
