"""Where nodes come from, types, schemas of operators."""

import operator
import typing

import rushlight as torch
from rushlight import fx, nn
from rushlight.fx import operator_schemas as schemas
from rushlight.fx import traceback


def annotated_nodes():
    def f(x):
        x = x + 1
        with traceback.annotate({"part": "second"}):
            return x.relu()

    with traceback.preserve_node_meta():
        traceback.set_stack_trace(["line\n"])
        print(traceback.format_stack(), traceback.has_preserved_node_meta())
        gm = fx.symbolic_trace(f)
        with traceback.annotate({"a": 1}), traceback.annotate({"a": 2, "b": 3}):
            print(traceback.get_current_meta())
        print(traceback.get_current_meta())
    print([(n.name, n.meta.get("custom"), n.stack_trace) for n in gm.graph.nodes])
    print(traceback.get_current_meta(), traceback.has_preserved_node_meta())

    @traceback.annotate_fn({"a": 1})
    def g():
        print(traceback.get_current_meta())

    g()


def sources_of_nodes():
    gm = fx.symbolic_trace(lambda x: x.relu())
    node = [n for n in gm.graph.nodes if n.name == "relu"][0]
    source = traceback.NodeSource(node, "mine", traceback.NodeSourceAction.CREATE)
    print(source.name, source.target, source.graph_id == id(gm.graph), source.pass_name)
    text = source.to_dict()
    print(text.pop("graph_id") == id(gm.graph), text)
    print(source.print_readable().split(", graph_id")[0], list(traceback.NodeSourceAction))
    print(traceback.get_graph_provenance_json(gm.graph))
    node.meta["from_node"] = [source]
    other = traceback.NodeSource(node, "next", list(traceback.NodeSourceAction))
    print(other.to_dict()["action"], [s.name for s in other.from_node])


def current_meta():
    gm = fx.symbolic_trace(lambda x: x.relu())
    node = [n for n in gm.graph.nodes if n.name == "relu"][0]
    node.meta["custom"] = {"k": 1}
    with traceback.preserve_node_meta():
        with traceback.set_current_meta(node, "mine"):
            meta = traceback.get_current_meta()
            print(meta["custom"], [s.pass_name for s in meta["from_node"]])
        print(traceback.get_current_meta())
        traceback.set_grad_fn_seq_nr(3)
        traceback.set_grad_fn_seq_nr(4)
        print(traceback.get_current_meta())
        traceback.reset_grad_fn_seq_nr()
        print(traceback.get_current_meta())
        traceback.reset_grad_fn_seq_nr()
        print(traceback.get_current_meta())
    with traceback.set_current_replay_node(node):
        print(traceback.get_current_replay_node())
    print(traceback.get_current_replay_node())


def annotating_values():
    from rushlight.fx.annotate import annotate

    def f(x):
        return annotate(annotate(x, int) + 1, torch.Tensor).relu()

    print(fx.symbolic_trace(f).code, annotate(3, int))
    try:
        fx.symbolic_trace(lambda x: annotate(annotate(x, int), int))
    except RuntimeError as error:
        print(error)


def normalised_functions():
    for target, args, kwargs in (
        (torch.relu, (1,), {}),
        (torch.nn.functional.softmax, (1, 2), {}),
        (torch.ops.aten.add.Tensor, (1, 2), {}),
        (torch.ops.aten.add.Tensor, (1,), {"other": 2, "alpha": 3}),
        (lambda a, b=3: a, (1,), {}),
        (operator.neg, (1,), {}),
        (torch.cat, ([1],), {}),
    ):
        print(schemas.normalize_function(target, args, kwargs))
        print(schemas.normalize_function(target, args, kwargs, normalize_to_only_use_kwargs=True))
    print(schemas.normalize_function(torch.sum, (1,), {"dim": 1}, (torch.Tensor,), {"dim": int}))


def normalised_modules():
    root = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU()))
    print(
        schemas.normalize_module(root, "0", (1,), {}),
        schemas.normalize_module(root, "0", (1,), {}, True),
    )
    try:
        schemas.normalize_module(root, "9", (1,), {})
    except RuntimeError as error:
        print(error)


