"""Drawings of fx graphs, and their code as people read it."""

import re
import shutil

import pytest
import rushlight as torch
from rushlight import fx, nn
from rushlight.fx.passes.graph_drawer import FxGraphDrawer
from rushlight.fx.passes.shape_prop import ShapeProp


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU())


def traced(module=None):
    gm = fx.symbolic_trace(module or net())
    ShapeProp(gm).propagate(torch.ones(2, 3))
    return gm


def test_text():
    text = FxGraphDrawer(traced(), "net").get_dot_graph().to_string()
    assert text.startswith('digraph "net" {') and text.rstrip().endswith("}")
    assert re.search(r"_0 \[label=\"name=%_0\\lop_code=call_module\\ltarget=0: Linear", text)
    assert "shape=(2, 4)" in text and "dtype=torch.float32" in text
    assert "_0 -> _1;" in text
    assert '"0.weight" -> _0;' in text


def test_what_is_left_out():
    gm = fx.symbolic_trace(lambda x: x.sin() + 1)
    graph = FxGraphDrawer(gm, "f").get_dot_graph().to_string()
    named = FxGraphDrawer(gm, "f", skip_node_names_in_args=False).get_dot_graph().to_string()
    assert "%sin" not in graph.split("op_code=call_function")[1]
    assert "%sin" in named.split("op_code=call_function")[1]
    bare = FxGraphDrawer(traced(), "net", ignore_parameters_and_buffers=True)
    assert "weight" not in bare.get_main_dot_graph().to_string()

    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(3))

        def forward(self, x):
            return x * self.scale

    assert "scale -> mul" in str(FxGraphDrawer(traced(Scaled()), "s").get_dot_graph())
    assert "scale ->" not in str(
        FxGraphDrawer(traced(Scaled()), "s", ignore_getattr=True).get_dot_graph()
    )


def test_shapes_arguments_and_lines():
    graphs = []

    def backend(gm, inputs):
        graphs.append(gm)
        return gm.forward

    torch.compile(lambda x: x.clamp(0, 1), backend=backend)(torch.ones(2))
    drawing = FxGraphDrawer(graphs[0], "g", parse_stack_trace=True, dot_graph_shape="record")
    text = drawing.get_dot_graph().to_string()
    assert "x.clamp(0, 1)" in text and 'shape="record"' in text

    def scaled(x, factor):
        return x * factor

    graph = fx.Graph()
    graph.output(graph.call_function(scaled, (graph.placeholder("x"), 3)))
    text = str(FxGraphDrawer(fx.GraphModule({}, graph), "g", normalize_args=True).get_dot_graph())
    assert "'factor': 3" in text


def test_submodules_have_drawings_of_their_own():
    graph = fx.Graph()
    graph.output(graph.call_module("inner", (graph.placeholder("x"),)))
    drawer = FxGraphDrawer(fx.GraphModule({"inner": traced()}, graph), "outer")
    assert list(drawer.get_all_dot_graphs()) == ["outer", "outer_inner"]
    inner = drawer.get_submod_dot_graph("inner")
    assert inner is drawer.get_dot_graph("outer_inner") and "Linear" in str(inner)


def test_written_as_text(tmp_path):
    drawing = FxGraphDrawer(traced(), "net").get_dot_graph()
    assert drawing.write_dot(tmp_path / "net.dot")
    assert (tmp_path / "net.dot").read_text() == drawing.to_string()


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_drawn_as_svg(tmp_path):
    drawing = FxGraphDrawer(traced(), 'quotes " and \\').get_dot_graph()
    drawing.write_svg(tmp_path / "net.svg")
    assert b"<svg" in (tmp_path / "net.svg").read_bytes()
    assert b"Linear" in drawing.create_svg()


def test_graphviz_does_the_drawing(tmp_path, monkeypatch):
    program = tmp_path / "dot"
    program.write_text(
        '#!/bin/sh\n[ "$1" = -Tsvg ] || { echo "no such format" >&2; exit 1; }\ncat\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    drawing = FxGraphDrawer(traced(), "net").get_dot_graph()
    assert drawing.create_svg() == drawing.to_string().encode()
    with pytest.raises(RuntimeError, match="dot -Tpng failed: no such format"):
        drawing.write_png(tmp_path / "net.png")


def test_without_graphviz(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    drawing = FxGraphDrawer(traced(), "net").get_dot_graph()
    with pytest.raises(FileNotFoundError, match='"dot" not found in path.*Graphviz'):
        drawing.write_svg(tmp_path / "net.svg")
    with pytest.raises(AttributeError, match="no attribute 'nonesuch'"):
        drawing.nonesuch


# ---- print_readable ------------------------------------------------------------------------------


def test_print_readable(capsys):
    gm = traced(nn.ReLU())
    text = gm.print_readable()
    assert capsys.readouterr().out.strip() == text.strip()
    assert text.startswith("class ReLU(torch.nn.Module):\n    def forward(self")
    relu = 'relu: "f32[2, 3]" = torch.nn.functional.relu(input_1, inplace = False)'
    assert relu in text and text.endswith("        return relu\n")
    for node in gm.graph.nodes:
        node.meta["val"] = torch.empty(2, 3)  # strides are of tensors, not of their description
    strided = gm.print_readable(print_output=False, include_stride=True, include_device=True)
    assert 'relu: "f32[2, 3][3, 1]cpu"' in strided
    assert "\x1b[" in gm.print_readable(print_output=False, colored=True)
    assert capsys.readouterr().out == ""


def test_print_readable_of_several_modules():
    graph = fx.Graph()
    x = graph.placeholder("x")
    x.meta["seq_nr"] = 7
    call = graph.call_module("inner", (x,))
    call.meta["seq_nr"] = 8
    graph.output(call)
    gm = fx.GraphModule({"inner": traced()}, graph)
    text = gm.print_readable(print_output=False, additional_meta=["seq_nr"], expanded_def=True)
    assert "# seq_nr: 8" in text and "    class inner(torch.nn.Module):" in text
    assert "        x,\n" in text
