"""Graphs made and changed by hand."""

import operator

import rushlight as torch
from rushlight import fx, nn


def show(graph):
    print(graph)
    print(graph.python_code("self").src)


def tabular():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.param = nn.Parameter(torch.rand(3, 4))
            self.linear = nn.Linear(4, 5)

        def forward(self, x):
            return (self.linear(x + self.linear.weight).relu() @ x)[0], {"a": (x, 3)}

    fx.symbolic_trace(M()).graph.print_tabular()


def by_hand():
    graph = fx.Graph()
    x = graph.placeholder("x")
    y = graph.placeholder("y", torch.Tensor, None)
    w = graph.get_attr("w")
    a = graph.call_function(torch.add, (x, w), {"alpha": 2})
    b = graph.call_method("relu", (a,))
    c = graph.call_module("lin", (b,), type_expr=torch.Tensor)
    d = graph.create_node("call_function", operator.add, (c, y), name="my_sum")
    graph.output({"a": [d, b], "b": (x,)}, type_expr=dict)
    show(graph)
    graph.lint()
    print(graph.output_node(), d.users, x.users, list(a.all_input_nodes), a.next, a.prev)
    print([n.name for n in reversed(graph.nodes)], len(graph.nodes))
    for n in graph.nodes:
        print(n.format_node())
    print(
        graph.find_nodes(op="call_function", target=torch.add), graph.find_nodes(op="placeholder")
    )


def names():
    graph = fx.Graph()
    for name in (
        "x",
        "x",
        "x_1",
        "x_5",
        "x_5",
        "0a",
        "a.b",
        "class",
        "sum",
        "self",
        "torch",
        "",
        "_a",
        "__b",
        "a-b",
    ):
        try:
            print(repr(name), graph.placeholder(name).name)
        except Exception as error:
            print(type(error).__name__, error)
    x = graph.find_nodes(op="placeholder")[0]
    for target in (
        torch.relu,
        torch.nn.functional.relu,
        torch.ops.aten.add.Tensor,
        operator.getitem,
        len,
        print,
        torch.Tensor.add,
        lambda v: v,
        torch.relu_,
        torch.add,
    ):
        print(graph.call_function(target, (x,)).name)
    for target in ("add_", "__add__", "MyMethod", "T", "aBc"):
        print(graph.call_method(target, (x,)).name)
    for target in ("a.b.c", "layers.0.Linear", "conv1"):
        print(graph.call_module(target, (x,)).name)
    x.name = "renamed"
    print(x.name, x)


def insertion():
    def f(x):
        return x.relu().sum()

    gm = fx.symbolic_trace(f)
    graph = gm.graph
    relu = next(n for n in graph.nodes if n.target == "relu")
    with graph.inserting_before(relu):
        graph.call_function(torch.neg, (relu.args[0],))
    with graph.inserting_after(relu):
        new = graph.call_method("exp", (relu,))
        relu.replace_all_uses_with(new)
    print(graph)
    new.args = (relu,)
    print(graph)
    with graph.inserting_before():
        graph.placeholder("first")
    with graph.inserting_after():
        graph.placeholder("zeroth")
    print(graph)
    gm.recompile()
    print(gm.code)


def replacing():
    def f(x, y):
        return torch.add(x, y) + torch.add(x, x)

    gm = fx.symbolic_trace(f)
    for n in gm.graph.nodes:
        if n.op == "call_function" and n.target is torch.add:
            n.target = torch.mul
    gm.graph.lint()
    gm.recompile()
    print(gm.code)
    first = [n for n in gm.graph.nodes if n.op == "call_function"][0]
    x, y = gm.graph.find_nodes(op="placeholder")
    first.replace_input_with(y, x)
    print(first.args, y.users, list(x.users))
    first.update_arg(0, y)
    first.update_kwarg("out", None)
    first.insert_arg(1, 7)
    print(first.args, first.kwargs, list(y.users))
    print(x.replace_all_uses_with(y, delete_user_cb=lambda n: n is not first))
    print(gm.graph)


def erasing():
    graph = fx.Graph()
    x = graph.placeholder("x")
    a = graph.call_function(torch.neg, (x,))
    b = graph.call_function(torch.exp, (a,))
    graph.output(a)
    try:
        graph.erase_node(a)
    except RuntimeError as error:
        print(error)
    graph.erase_node(b)
    print(graph, len(graph.nodes), a.users)


