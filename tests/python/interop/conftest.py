"""PyTorch as the thing to compare with."""

import pytest


@pytest.fixture(scope="session")
def theirs():
    """PyTorch; tests that compare with it skip and say so where it is not installed."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: nothing to compare with")
    if torch.__name__ != "torch":
        pytest.skip("torch is rushlight here")
    return torch
