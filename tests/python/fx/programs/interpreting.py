"""Interpreters and transformers."""

import rushlight as torch
from rushlight import fx, nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.w = nn.Parameter(torch.ones(3))

    def forward(self, x, y=None, *rest):
        z = torch.sigmoid(self.lin(x) + self.w)
        return z.neg(), x


def running():
    net = Net()
    gm = fx.symbolic_trace(net)
    x = torch.rand(2, 3)
    print(torch.equal(fx.Interpreter(gm).run(x)[0], net(x)[0]))
    try:
        fx.Interpreter(gm).run()
    except Exception as error:
        print(type(error).__name__, str(error).split("\n")[0])


def boxed():
    gm = fx.symbolic_trace(lambda x, y: x + y)
    values = [torch.ones(1), torch.ones(1)]
    print(fx.Interpreter(gm).boxed_run(values), values)
    try:
        fx.Interpreter(gm).boxed_run((1, 2))
    except Exception as error:
        print(type(error).__name__)


def the_documentations_swap():
    def fn(x):
        return torch.sigmoid(x).neg()

    gm = fx.symbolic_trace(fn)

    class NegSigmSwapInterpreter(fx.Interpreter):
        def call_function(self, target, args, kwargs):
            if target == torch.sigmoid:
                return torch.neg(*args, **kwargs)
            return super().call_function(target, args, kwargs)

        def call_method(self, target, args, kwargs):
            if target == "neg":
                call_self, *args_tail = args
                return call_self.sigmoid(*args_tail, **kwargs)
            return super().call_method(target, args, kwargs)

    x = torch.tensor([1.0, -2.0])
    print(torch.equal(NegSigmSwapInterpreter(gm).run(x), torch.neg(x).sigmoid()))

    class NegSigmSwapXformer(fx.Transformer):
        def call_function(self, target, args, kwargs):
            if target == torch.sigmoid:
                return torch.neg(*args, **kwargs)
            return super().call_function(target, args, kwargs)

        def call_method(self, target, args, kwargs):
            if target == "neg":
                call_self, *args_tail = args
                return call_self.sigmoid(*args_tail, **kwargs)
            return super().call_method(target, args, kwargs)

    made = NegSigmSwapXformer(gm).transform()
    print(made.code)
    print(made.graph)


def profiling():
    class Profiler(fx.Interpreter):
        def __init__(self, mod):
            super().__init__(fx.symbolic_trace(mod))
            self.calls = {}

        def run(self, *args):
            result = super().run(*args)
            return result

        def run_node(self, n):
            result = super().run_node(n)
            self.calls[n] = type(result).__name__
            return result

        def summary(self):
            for node, kind in self.calls.items():
                print(node.op, node, kind)

    profiler = Profiler(Net())
    profiler.run(torch.rand(2, 3))
    profiler.summary()


def hooks_of_kinds():
    class Loud(fx.Interpreter):
        def placeholder(self, target, args, kwargs):
            print("placeholder", target, args, kwargs)
            return super().placeholder(target, args, kwargs)

        def get_attr(self, target, args, kwargs):
            print("get_attr", target)
            return super().get_attr(target, args, kwargs)

        def call_function(self, target, args, kwargs):
            print("call_function", target.__name__, len(args), kwargs)
            return super().call_function(target, args, kwargs)

        def call_method(self, target, args, kwargs):
            print("call_method", target)
            return super().call_method(target, args, kwargs)

        def call_module(self, target, args, kwargs):
            print("call_module", target, self.submodules[target])
            return super().call_module(target, args, kwargs)

        def output(self, target, args, kwargs):
            print("output", target, len(args))
            return super().output(target, args, kwargs)

    Loud(fx.symbolic_trace(Net())).run(torch.ones(1, 3), 5, 6, 7)


def environments():
    gm = fx.symbolic_trace(lambda x: (x + 1) * 2)
    interpreter = fx.Interpreter(gm, garbage_collect_values=False)
    interpreter.run(3)
    print({n.name: v for n, v in interpreter.env.items()})
    add = [n for n in gm.graph.nodes if n.op == "call_function"][0]
    print(fx.Interpreter(gm).run(3, initial_env={add: 10}))
    interpreter = fx.Interpreter(gm)
    interpreter.run(3)
    print({n.name: v for n, v in interpreter.env.items()})
    print(interpreter.user_to_last_uses if hasattr(interpreter, "user_to_last_uses") else None)


def errors_name_the_node():
    gm = fx.symbolic_trace(lambda x: x @ x)
    try:
        fx.Interpreter(gm).run(torch.ones(2, 3))
    except RuntimeError as error:
        print("While executing" in str(error), str(error).split("\n\n")[1].split("\n")[0])


def missing_attributes():
    gm = fx.symbolic_trace(nn.Sequential(nn.ReLU()))
    gm.graph.find_nodes(op="call_module")[0].target = "no.such"
    try:
        fx.Interpreter(gm).run(1)
    except Exception as error:
        print(type(error).__name__, str(error).split("\n")[0])


def transformers_keep_state():
    net = Net()
    made = fx.Transformer(fx.symbolic_trace(net)).transform()
    print(made.code)
    print(made.lin is net.lin, sorted(made.state_dict()))


def transformers_with_arguments():
    def f(x: torch.Tensor, y=3, *args, **kwargs):
        return x + y

    gm = fx.symbolic_trace(f)
    print(fx.Transformer(gm).transform().code)


def decomposing():
    def relu_decomposition(x):
        return (x > 0) * x

    rules = {torch.relu: relu_decomposition, torch.nn.functional.relu: relu_decomposition}

    def decompose(model):
        graph = fx.Tracer().trace(model)
        new_graph = fx.Graph()
        env = {}
        tracer = fx.proxy.GraphAppendingTracer(new_graph)
        for node in graph.nodes:
            if node.op == "call_function" and node.target in rules:
                proxy_args = [
                    fx.Proxy(env[x.name], tracer) if isinstance(x, fx.Node) else x
                    for x in node.args
                ]
                env[node.name] = rules[node.target](*proxy_args).node
            else:
                env[node.name] = new_graph.node_copy(node, lambda x: env[x.name])
        return fx.GraphModule(model, new_graph)

    class M(nn.Module):
        def forward(self, x):
            return torch.relu(x) + torch.nn.functional.relu(x)

    made = decompose(M())
    print(made.code, made(torch.tensor([-1.0, 2.0])))


def running_a_part():
    gm = fx.symbolic_trace(lambda x: x.exp().sin())
    interpreter = fx.Interpreter(gm, graph=gm.graph)
    print(interpreter.run(torch.zeros(1)))
    x, exp, sin, out = gm.graph.nodes
    interpreter.env = {x: torch.zeros(1)}
    print(interpreter.run_node(exp), interpreter.fetch_args_kwargs_from_env(exp))
    print(interpreter.map_nodes_to_values([x, 1], exp))
    try:
        interpreter.run_node(sin)
    except Exception as error:
        print(type(error).__name__, str(error).split("\n")[0])
