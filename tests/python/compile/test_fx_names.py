"""Modules under which PyTorch's programs import what others have."""

import rushlight as torch
from rushlight import _VF, fx
from rushlight.fx import _symbolic_trace, immutable_collections
from rushlight.nn import common_types


def test_other_names():
    assert _symbolic_trace.Tracer is fx.Tracer and _symbolic_trace.wrap is fx.wrap
    node = fx.symbolic_trace(lambda x: torch.cat([x, x])).graph.find_nodes(
        op="call_function", target=torch.cat
    )[0]
    assert type(node.args[0]) is immutable_collections.immutable_list
    assert _VF.norm is torch._C._VariableFunctions.norm
    assert common_types._size_2_t == int | tuple[int, int]