def moving():
    graph = fx.Graph()
    x = graph.placeholder("x")
    a = graph.call_function(torch.neg, (x,))
    b = graph.call_function(torch.exp, (x,))
    c = graph.call_function(torch.sin, (a,))
    graph.output((b, c))
    a.append(c)
    print([n.name for n in graph.nodes])
    a.prepend(b)
    print([n.name for n in graph.nodes])
    print(a < b, b < a, a <= a, a > b)


def dead_code():
    def f(x):
        a = x + 1
        a * 2
        torch.rand(3)
        x.relu()
        torch._assert(True, "text")
        return a

    gm = fx.symbolic_trace(f)
    print(gm.graph.eliminate_dead_code(), gm.graph.eliminate_dead_code())
    print(gm.graph)
    print([n.is_impure() for n in gm.graph.nodes])
    graph = fx.Graph()
    x = graph.placeholder("x")
    for target in (
        torch.relu,
        operator.setitem,
        torch.ops.aten.add_.Tensor,
        torch.ops.aten.rand.default,
        torch.ops.aten.dropout.default,
        torch.ops.aten.copy_.default,
        torch.nn.functional.dropout,
        torch._assert,
        torch.manual_seed,
        print,
        torch.ops.aten._assert_async.msg,
    ):
        print(getattr(target, "__name__", target), graph.call_function(target, (x,)).is_impure())
    for name in ("relu", "__iadd__", "copy"):
        print(name, graph.call_method(name, (x,)).is_impure())


def dead_modules():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.used = nn.ReLU()
            self.unused = nn.Linear(2, 2)
            self.batch = nn.BatchNorm1d(2)

        def forward(self, x):
            self.unused(x)
            self.batch(x)
            return self.used(x)

    gm = fx.symbolic_trace(M())
    print(gm.graph.eliminate_dead_code())
    gm.recompile()
    print(gm.code)
    gm.delete_all_unused_submodules()
    print([name for name, _ in gm.named_modules()])


def dead_code_with_a_rule():
    def f(x):
        x.add_(1)
        torch.neg(x)
        return x

    gm = fx.symbolic_trace(f)
    print(gm.graph.eliminate_dead_code(is_impure_node=lambda n: n.op in ("placeholder", "output")))
    print(gm.graph)


def linting():
    graph = fx.Graph()
    x = graph.placeholder("x")
    a = graph.call_function(torch.neg, (x,))
    b = graph.call_function(torch.exp, (a,))
    graph.output(b)
    b.append(a)
    other = fx.Graph()
    y = other.placeholder("y")
    for change in (
        lambda: None,
        lambda: setattr(a, "args", (y,)),
        lambda: setattr(b, "op", "nothing"),
    ):
        change()
        try:
            graph.lint()
            print("fine")
        except Exception as error:
            print(type(error).__name__, str(error).split("\n")[0])


def linting_modules():
    gm = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2)))
    x = gm.graph.find_nodes(op="placeholder")[0]
    with gm.graph.inserting_after(x):
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                gm.graph.call_module("missing", (x,))
            except AttributeError as error:
                print(error)
    try:
        gm.graph.lint()
    except Exception as error:
        print(type(error).__name__, error)
    with gm.graph.inserting_after(x):
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                gm.graph.get_attr("absent")
            print(len(caught))
        except Exception as error:
            print(type(error).__name__, error)


def copies():
    def f(x):
        return (x + 1).relu(), x

    def g(y):
        return y.exp()

    first, second = fx.symbolic_trace(f).graph, fx.symbolic_trace(g).graph
    graph = fx.Graph()
    values = {}
    result = graph.graph_copy(first, values)
    print(result, [(k.name, v.name) for k, v in values.items()])
    (y,) = second.find_nodes(op="placeholder")
    more = {y: result[0]}
    result = graph.graph_copy(second, more, return_output_node=True)
    print(result)
    graph.output(result[0])
    show(graph)
    nodes = {}
    again = fx.Graph()
    for node in graph.nodes:
        nodes[node] = again.node_copy(node, lambda n: nodes[n])
    show(again)


def immutable_arguments():
    graph = fx.Graph()
    x = graph.placeholder("x")
    node = graph.call_function(torch.cat, ([x, x],), {"dim": 0})
    for change in (
        lambda: node.args[0].append(x),
        lambda: node.kwargs.update(dim=1),
        lambda: node.kwargs.__setitem__("dim", 1),
    ):
        try:
            change()
        except (NotImplementedError, TypeError) as error:
            print(type(error).__name__, str(error).split(".")[0])
    try:
        node.args[0] = 1
    except TypeError as error:
        print(error)
    print(type(node.args[0]).__name__, type(node.kwargs).__name__, type(node.args).__name__)
    print(
        fx.node.map_arg(node.args, lambda n: n.name),
        fx.node.map_aggregate([1, (2, {"a": 3})], lambda v: v * 2),
    )


