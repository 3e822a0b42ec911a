"""replace_pattern, passes written by hand, fusion."""

import copy
import operator

import rushlight as torch
from rushlight import fx, nn
from rushlight.fx import subgraph_rewriter


def the_documentations_pattern():
    class M(nn.Module):
        def forward(self, x, w1, w2):
            m1 = torch.cat([w1, w2]).sum()
            m2 = torch.cat([w1, w2]).sum()
            return x + torch.max(m1) + torch.max(m2)

    def pattern(w1, w2):
        return torch.cat([w1, w2])

    def replacement(w1, w2):
        return torch.stack([w1, w2])

    gm = fx.symbolic_trace(M())
    matches = fx.replace_pattern(gm, pattern, replacement)
    print(gm.code)
    for match in matches:
        print(match.anchor, {k.name: v.name for k, v in match.nodes_map.items()})


def overlapping():
    def f(x):
        return torch.relu(torch.relu(torch.relu(x)))

    gm = fx.symbolic_trace(f)
    matches = fx.replace_pattern(
        gm, lambda x: torch.relu(torch.relu(x)), lambda x: torch.sigmoid(x)
    )
    print(len(matches), gm.code)


def constants_in_patterns():
    gm = fx.symbolic_trace(lambda x: (x + 1) * (x + 2) - (x + 1.0))
    print(len(fx.replace_pattern(gm, lambda x: x + 1, lambda x: x - 1)), gm.code)


def inner_results_used():
    def f(x):
        y = x + 1
        return y.relu(), y

    gm = fx.symbolic_trace(f)
    print(len(fx.replace_pattern(gm, lambda x: (x + 1).relu(), lambda x: x)), gm.code)


def several_results():
    def f(x, y):
        a = torch.sin(x)
        b = torch.cos(y)
        return a * 2, b - 1

    def pattern(x, y):
        return torch.sin(x), torch.cos(y)

    gm = fx.symbolic_trace(f)
    try:
        print(
            len(fx.replace_pattern(gm, pattern, lambda x, y: (torch.cos(x), torch.sin(y)))), gm.code
        )
    except Exception as error:
        print(type(error).__name__)


def whole_module():
    gm = fx.symbolic_trace(lambda x: x + 1)
    print(len(fx.replace_pattern(gm, lambda x: x + 1, lambda x: x * 2)), gm.code)


