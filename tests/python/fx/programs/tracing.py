"""What symbolic tracing makes of programs."""

import math
from typing import NamedTuple

import rushlight as torch
from rushlight import fx, nn
from rushlight.nn import functional as F


def show(gm):
    print(gm.graph)
    print(gm.code)


class MyModule(nn.Module):
    def __init__(self):
        super().__init__()
        self.param = nn.Parameter(torch.rand(3, 4))
        self.linear = nn.Linear(4, 5)

    def forward(self, x):
        return self.linear(x + self.param).clamp(min=0.0, max=1.0)


def the_first_example():
    module = MyModule()
    gm = fx.symbolic_trace(module)
    show(gm)
    print(gm)
    x = torch.rand(3, 4)
    print(torch.equal(gm(x), module(x)), isinstance(gm, nn.Module), type(gm).__name__)
    for n in gm.graph.nodes:
        print(n.op, n.name, n.target, n.args, n.kwargs, n.type)


class TopK(nn.Module):
    def __init__(self):
        super().__init__()
        self.param = nn.Parameter(torch.rand(3, 4))
        self.linear = nn.Linear(4, 5)

    def forward(self, x):
        return torch.topk(
            torch.sum(self.linear(x + self.linear.weight[:, :4].T[0]).relu(), dim=-1), 3
        )


def topk():
    gm = fx.symbolic_trace(TopK())
    show(gm)


def operators():
    def f(a, b):
        c = a + b - 1 * a / 2 // b % 3
        d = a**2 @ b.T
        e = (a & b) | (a ^ b) << 1 >> 2
        g = [a < b, a <= b, a > b, a >= b, a == b, a != b]
        h = 1 + a, 1 - a, 2 * a, 2 / a, 2 // a, 2**a, 2 % a
        return c, d, e, g, h, -a, +a, ~a, abs(a), a[0], a[1:2, ..., None]

    show(fx.symbolic_trace(f))


def in_place():
    def f(a, b):
        a += b
        a *= 2
        a.add_(1).relu_()
        return a

    show(fx.symbolic_trace(f))


def set_item():
    def f(a, b):
        a[0] = b
        return a

    try:
        show(fx.symbolic_trace(f))
    except Exception as error:
        print(type(error).__name__, error)


def attributes():
    def f(x):
        return x.shape, x.shape[0], x.size(0), x.dtype, x.device, x.T, x.ndim, x.is_cuda

    show(fx.symbolic_trace(f))


def methods_and_functions():
    def f(x, y):
        a = x.view(-1, 2).permute(1, 0).contiguous()
        b = torch.cat([a, a], dim=0)
        c = torch.add(b, 1)
        d = torch.where(y > 0, y, torch.zeros_like(y))
        e = F.relu(d, inplace=False)
        g = F.dropout(e, 0.5, training=False)
        return torch.einsum("ij->ji", c), g, torch.nn.functional.softmax(e, -1)

    show(fx.symbolic_trace(f))


def defaults_and_kinds():
    def f(a, b=2, *args, c=3, d=4, **kwargs):
        return a + b + args[0] + c + d + kwargs["e"]

    show(fx.symbolic_trace(f))

    def g(a, b=2, *, d):
        return a + b + d

    try:
        show(fx.symbolic_trace(g))
    except SyntaxError as error:
        print(str(error).split(" (")[0])


def annotations():
    def f(x: torch.Tensor, y: int = 3, z: "list[torch.Tensor]" = None) -> torch.Tensor:
        return x + y + z[0]

    show(fx.symbolic_trace(f))


def annotated_module():
    class M(nn.Module):
        def forward(self, x: torch.Tensor, flag: bool = False) -> tuple[torch.Tensor, int]:
            return x + 1, 2

    show(fx.symbolic_trace(M()))


