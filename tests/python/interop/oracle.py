"""PyTorch as the thing to compare with; without it, tests that need it skip and say so."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: nothing to compare with")
if torch.__name__ != "torch":
    pytest.skip("torch is rushlight here", allow_module_level=True)