def code_generation():
    class ListCodeGen(fx.CodeGen):
        def gen_fn_def(self, free_vars, maybe_return_annotation):
            return f"""def forward(self, args_list){maybe_return_annotation}:
    {", ".join(free_vars)} = args_list"""

        def additional_globals(self):
            return [("List", list)]

        def process_inputs(self, *inputs):
            assert len(inputs) == 1
            return inputs[0]

    def f(a, b):
        return a + b

    gm = fx.symbolic_trace(f)
    gm.graph.set_codegen(ListCodeGen())
    gm.recompile()
    print(gm.code)
    values = [torch.ones(1), torch.ones(1) * 2]
    print(gm(values), fx.Interpreter(gm).run(values))
    print(gm.graph.process_inputs(values), gm.graph.process_outputs(3))


def generated_code_changed():
    def f(a):
        return a + 1

    gm = fx.symbolic_trace(f)
    seen = []

    def make(current):
        seen.append(current)
        return lambda body: ["import math\n", *(current(body) if current else body), "# end\n"]

    with gm.graph.on_generate_code(make):
        gm.recompile()
        print(gm.code)
    gm.recompile()
    print(gm.code, seen)


def output_generation():
    class Named(fx.CodeGen):
        def generate_output(self, output_args, *args, **kwargs):
            return f'return {{"out": {output_args!r}}}'

    gm = fx.symbolic_trace(lambda x: x + 1)
    gm.graph.set_codegen(Named())
    gm.recompile()
    print(gm.code, gm(1))


def types_of_nodes():
    graph = fx.Graph()
    x = graph.placeholder("x", type_expr=torch.Tensor)
    y = graph.call_function(torch.neg, (x,), type_expr=torch.Tensor)
    z = graph.call_function(torch.split, (y, 1), type_expr=list[torch.Tensor])
    graph.output(z, type_expr=list[torch.Tensor])
    show(graph)
    print(graph.python_code("mod").src)
    import typing
    from typing import Optional, Union

    graph = fx.Graph()
    for name, kind in dict(
        a=int,
        b=Optional[torch.Tensor],  # noqa: UP045
        c=typing.List[int],  # noqa: UP006
        d=typing.Dict[str, torch.Tensor],  # noqa: UP006
        e=tuple[()],
        f=tuple[int, ...],
        g=Union[int, float],  # noqa: UP007
        h=torch.nn.Module,
        i=None,
    ).items():
        graph.placeholder(name, type_expr=kind)
    graph.output(None)
    show(graph)


def proxies_on_graphs():
    graph = fx.Graph()
    x = fx.Proxy(graph.placeholder("x"))
    y = torch.relu(x) + 1
    z = y.view(2, -1)[0].T
    print(repr(x), type(y).__name__, repr(z))
    graph.output(z.node)
    show(graph)


def normalized():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(2, 2)

        def forward(self, x):
            return (
                torch.mm(self.lin(x), mat2=x)
                + torch.cumsum(x, 1)
                + torch.nn.functional.softmax(x, 1)
            )

    gm = fx.symbolic_trace(M())
    for node in gm.graph.nodes:
        try:
            print(node.name, node.normalized_arguments(gm))
        except Exception as error:
            print(type(error).__name__, error)
    for node in gm.graph.nodes:
        try:
            print(
                node.name,
                node.normalized_arguments(
                    gm, (torch.Tensor, torch.Tensor), {}, normalize_to_only_use_kwargs=True
                ),
            )
        except Exception as error:
            print(type(error).__name__)


def metadata_of_nodes():
    gm = fx.symbolic_trace(lambda x: x.relu())
    node = gm.graph.find_nodes(op="call_method")[0]
    node.meta["k"] = 1
    node.stack_trace = '  File "a.py", line 3, in f\n    x.relu()\n'
    print(node.stack_trace, "k" in node.meta, node.graph is gm.graph, gm.graph.owning_module is gm)
    copy = fx.Graph()
    value = {}
    copy.graph_copy(gm.graph, value)
    print([n.meta.get("k") for n in copy.nodes])
