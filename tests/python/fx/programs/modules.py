"""GraphModules: printing, copies, files."""

import copy
import io
import pickle
import tempfile

import rushlight as torch
from rushlight import fx, nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3)
        self.bn = nn.BatchNorm2d(2)
        self.register_buffer("scale", torch.ones(2, 1, 1))

    def forward(self, x):
        return self.bn(self.conv(x)).relu() * self.scale


def printing():
    gm = fx.symbolic_trace(Block())
    print(gm)
    print(gm.code)
    print(repr(gm) == str(gm))


def readable():
    gm = fx.symbolic_trace(Block())
    gm.print_readable()
    text = gm.print_readable(print_output=False)
    print(type(text))
    from rushlight.fx.passes.shape_prop import ShapeProp

    ShapeProp(gm).propagate(torch.rand(2, 1, 5, 5))
    gm.print_readable()
    gm.print_readable(include_stride=True, include_device=True)


def readable_nested():
    inner = fx.symbolic_trace(lambda x: x + 1)
    root = nn.Module()
    root.inner = inner
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_module("inner", (x,)))
    gm = fx.GraphModule(root, graph, "Outer")
    gm.print_readable()
    print(gm)


def readable_with_lines():
    gm = fx.symbolic_trace(lambda x: (x + 1).relu())
    for number, node in enumerate(gm.graph.nodes):
        node.stack_trace = f'  File "a.py", line {number}, in f\n    line {number // 2}\n'
    gm.print_readable()
    print(gm.code)


def from_a_dict():
    graph = fx.Graph()
    x = graph.placeholder("x")
    w = graph.get_attr("a.w")
    graph.output(graph.call_module("a.lin", (graph.call_function(torch.add, (x, w)),)))
    gm = fx.GraphModule(
        {"a.w": nn.Parameter(torch.ones(2)), "a.lin": nn.Linear(2, 2), "unused": 1}, graph
    )
    print(gm, sorted(gm.state_dict()), hasattr(gm, "unused"))
    print(gm.code)
    for root in ({}, nn.Module(), 3):
        try:
            fx.GraphModule(root, graph)
        except Exception as error:
            print(type(error).__name__, error)


def deep_copies():
    gm = fx.symbolic_trace(Block())
    gm.meta["k"] = [1]
    gm.extra = "text"
    gm.graph.nodes.__iter__().__next__().meta["m"] = 2
    other = copy.deepcopy(gm)
    print(other.code == gm.code, other.meta, other.conv.weight is gm.conv.weight)
    print(
        torch.equal(other.conv.weight, gm.conv.weight),
        other.graph is gm.graph,
        getattr(other, "extra", None),
    )
    print(
        [n.meta.get("m") for n in other.graph.nodes][0],
        type(other).__name__,
        type(other) is type(gm),
    )
    shallow = copy.copy(gm)
    print(shallow.conv is gm.conv, shallow.graph is gm.graph, shallow.meta)
    for node in other.graph.nodes:
        if node.target == "relu":
            node.target = "sigmoid"
    other.recompile()
    print(other.code, gm.code == shallow.code)
    graph = copy.deepcopy(gm.graph)
    print(graph.owning_module, str(graph) == str(gm.graph))


def pickles():
    block = Block()
    gm = fx.symbolic_trace(block)
    other = pickle.loads(pickle.dumps(gm))
    print(other.code)
    print(sorted(other.state_dict()), type(other).__name__)
    x = torch.rand(1, 1, 4, 4)
    print(torch.equal(other.eval()(x), gm.eval()(x)))


def saved():
    gm = fx.symbolic_trace(Block())
    file = io.BytesIO()
    torch.save(gm, file)
    file.seek(0)
    other = torch.load(file, weights_only=False)
    print(str(other.graph) == str(gm.graph), other.code == gm.code)
    other.load_state_dict(gm.state_dict())


def pickled_graphs():
    gm = fx.symbolic_trace(lambda x: x + 1)
    try:
        graph = pickle.loads(pickle.dumps(gm.graph))
        print(graph)
    except Exception as error:
        print(type(error).__name__)


def folders():
    gm = fx.symbolic_trace(Block())
    with tempfile.TemporaryDirectory() as folder:
        gm.to_folder(folder, "Made")
        import importlib
        import os
        import sys

        print(sorted(os.listdir(folder)))
        text = open(f"{folder}/module.py").read()
        text = text.replace("import rushlight", "import torch").replace("rushlight", "torch")
        print(text.replace("torch as torch", "torch").replace(folder, "FOLDER"))
        print(open(f"{folder}/__init__.py").read())
        os.rename(folder, folder + "_pkg")
        try:
            sys.path.insert(0, os.path.dirname(folder))
            package = importlib.import_module(os.path.basename(folder) + "_pkg")
        finally:
            os.rename(folder + "_pkg", folder)
            sys.path.pop(0)
        print(package.Made.__name__)


def submodules():
    gm = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    print(gm.code)
    print(gm.add_submodule("a.b", nn.Tanh()), gm.add_submodule("0.weight.c", nn.Tanh()))
    print(gm.delete_submodule("1"), gm.delete_submodule("no.such"), gm.delete_submodule("0.weight"))
    print([name for name, _ in gm.named_modules()])


def the_mode():
    block = Block().eval()
    gm = fx.symbolic_trace(block)
    print(gm.training, gm.bn.training, fx.symbolic_trace(Block()).training)
    print(gm.train().bn.training)


def recompiling():
    gm = fx.symbolic_trace(lambda x: x + 1)
    before = gm.code
    [n for n in gm.graph.nodes if n.op == "call_function"][0].args = (
        gm.graph.find_nodes(op="placeholder")[0],
        5,
    )
    print(gm.code == before, gm(1))
    made = gm.recompile()
    print(type(made).__name__, sorted(made.globals), gm(1))
    other = fx.Graph()
    x = other.placeholder("x")
    other.output(x)
    gm.graph = other
    print(gm.code, gm(1), other.owning_module is gm)
    try:
        gm.graph = 3
    except AssertionError as error:
        print(error)


def wrapped_calls():
    gm = fx.symbolic_trace(lambda x: x @ x)
    try:
        gm(torch.ones(2, 3))
    except RuntimeError:
        print("error")
    hooked = []
    gm.register_forward_hook(lambda m, args, out: hooked.append(out.shape))
    gm(torch.ones(2, 2))
    print(hooked)


def names_of_classes():
    class M(nn.Module):
        def forward(self, x):
            return x

    print(type(fx.symbolic_trace(M())).__name__, type(fx.symbolic_trace(lambda x: x)).__name__)

    def named(x):
        return x

    print(type(fx.symbolic_trace(named)).__name__)
    print(type(fx.GraphModule(M(), fx.Tracer().trace(M()))).__name__)
    print(type(fx.GraphModule(M(), fx.Tracer().trace(M()), "Mine")).__name__)
