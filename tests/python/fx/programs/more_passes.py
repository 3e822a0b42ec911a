"""Passes that fewer programs use, and what extractors of features do."""

import operator

import rushlight as torch
from rushlight import fx, nn
from rushlight.fx._symbolic_trace import is_fx_tracing
from rushlight.fx.graph_module import _assign_attr, _copy_attr, _get_attr
from rushlight.fx.node import _get_qualified_name


class WithConstants(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.ones(2))
        self.b = nn.Parameter(torch.full((2,), 2.0))

    def forward(self, x):
        c = self.a + self.b
        d = c * 2
        return x - d + (x + c)


def folding_constants():
    from rushlight.fx.experimental.const_fold import split_const_subgraphs

    module = WithConstants()
    folded = split_const_subgraphs(module)
    print(type(folded).__name__, [node.op for node in folded.graph.nodes])
    x = torch.rand(2)
    print(torch.equal(folded(x), module(x)))
    try:
        folded.run_folding()
    except AssertionError as error:
        print(error)
    print(folded.code)
    made = split_const_subgraphs(nn.Sequential(nn.ReLU()))
    print(made.code)
    made = split_const_subgraphs(module, skip_folding_node_fn=lambda node: node.name == "mul")
    print(torch.equal(made(x), module(x)))


def normalising_arguments():
    from rushlight.fx.experimental.normalize import NormalizeArgs

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(2, 2)

        def forward(self, x):
            y = torch.nn.functional.softmax(self.lin(x), 1)
            return torch.cumsum(y, 0) + torch.nn.functional.relu(y, True)

    gm = fx.symbolic_trace(M())
    print(NormalizeArgs(gm).transform().code)
    print(NormalizeArgs(gm, normalize_to_only_use_kwargs=False).transform().code)


def common_subexpressions():
    from rushlight.fx.experimental.proxy_tensor import make_fx
    from rushlight.fx.passes.dialect.common.cse_pass import CSEPass, get_CSE_banned_ops

    def f(x):
        return x.cos() + x.cos() + torch.rand(2) + (x.cos() * 2) + (x.cos() * 2)

    gm = make_fx(f)(torch.ones(2))
    before = len(gm.graph.nodes)
    result = CSEPass()(gm)
    names = [
        node.target.overloadpacket.__name__
        for node in result.graph_module.graph.nodes
        if node.op == "call_function"
    ]
    print(
        result.modified,
        before > len(names),
        names.count("cos"),
        names.count("rand"),
        names.count("mul"),
    )
    print(CSEPass()(result.graph_module).modified)
    print(CSEPass(banned_ops={torch.ops.aten.cos})(make_fx(f)(torch.ones(2))).modified)
    print(torch.ops.aten.rand in get_CSE_banned_ops())


def splitting_by_tags():
    from rushlight.fx.passes.split_utils import split_by_tags

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(2, 2)
            self.b = nn.Linear(2, 2)
            self.p = nn.Parameter(torch.ones(2))

        def forward(self, x, y):
            u = self.a(x)
            v = self.b(y)
            return u + v + self.p, v * 2

    gm = fx.symbolic_trace(M())
    tags = {"a": "left", "b": "right", "add": "all", "add_1": "all", "mul": "right"}
    for node in gm.graph.nodes:
        if node.name in tags:
            node.tag = tags[node.name]
    made = split_by_tags(gm, ["left", "right", "all"])
    print(made.code)
    for name, child in made.named_children():
        print(name, child.code)
    x, y = torch.rand(1, 2), torch.rand(1, 2)
    print(torch.equal(made(x, y)[0], gm(x, y)[0]))


def replacing_targets():
    from rushlight.fx.passes.graph_manipulation import replace_target_nodes_with

    gm = fx.symbolic_trace(lambda x: torch.relu(torch.sin(torch.relu(x))))
    replace_target_nodes_with(gm, "call_function", torch.relu, "call_method", "sigmoid")
    print(gm.code)
    gm.recompile()
    print(gm.code)


def lifting_subgraphs():
    from rushlight.fx.passes.utils import compare_graphs, lift_subgraph_as_module

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Module()
            self.inner.lin = nn.Linear(2, 2)
            self.w = nn.Parameter(torch.ones(2))

        def forward(self, x):
            return self.inner.lin(x) + self.w

    gm = fx.symbolic_trace(M())
    made, names = lift_subgraph_as_module(gm, gm.graph, "Lifted")
    print(type(made).__name__, made.code, names, made.inner.lin is gm.inner.lin)
    print(compare_graphs(gm.graph, fx.symbolic_trace(M()).graph))
    print(compare_graphs(gm.graph, fx.symbolic_trace(lambda x: x + 1).graph))