def control_flow():
    def f(x):
        if x.sum() > 0:
            return x
        return -x

    for g in (
        f,
        lambda x: [y for y in x],
        lambda x: len(x),
        lambda x: x in [1, 2],
        lambda x: int(x),
        lambda x: float(x),
        lambda x: range(x),
        lambda x: list(range(5))[x],
        lambda x: torch.zeros(3)[0] if x else 0,
        lambda *x: [a for a in x],
        lambda x: f"{x}",
        lambda x: dict(**x),
        lambda x: x.shape[0] == 3 and x,
    ):
        try:
            print(fx.symbolic_trace(g).code)
        except Exception as error:
            print(type(error).__name__, "|", str(error).split(chr(10))[0])


def shape_assert():
    class M(nn.Module):
        def __init__(self, do_activation: bool = False):
            super().__init__()
            self.do_activation = do_activation
            self.linear = nn.Linear(512, 512)

        def forward(self, x):
            x = self.linear(x)
            if self.do_activation:
                x = torch.relu(x)
            return x

    print(fx.symbolic_trace(M(False)).code)
    print(fx.symbolic_trace(M(True)).code)


def concrete_arguments():
    def f(x, flag, n=3):
        if flag:
            return x
        return x * n

    print(fx.symbolic_trace(f, concrete_args={"flag": True}).code)
    print(fx.symbolic_trace(f, concrete_args={"flag": False}).code)
    print(fx.symbolic_trace(f, concrete_args={"flag": False, "n": None}).code)
    gm = fx.symbolic_trace(f, concrete_args={"flag": True, "n": 3})
    print(gm.graph)
    try:
        gm(torch.ones(2), False, 4)
    except AssertionError as error:
        print(type(error).__name__, error)


def concrete_structures():
    def f(x):
        out = 0
        for v in x.values():
            out += v
        return out

    gm = fx.symbolic_trace(f, concrete_args={"x": {"a": fx.PH, "b": fx.PH, "c": fx.PH}})
    print(gm.code)
    print(gm({"a": 1, "b": 2, "c": 4}))

    def g(a, b, c):
        return a[0] + a[1][0] + b["k"] + c

    gm = fx.symbolic_trace(g, concrete_args={"a": (fx.PH, [fx.PH]), "b": {"k": fx.PH}})
    print(gm.code)
    try:
        print(gm((1, [2]), {"k": 3}, 4))
    except Exception as error:
        print(type(error).__name__)


def scale(x, factor):
    if x.sum() > 0:
        return x * factor
    return x


fx.wrap("scale")
fx.wrap("len")


@fx.wrap
def decorated(x):
    return x if x.sum() > 0 else -x


def wrapped():
    def f(x, y):
        return scale(x, 3) + len(y) + decorated(y) + math.sqrt(len(y)) + scale(torch.ones(1), 2)

    gm = fx.symbolic_trace(f)
    show(gm)
    print(gm(torch.ones(2), torch.ones(3)[:2]))


def wrapped_inside_a_function():
    def inner():
        fx.wrap("scale")

    try:
        inner()
    except NotImplementedError as error:
        print(error)
    try:
        fx.wrap(3)
    except RuntimeError as error:
        print(error)


class Leaf(nn.Module):
    def forward(self, x):
        return x.relu() + x.sigmoid()


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Leaf()
        self.seq = nn.Sequential(nn.Linear(2, 2), Leaf(), nn.ReLU())
        self.many = nn.ModuleList([nn.Linear(2, 2), Leaf()])
        self.named = nn.ModuleDict({"a": nn.Tanh()})

    def forward(self, x):
        x = self.seq(self.inner(x))
        for module in self.many:
            x = module(x)
        return self.named["a"](x)


