"""assert_close and assert_allclose."""

import numpy
import pytest
import rushlight as torch
from rushlight.testing import assert_allclose, assert_close


def message(*args, **kwargs):
    with pytest.raises(AssertionError) as caught:
        assert_close(*args, **kwargs)
    return str(caught.value)


def test_values_within_the_tolerances_of_their_dtype():
    assert_close(torch.tensor([1.0]), torch.tensor([1.0 + 1e-6]))
    assert_close(torch.tensor([1.0], dtype=torch.float64), torch.tensor([1.0 + 1e-7]).double())
    half = torch.tensor([1.0]).half()
    assert_close(half, half + 1e-3)
    assert_close(1.0, 1.0 + 1e-8)
    assert message(torch.tensor([1]), torch.tensor([2])).startswith("Tensor-likes are not equal!")


def test_message_of_tensors():
    text = message(torch.tensor([[1.0, 2.0], [3, 4]]), torch.tensor([[1.0, 2.5], [3, 5]]))
    assert text == (
        "Tensor-likes are not close!\n\n"
        "Mismatched elements: 2 / 4 (50.0%)\n"
        "Greatest absolute difference: 1.0 at index (1, 1) (up to 1e-05 allowed)\n"
        "Greatest relative difference: 0.20000000298023224 at index (0, 1) (up to 1.3e-06 allowed)"
    )


def test_message_of_integers():
    text = message(torch.tensor([1, 2]).to(torch.uint8), torch.tensor([255, 2]).to(torch.uint8))
    assert text == (
        "Tensor-likes are not equal!\n\n"
        "Mismatched elements: 1 / 2 (50.0%)\n"
        "Greatest absolute difference: 254 at index (0,)\n"
        "Greatest relative difference: 0.9960784316062927 at index (0,)"
    )


def test_message_of_scalars():
    assert message(1.0, 2.0) == (
        "Scalars are not close!\n\n"
        "Expected 2.0 but got 1.0.\n"
        "Absolute difference: 1.0 (up to 1e-07 allowed)\n"
        "Relative difference: 0.5 (up to 1e-07 allowed)"
    )
    assert "Relative difference: inf" in message(torch.tensor(1), torch.tensor(0))
    assert message(True, False) == "Booleans mismatch: True is not False"
    assert message(None, 1.0) == "None mismatch: None is not 1.0"
    assert "(d)types do not match: <class 'int'> != <class 'float'>" in message(1, 1.0)


def test_attributes_are_compared_first():
    one = torch.ones(2)
    assert "attribute 'shape' do not match: torch.Size([2])" in message(one, torch.ones(1, 2))
    assert "'dtype' do not match: torch.float32 != torch.float64." in message(one, one.double())
    assert_close(one, one.double(), check_dtype=False)
    assert "attribute 'device' do not match: meta != cpu" in message(one.to("meta"), one)
    assert_close(one.to("meta"), one, check_device=False)
    grid = torch.ones(2, 3)
    assert_close(grid.t(), torch.ones(3, 2))
    text = message(grid.t(), torch.ones(3, 2), check_stride=True)
    assert text == "The values for attribute 'stride()' do not match: (1, 3) != (2, 1)."


def test_nan_and_infinity():
    nan = torch.tensor([float("nan"), float("inf")])
    assert "Greatest absolute difference: nan at index (0,)" in message(nan, nan)
    assert_close(nan, nan, equal_nan=True)
    assert_close(float("inf"), float("inf"))
    assert_close(float("nan"), float("nan"), equal_nan=True)
    assert "Absolute difference: inf" in message(1.0, float("inf"))


def test_containers_name_the_item():
    one, two = torch.tensor(1.0), torch.tensor(2.0)
    assert_close({"a": [one, 3]}, {"a": (one, 3)})
    text = message({"a": [one, two]}, {"a": [one, one]})
    assert text.endswith("\n\nThe failure occurred for item ['a'][1]")
    assert message([one], [one, two]) == "The length of the sequences mismatch: 1 != 2"
    assert message({"a": one}, {"b": one}) == (
        "The keys of the mappings do not match:\n"
        "Missing keys in the actual mapping: ['b']\n"
        "Additional keys in the actual mapping: ['a']"
    )


def test_own_messages():
    assert message(1.0, 2.0, msg="no") == "no"
    assert message(1.0, 2.0, msg=lambda text: "why: " + text).startswith("why: Scalars are")


def test_what_can_be_compared():
    assert_close(numpy.ones(2), numpy.ones(2))
    assert_close(torch.nn.Parameter(torch.ones(1)), torch.ones(1))
    with pytest.raises(TypeError, match="No comparison pair was able to handle inputs of type"):
        assert_close(torch.nn.Parameter(torch.ones(1)), torch.ones(1), allow_subclasses=False)
    with pytest.raises(TypeError, match="<class 'str'> and <class 'str'>"):
        assert_close("a", "a")
    with pytest.raises(TypeError, match="and <class 'list'>"):
        assert_close(torch.ones(1), [1.0])


def test_tolerances_come_together():
    with pytest.raises(ValueError, match="must be either specified or omitted, but got no atol"):
        assert_close(1.0, 1.0, rtol=1.0)
    assert_close(1.0, 1.5, rtol=0, atol=0.5)
    assert "not equal" in message(1.0, 1.5, rtol=0, atol=0)


def test_allclose_has_wider_tolerances():
    with pytest.warns(FutureWarning, match="assert_allclose"):
        assert_allclose(torch.tensor([1.0]), [1.0001])
    with pytest.warns(FutureWarning):
        assert_allclose([float("nan")], [float("nan")])
    with pytest.warns(FutureWarning), pytest.raises(AssertionError, match="up to 0.001 allowed"):
        assert_allclose(torch.ones(1).half(), torch.zeros(1).half())
    with pytest.warns(FutureWarning), pytest.raises(AssertionError, match=r"up to 1e-08 allowed"):
        assert_allclose(torch.ones(1).double(), torch.zeros(1).double())