def modules_in_patterns():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(2, 2)
            self.act = nn.ReLU()

        def forward(self, x):
            return self.act(self.linear(x)).sum()

    class Pattern(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(2, 2)
            self.act = nn.ReLU()

        def forward(self, x):
            return self.act(self.linear(x))

    class Replacement(nn.Module):
        def __init__(self):
            super().__init__()
            self.tanh = nn.Tanh()

        def forward(self, x):
            return self.tanh(x)

    gm = fx.symbolic_trace(M())
    print(
        len(fx.replace_pattern(gm, fx.symbolic_trace(Pattern()), fx.symbolic_trace(Replacement())))
    )
    print(gm.code, [name for name, _ in gm.named_modules()])


def methods_and_keywords():
    gm = fx.symbolic_trace(
        lambda x, y: x.sum(dim=1, keepdim=True) + y.sum(dim=0) + x.sum(dim=1, keepdim=True)
    )
    print(
        len(fx.replace_pattern(gm, lambda a: a.sum(dim=1, keepdim=True), lambda a: a.mean(1))),
        gm.code,
    )


def with_filters():
    def f(x, y):
        return torch.add(x, y) + torch.add(y, 3)

    gm = fx.symbolic_trace(f)

    def is_number(match, original_graph, pattern_graph):
        return any(isinstance(v, int) for v in match.placeholder_nodes)

    found = subgraph_rewriter.replace_pattern_with_filters(
        gm, lambda a, b: torch.add(a, b), lambda a, b: torch.sub(a, b), [is_number]
    )
    print(len(found), gm.code)
    print([type(found[0]).__name__, found[0].anchor, [n.name for n in found[0].replacements]])


def ignoring_literals():
    gm = fx.symbolic_trace(lambda x: torch.add(x, 3) * torch.add(x, 4))
    found = subgraph_rewriter.replace_pattern_with_filters(
        gm, lambda a: torch.add(a, 0), lambda a: torch.neg(a), ignore_literals=True
    )
    print(len(found), gm.code)


def by_callback():
    gm = fx.symbolic_trace(lambda x: torch.add(x, 3) * torch.add(x, 4))

    def make(match, original, pattern):
        value = [
            n for n in match.nodes_map.values() if isinstance(n, fx.Node) and n.target is torch.add
        ][0].args[1]
        return fx.symbolic_trace(lambda a: torch.mul(a, value)).graph

    found = subgraph_rewriter.replace_pattern_with_filters(
        gm, lambda a: torch.add(a, 0), ignore_literals=True, replacement_callback=make
    )
    print(len(found), gm.code)


def literals_as_inputs():
    gm = fx.symbolic_trace(lambda x: torch.add(x, 3) * torch.add(x, x))
    print(
        len(fx.replace_pattern(gm, lambda a, b: torch.add(a, b), lambda a, b: torch.sub(b, a))),
        gm.code,
    )


def unused_inputs():
    gm = fx.symbolic_trace(lambda x, y: torch.relu(x) + y)
    try:
        print(
            len(fx.replace_pattern(gm, lambda x, y: torch.relu(x), lambda x, y: torch.sigmoid(x))),
            gm.code,
        )
    except Exception:
        print("refused")


def residual_chain():
    def f(x, w, b):
        for _ in range(3):
            x = torch.relu(x @ w + b) + x
        return x

    def pattern(x, w, b):
        return torch.relu(x @ w + b)

    gm = fx.symbolic_trace(f)
    print(
        len(fx.replace_pattern(gm, pattern, lambda x, w, b: torch.relu(torch.addmm(b, x, w)))),
        gm.code,
    )


def commutation():
    gm = fx.symbolic_trace(lambda x, y: (y + x, x + y))
    found = fx.replace_pattern(gm, lambda a, b: a + b, lambda a, b: a - b)
    print(len(found), gm.code)


def with_proxies():
    gm = fx.symbolic_trace(lambda x: torch.relu(x) * 2)
    for node in list(gm.graph.nodes):
        if node.target is torch.relu:
            with gm.graph.inserting_after(node):
                made = torch.clamp(fx.Proxy(node.args[0]), 0.0, 6.0).node
                node.replace_all_uses_with(made)
            gm.graph.erase_node(node)
    gm.recompile()
    print(gm.code)


def inverting():
    inverts = {torch.sin: torch.arcsin, torch.add: torch.sub, operator.add: operator.sub}

    def invert(model):
        gm = fx.symbolic_trace(model)
        new = fx.Graph()
        out = gm.graph.output_node()
        value = new.placeholder("y")
        node = out.args[0]
        while node.op != "placeholder":
            rest = node.args[1:]
            value = new.call_function(inverts[node.target], (value, *rest))
            node = node.args[0]
        new.output(value)
        return fx.GraphModule(gm, new)

    made = invert(lambda x: torch.sin(torch.add(x, 0.25) + 0.5))
    print(made.code)


class ConvBn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 2, 3)
        self.bn1 = nn.BatchNorm2d(2)
        self.nested = nn.Sequential(nn.Conv2d(2, 2, 1, bias=False), nn.BatchNorm2d(2), nn.ReLU())
        self.wrapped = nn.Sequential(nn.BatchNorm2d(2), nn.Conv2d(2, 2, 1))

    def forward(self, x):
        return self.wrapped(self.nested(self.bn1(self.conv1(x))))


