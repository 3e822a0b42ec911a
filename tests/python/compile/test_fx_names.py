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


def test_names_that_programs_for_fx_import():
    from rushlight.fx import graph, graph_module, interpreter, node, proxy
    from rushlight.fx._compatibility import compatibility
    from rushlight.fx.passes.shape_prop import ShapeProp, TensorMetadata

    @compatibility(is_backward_compatible=True)
    def kept():
        return 1

    assert kept() == 1 and kept._backward_compatible
    assert issubclass(graph._PyTreeCodeGen, fx.CodeGen) and node.Argument and node.Target
    assert issubclass(interpreter.TransformerTracer, fx.Tracer)
    assert fx.TensorMetadata is TensorMetadata and issubclass(ShapeProp, fx.Interpreter)
    assert proxy.Scope("a", None).module_path == "a" and graph_module._get_attr(kept, "__name__")