def matching_types():
    for a, b in (
        (list[int], list), (list[int], list[int]), (list[int], tuple),
        (typing.Optional[int], int), (typing.Union[int, float], int),  # noqa: UP045, UP007
            (float, int), (int, float),
        (list[float], list[int]), (torch.Tensor, nn.Parameter), (bool, int),
        (int, bool), (list[int], tuple[int, int]), (list[int], int),
    ):  # fmt: skip
        print(schemas.type_matches(a, b), end=" ")
    print()
    for hint in ([torch.Tensor], (torch.Tensor, torch.Tensor), [], (), 3, int):
        print(str(schemas.create_type_hint(hint)).replace("rushlight", "torch"))


def mutable_operations():
    class T(fx.Tracer):
        check_mutable_operations = True

    print(T().trace(lambda x: torch.relu(x)))
    try:
        T().trace(lambda x: torch.relu_(x))
    except RuntimeError as error:
        print(error)


def tensor_types():
    from rushlight.fx.tensor_type import Dyn, TensorType, is_consistent, is_more_precise

    print(Dyn, TensorType((1, 2, Dyn)), TensorType((1, 2)) == TensorType((1, 2)))
    for a, b in (
        (TensorType((1, 2)), TensorType((1, Dyn))),
        (TensorType((1, Dyn)), TensorType((1, 2))),
        (Dyn, TensorType((1,))),
        (TensorType((1,)), TensorType((1, 2))),
        (1, 2),
    ):
        print(is_consistent(a, b), is_more_precise(a, b))


class Parameters(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("b", torch.ones(3))
        self.p = nn.Parameter(torch.ones(2, 3))

    def forward(self, x):
        return (
            x + self.b.shape[0] + self.p.shape[0] + self.p.dim() + self.p.size()[0] + self.p.numel()
        )


def shapes_of_parameters():
    class Buffers(fx.Tracer):
        proxy_buffer_attributes = True

    print(Buffers().trace(Parameters()))
    print(fx.Tracer(param_shapes_constant=True).trace(Parameters()))


def tracing_another_method():
    class M(nn.Module):
        def forward(self, x):
            return self.go(x)

        def go(self, x):
            return x + 1

    class T(fx.Tracer):
        traced_func_name = "go"

    print(T().trace(M()))


def refused_arguments():
    for value in (len, nn.ReLU, {1}, nn.ReLU(), int, b"s", operator):
        try:
            fx.symbolic_trace(lambda x, value=value: x.method(value))
        except NotImplementedError as error:
            print(str(error).replace("rushlight", "torch"))
    print(fx.symbolic_trace(lambda x: x.method(range(3), slice(1, 2), torch.float32, ...)).code)
    try:
        fx.symbolic_trace(lambda x: x.method({x: 1}))
    except RuntimeError as error:
        print(error)


def settings():
    print([name for name in dir(fx.config) if not name.startswith("_")])


def nodes_with_tensors():
    gm = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2)))
    for node in gm.graph.nodes:
        node.meta["val"] = torch.ones(3, 2)
    for node in gm.graph.nodes:
        print(node.format_node(include_tensor_metadata=True))
    gm.print_readable(include_stride=True, include_device=True)
    gm.print_readable(expanded_def=True)
    gm.graph.output_node().prev.meta["k"] = 3
    gm.print_readable(additional_meta=["k"])
    print(repr(gm.print_readable(print_output=False, colored=True)))


def sizes_as_nodes():
    gm = fx.symbolic_trace(lambda x: x)
    x, out = gm.graph.nodes
    with gm.graph.inserting_before(out):
        sizes = [gm.graph.create_size_node(x, 1), gm.graph.create_stride_node(x, 0)]
        out.args = ((*sizes, gm.graph.create_storage_offset_node(x)),)
    gm.recompile()
    print(gm.code, gm(torch.ones(2, 3)), gm(torch.ones(4, 5)[1:]))


def decomposing_into_another_graph():
    from rushlight.fx.experimental.proxy_tensor import DecompositionInterpreter, make_fx

    def silu(x):
        return x * torch.sigmoid(x)

    gm = make_fx(lambda x: torch.nn.functional.silu(x))(torch.ones(2))
    table = {torch.ops.aten.silu.default: silu}
    graph = fx.Graph()
    DecompositionInterpreter(gm, graph, table).run(torch.ones(2))
    print([node.name for node in graph.nodes if node.name != "empty_strided"])


def reduced_modules():
    from rushlight.fx.graph_module import reduce_graph_module

    gm = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    body = gm.__dict__.copy()
    body.pop("_graph")
    made = reduce_graph_module(body, "")
    print(made.code, torch.equal(made(torch.ones(1, 2)), gm(torch.ones(1, 2))))