def attributes_by_path():
    root = nn.Sequential(nn.Linear(2, 2))
    print(_get_attr(root, "0.weight").shape)
    other = nn.Module()
    _assign_attr(nn.Parameter(torch.ones(1)), other, "a.b")
    _assign_attr(torch.ones(1), other, "a.c")
    print([n for n, _ in other.named_parameters()], [n for n, _ in other.named_buffers()])
    _copy_attr(root, other, "0.bias")
    print(sorted(other.state_dict()))


def names_of_functions():
    for target in (
        torch.relu,
        torch.nn.functional.relu,
        operator.add,
        len,
        torch.ops.aten.add.Tensor,
        torch.add,
        torch.cat,
    ):
        print(_get_qualified_name(target))


def tracing_state():
    seen = []

    def f(x):
        seen.append(is_fx_tracing())
        return x

    fx.symbolic_trace(f)
    print(seen, is_fx_tracing())


def proxyable_classes():
    class Pair(metaclass=fx.ProxyableClassMeta):
        def __init__(self, left, right):
            self.left, self.right = left, right

        def add(self):
            return self.left + self.right

    globals()["Pair"] = Pair

    def f(x, y):
        pair = Pair(x, y)
        return pair.add() + Pair(torch.ones(2), torch.ones(2)).add()

    gm = fx.symbolic_trace(f)
    print(gm.graph)
    print(gm(torch.ones(2), torch.ones(2)))


class NodePaths(fx.Tracer):
    """The names of nodes by the modules that they are made in, as feature extractors keep them."""

    def __init__(self):
        super().__init__()
        self.current = ""
        self.paths = {}

    def call_module(self, m, forward, args, kwargs):
        old = self.current
        try:
            self.current = self.path_of_module(m)
            return super().call_module(m, forward, args, kwargs)
        finally:
            self.current = old

    def create_proxy(self, kind, target, args, kwargs, name=None, type_expr=None, *_):
        proxy = super().create_proxy(kind, target, args, kwargs, name, type_expr)
        self.paths[proxy.node] = self.current + ("" if kind == "call_module" else f".{target}")
        return proxy


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = nn.Sequential(nn.Linear(2, 2), nn.ReLU())

    def forward(self, x):
        return torch.flatten(self.block(x) + x, 1)


def extracting_features():
    model = nn.Sequential(Residual(), Residual(), nn.Linear(2, 1))
    tracer = NodePaths()
    graph = tracer.trace(model)
    print([path for path in tracer.paths.values() if "<" not in path])
    wanted = [
        node
        for node in graph.nodes
        if node.op == "call_module" and node.target.endswith("1.block.1")
    ]
    (output,) = [node for node in graph.nodes if node.op == "output"]
    graph.erase_node(output)
    graph.output({"feature": wanted[0]})
    gm = fx.GraphModule(tracer.root, graph, "Extractor")
    gm.graph.eliminate_dead_code()
    gm.recompile()
    gm.delete_all_unused_submodules()
    print(gm.code, [name for name, _ in gm.named_modules()])
    print(gm(torch.ones(1, 2))["feature"].shape)


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 2)
        self.r = nn.ReLU()
        self.s = nn.Sequential(nn.Linear(2, 2))

    def forward(self, x):
        return torch.nn.functional.relu(self.s(self.r(self.a(x)))) + x


def source_partitions():
    from rushlight.fx.passes.utils.source_matcher_utils import (
        check_subgraphs_connected,
        get_source_partitions,
    )

    graph = torch.export.export(Layers(), (torch.ones(1, 2),)).graph
    for wanted in ([nn.Linear], [nn.ReLU], ["add"], [nn.Tanh], [nn.Linear, nn.ReLU]):
        for source, parts in get_source_partitions(graph, wanted).items():
            for part in parts:
                inputs = sorted(node.name for node in part.input_nodes)
                name = getattr(source, "__name__", source)
                print(name, part.nodes, inputs, part.output_nodes, part.params)
    parts = get_source_partitions(graph, [nn.Linear, nn.ReLU])
    first, second = parts[nn.Linear]
    print(
        check_subgraphs_connected(first, parts[nn.ReLU][0]),
        check_subgraphs_connected(second, first),
    )
    print(
        get_source_partitions(graph, [nn.Linear], lambda node: node.name == "linear").keys()
        == {nn.Linear}
    )
