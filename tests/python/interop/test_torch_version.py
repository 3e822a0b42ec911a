"""How versions compare; every wanted value is PyTorch 2.13's own answer."""

import pytest
import rushlight as torch
from rushlight.torch_version import TorchVersion


@pytest.mark.parametrize(
    ("version", "later"),
    [
        ("1.9", "1.10.0"),
        ("2.1.0a0", "2.1"),
        ("2.0.0rc1", "2.0"),
        ("2.0.0.dev1", "2.0.0a1"),
        ("2.0", "2.0.post1"),
        ("2.13.0", "2.13.0+cpu"),
        ("2.13.0+cpu", "2.13.1"),
    ],
)
def test_order(version, later):
    first, second = TorchVersion(version), TorchVersion(later)
    assert first < second and second > first and first != second
    assert first <= later and second >= version and not first > later


def test_equal_forms():
    assert TorchVersion("1.2") == (1, 2, 0) == TorchVersion("1.2.0")
    assert TorchVersion("2.13.0+cpu") >= (2, 13) and TorchVersion("2.13.0") == "2.13"
    assert TorchVersion("2.13.0+cpu") != "2.13.0"
    assert hash(TorchVersion("2.1")) == hash("2.1") and TorchVersion("2.1").split(".") == ["2", "1"]


def test_what_is_no_version():
    assert TorchVersion("parrot") == "parrot"
    assert not TorchVersion("2.0") > "foo"
    for other in (5, (2, "x y")):
        with pytest.raises(TypeError, match="not supported between instances of 'TorchVersion'"):
            assert TorchVersion("2.0") > other


def test_the_package_has_one():
    assert isinstance(torch.__version__, TorchVersion) and torch.__version__ > "0.0.9"