def fusing_by_the_library():
    from rushlight.fx.experimental.optimization import fuse

    torch.manual_seed(0)
    model = ConvBn()
    model(torch.rand(4, 1, 6, 6))
    model.eval()
    made = fuse(model)
    print(made.code)
    x = torch.rand(2, 1, 6, 6)
    print(torch.allclose(made(x), model(x), atol=1e-5), made.conv1 is model.conv1)
    print([(n, type(m).__name__) for n, m in made.named_modules()])
    try:
        fuse(ConvBn())
    except Exception as error:
        print(type(error).__name__)


def removing_dropout():
    from rushlight.fx.experimental.optimization import remove_dropout

    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5), nn.ReLU())
    made = remove_dropout(model)
    print(made.code, made(torch.ones(1, 2)).shape)


def extracting():
    from rushlight.fx.experimental.optimization import extract_subgraph, matches_module_pattern

    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2))
    gm = fx.symbolic_trace(model)
    nodes = list(gm.graph.nodes)
    part = extract_subgraph(gm, nodes[1:3], [nodes[0]], [nodes[2]])
    print(part.code)
    modules = dict(gm.named_modules())
    print(
        matches_module_pattern((nn.Linear, nn.ReLU), nodes[2], modules),
        matches_module_pattern((nn.ReLU, nn.ReLU), nodes[2], modules),
    )


def fusing_by_hand():
    def fuse_conv_bn(conv, bn):
        fused = copy.deepcopy(conv)
        fused.weight, fused.bias = nn.utils.fusion.fuse_conv_bn_weights(
            conv.weight, conv.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
        )
        return fused

    torch.manual_seed(0)
    model = ConvBn().eval()
    gm = fx.symbolic_trace(copy.deepcopy(model))
    modules = dict(gm.named_modules())
    for node in gm.graph.nodes:
        if (
            node.op != "call_module"
            or not isinstance(node.args[0], fx.Node)
            or node.args[0].op != "call_module"
        ):
            continue
        if (
            type(modules[node.target]) is nn.BatchNorm2d
            and type(modules[node.args[0].target]) is nn.Conv2d
        ):
            if len(node.args[0].users) > 1:
                continue
            fused = fuse_conv_bn(modules[node.args[0].target], modules[node.target])
            parent, _, name = node.args[0].target.rpartition(".")
            setattr(modules[parent], name, fused)
            node.replace_all_uses_with(node.args[0])
            gm.graph.erase_node(node)
    gm.graph.lint()
    gm.delete_all_unused_submodules()
    gm.recompile()
    print(gm.code, [n for n, _ in gm.named_modules()])
    x = torch.rand(2, 1, 6, 6)
    print(torch.allclose(gm(x), model(x), atol=1e-5))


def quantising():
    class Observer(nn.Module):
        def __init__(self):
            super().__init__()
            self.low, self.high = float("inf"), float("-inf")

        def forward(self, x):
            self.low, self.high = min(self.low, float(x.min())), max(self.high, float(x.max()))
            return x

    class QuantDeQuant(nn.Module):
        def __init__(self, scale):
            super().__init__()
            self.scale = scale

        def forward(self, x):
            return torch.round(x / self.scale) * self.scale

    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    gm = fx.symbolic_trace(model)
    for number, node in enumerate(list(gm.graph.nodes)):
        if node.op == "call_module":
            name = f"observer_{number}"
            gm.add_submodule(name, Observer())
            with gm.graph.inserting_after(node):
                new = gm.graph.call_module(name, (node,))
            node.replace_all_uses_with(new)
            new.args = (node,)
    gm.recompile()
    print(gm.code)
    gm(torch.rand(4, 2))
    for node in gm.graph.nodes:
        if node.op == "call_module" and isinstance(gm.get_submodule(node.target), Observer):
            setattr(gm, node.target, QuantDeQuant(0.5))
    gm.recompile()
    print(gm.graph, gm(torch.rand(4, 2)).remainder(0.5).abs().max())