def leaves():
    print(fx.symbolic_trace(Outer()).code)

    class All(fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            print("?", type(m).__name__, module_qualified_name)
            return True

    model = Outer()
    graph = All().trace(model)
    print(graph)
    gm = fx.GraphModule(model, graph)
    print(gm.code)
    print(sorted(dict(gm.named_modules())))

    class None_(fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return False

    print(None_().trace(model).python_code("self").src)


def constants():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("buffer", torch.ones(2))
            self.plain = torch.ones(2)

        def forward(self, x):
            return x + self.buffer + self.plain + torch.tensor([1.0, 2.0]) + torch.ones(2)

    gm = fx.symbolic_trace(M())
    print(gm.code)
    print(sorted(gm.state_dict()), sorted(dict(gm.named_buffers())))
    print(gm(torch.zeros(2)))


class Point(NamedTuple):
    x: torch.Tensor
    y: torch.Tensor


def named_tuples():
    def f(a, b):
        p = Point(a, b)
        return Point(p.x + 1, p.y)

    gm = fx.symbolic_trace(f)
    print(gm.code)
    print(gm(torch.ones(1), torch.zeros(1)))


def literals():
    def f(x):
        return (
            x.to(torch.float64), x.to("cpu"), x.to(torch.device("cpu")), x * float("inf"),
            x * float("-inf"), x.sum(dim=(0, 1)), torch.full((2, 2), float("nan")) * x, {"a": x},
            [x, (x,)], x.contiguous(memory_format=torch.channels_last),
            x.new_zeros([1], dtype=torch.bool),
            torch.empty_like(x, layout=torch.strided), x * 1e10, x * 1j, x[...], x[:, 0, 1:3],
            None, True, "s",
        )  # fmt: skip

    show(fx.symbolic_trace(f))


def keyword_names():
    def f(input, self_, list, lambda_, print):
        return input + self_ + list + lambda_ + print

    show(fx.symbolic_trace(f))


def a_custom_tracer():
    class Named(fx.Tracer):
        def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
            node = super().create_node(kind, target, args, kwargs, name, type_expr)
            node.meta["mark"] = kind
            return node

        def to_bool(self, obj):
            print("to_bool", obj)
            return True

        def iter(self, obj):
            print("iter", obj)
            return iter([obj[0], obj[1]])

        def keys(self, obj):
            print("keys", obj)
            return super().keys(obj)

    def f(x):
        for y in x:
            if y:
                x = x + y
        return x

    graph = Named().trace(f)
    print(graph)
    print([n.meta["mark"] for n in graph.nodes])


def fresh_names():
    class T(fx.Tracer):
        def create_arg(self, a):
            if isinstance(a, complex):
                name = self.get_fresh_qualname("_complex")
                setattr(self.root, name, torch.tensor(1.0))
                return self.create_node("get_attr", name, (), {})
            return super().create_arg(a)

    tracer = T()
    graph = tracer.trace(lambda x: x + 1j + 2j)
    print(fx.GraphModule(tracer.root, graph).code)


class Data:
    def __init__(self, a):
        self.a = a

    def __fx_create_arg__(self, tracer):
        return tracer.create_node(
            "call_function", Data, args=(tracer.create_arg(self.a),), kwargs={}
        )


def objects_as_arguments():
    def use(d):
        return d

    class M(nn.Module):
        def forward(self, x):
            return torch.relu(Data(x).a), Data(x)

    print(fx.Tracer().trace(M()))
    try:
        fx.symbolic_trace(lambda x: x.add(object()))
    except NotImplementedError as error:
        print(str(error)[:40])


def scopes_in_meta():
    gm = fx.symbolic_trace(Outer())
    for node in gm.graph.nodes:
        stack = node.meta.get("nn_module_stack")
        print(
            node.name,
            stack and [(k, v[0], getattr(v[1], "__name__", v[1])) for k, v in stack.items()],
        )


def shared_modules():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(2, 2)
            self.b = self.a
            self.w = self.a.weight

        def forward(self, x):
            return self.b(self.a(x)) + self.w + self.a.bias

    show(fx.symbolic_trace(M()))


def errors_in_traced_code():
    def f(x):
        return x.no_such_method(1)

    gm = fx.symbolic_trace(f)
    try:
        gm(torch.ones(2))
    except AttributeError as error:
        print(error)
    try:
        fx.symbolic_trace(nn.Linear(2, 2))(torch.ones(3))
    except RuntimeError as error:
        print(type(error).__name__)
