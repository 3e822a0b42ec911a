"""Settings of scripts."""

import pytest
import rushlight as torch
from rushlight import jit


class Plus(jit.ScriptModule):
    @jit.script_method
    def forward(self, x):
        return (x + 1) * 2


def test_kept_and_without_effect():
    assert not jit.onednn_fusion_enabled()
    jit.enable_onednn_fusion(True)
    assert jit.onednn_fusion_enabled()
    jit.enable_onednn_fusion(False)
    with jit.fuser("fuser1"):
        assert Plus()(torch.ones(1)).tolist() == [4]
    with pytest.raises(Exception, match="unrecognized fuser option .name: x"):
        with jit.fuser("x"):
            pass


def test_without_compiling():
    count = torch._dynamo.utils.compile_statistics
    module, x = Plus(), torch.ones(3)
    module(x).tolist()
    before = count()["segments"]
    with jit.optimized_execution(False):
        assert module(x).tolist() == [4, 4, 4]
    assert count()["segments"] == before
    with jit.optimized_execution(True):
        module(x).tolist()
    assert count()["segments"] > before
