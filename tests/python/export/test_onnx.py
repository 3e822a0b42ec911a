"""ONNX: modules ask whether they are exported to it; nothing is."""

import pytest
import rushlight as torch


def test_nothing_is_exported():
    assert torch.onnx.is_in_onnx_export() is False
    with pytest.raises(NotImplementedError, match="ONNX is not supported, got a Linear"):
        torch.onnx.export(torch.nn.Linear(1, 1), torch.ones(1, 1), "model.onnx")
