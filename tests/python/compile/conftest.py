"""Each test starts and ends with the default stance, back end and capture closed."""

import pytest
import rushlight as torch
from rushlight import _C


@pytest.fixture(autouse=True)
def settled():
    torch.manual_seed(0)
    yield
    assert not _C._capture_active()
    torch.compiler.set_stance("default")
    torch.compiler.set_default_backend(None)
