"""torch.fx.passes: shapes, splitting, pass managers, operator support."""

import operator

import rushlight as torch
from rushlight import fx, nn
from rushlight.fx.passes.infra.pass_base import PassBase, PassResult
from rushlight.fx.passes.infra.pass_manager import (
    PassManager,
    pass_result_wrapper,
    this_before_that_pass_constraint,
)
from rushlight.fx.passes.shape_prop import ShapeProp
from rushlight.fx.passes.split_module import split_module


class TwoLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 8)
        self.b = nn.Linear(8, 2)

    def forward(self, x):
        return self.b(torch.relu(self.a(x)))


def shapes():
    gm = fx.symbolic_trace(TwoLayer())
    result = ShapeProp(gm).propagate(torch.rand(3, 4))
    print(result.shape)
    for node in gm.graph.nodes:
        meta = node.meta["tensor_meta"]
        print(
            node.name,
            tuple(meta.shape),
            meta.dtype,
            meta.stride,
            meta.requires_grad,
            meta.memory_format,
            meta.is_quantized,
            meta.qparams,
            node.meta["type"].__name__,
        )
        print(type(meta).__name__)


def shapes_of_structures():
    gm = fx.symbolic_trace(lambda x: (torch.split(x, 2), x.shape, x.sum().item()))
    ShapeProp(gm).propagate(torch.rand(4, 2))
    for node in gm.graph.nodes:
        print(node.name, "tensor_meta" in node.meta, node.meta["type"].__name__)
    print(len([n for n in gm.graph.nodes if n.op == "call_function"][0].meta["tensor_meta"]))


def split_in_two():
    gm = fx.symbolic_trace(TwoLayer())
    order = {node.name: number for number, node in enumerate(gm.graph.nodes)}
    made = split_module(gm, TwoLayer(), lambda node: order[node.name] // 3)
    print(made)
    print(made.graph)
    for name, child in made.named_children():
        print(name, child.code)
    x = torch.rand(2, 4)
    print(torch.equal(made(x), gm(x)))


def split_with_state():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.param = nn.Parameter(torch.rand(3, 4))
            self.linear = nn.Linear(4, 5)

        def forward(self, x, y):
            z = self.linear(x + self.param).clamp(min=0.0, max=1.0)
            w = self.linear(y).clamp(min=0.0, max=1.0)
            return z + w

    module = M()
    gm = fx.symbolic_trace(module)
    print(gm.code)
    counter = 0

    def partition(node):
        nonlocal counter
        index = counter % 3
        counter += 1
        return index

    made = split_module(gm, module, partition)
    print(made.code)
    for name, child in made.named_children():
        print(name, child.code, type(child).__name__)
    x, y = torch.rand(3, 4), torch.rand(3, 4)
    print(torch.equal(made(x, y), gm(x, y)), sorted(made.state_dict()))


def split_with_names():
    gm = fx.symbolic_trace(lambda x, y=2: ((x + 1) * y - 3, x))
    marks = {"add": "first", "mul": "second", "sub": "first_again"}
    made = split_module(gm, None, lambda n: marks.get(n.name, "rest"))
    print(made.code)
    for name, child in made.named_children():
        print(name, child.code)
    print(made(5), made(5, 3))


def split_original_order():
    gm = fx.symbolic_trace(lambda a, b: (b.exp() + a.neg()) * a)
    where = {"exp": 1, "neg": 0, "add": 2, "mul": 2}
    made = split_module(gm, None, lambda n: where[n.name], keep_original_order=True)
    print(made.code)
    made = split_module(
        gm, None, lambda n: where[n.name], keep_original_input_name=False, partition_affix="part"
    )
    print(made.code)
    for name, child in made.named_children():
        print(name, child.code)


def split_cycle():
    gm = fx.symbolic_trace(lambda a: a.neg().tanh().exp())
    where = {"neg": 0, "tanh": 1, "exp": 0}
    try:
        split_module(gm, None, lambda n: where[n.name])
    except RuntimeError as error:
        print(error)


def replace_add_with_mul(gm):
    modified = False
    for node in gm.graph.nodes:
        if node.op == "call_function" and node.target in (operator.add, torch.add):
            node.target = torch.mul
            modified = True
    return PassResult(gm, modified)


class ReluToSigmoid(PassBase):
    def call(self, graph_module):
        modified = False
        for node in graph_module.graph.nodes:
            if node.target is torch.relu:
                node.target = torch.sigmoid
                modified = True
        return PassResult(graph_module, modified)

    def requires(self, graph_module):
        print("requires")

    def ensures(self, graph_module):
        print("ensures")


def manager():
    gm = fx.symbolic_trace(lambda x: torch.relu(x + 1))
    result = PassManager(passes=[replace_add_with_mul, ReluToSigmoid()])(gm)
    print(type(result).__name__, result.modified, result.graph_module.code)
    again = PassManager(passes=[replace_add_with_mul, ReluToSigmoid()], steps=2)(gm)
    print(again.modified)


def manager_constraints():
    def a(gm):
        return None

    def b(gm):
        return None

    a, b = pass_result_wrapper(a), pass_result_wrapper(b)
    print(a.__name__)
    constraint = this_before_that_pass_constraint(a, b)
    print(constraint(a, b), constraint(b, a))
    pm = PassManager(passes=[b, a], constraints=[constraint])
    pm.validate_constraints if hasattr(pm, "validate_constraints") else None
    gm = fx.symbolic_trace(lambda x: x)
    try:
        print(pm(gm).modified, [f.__name__ for f in pm.passes])
    except Exception as error:
        print(type(error).__name__, error)
    pm = PassManager(passes=[b, a])
    try:
        pm.add_constraint(constraint)
        pm.validate_constraints()
        print("fine")
    except RuntimeError as error:
        print(str(error).split(".")[0])
    pm.solve_constraints()
    print([f.__name__ for f in pm.passes])


def manager_errors():
    gm = fx.symbolic_trace(lambda x: x)

    def wrong(gm):
        return 3

    def failing(gm):
        raise ValueError("no")

    for one in (wrong, failing):
        try:
            PassManager(passes=[one])(gm)
        except Exception as error:
            print(type(error).__name__, str(error).split("\n")[0])

    def check(gm):
        raise ValueError("broken")

    pm = PassManager(passes=[replace_add_with_mul], run_checks_after_each_pass=True)
    pm.add_checks(check)
    try:
        pm(gm)
    except Exception as error:
        print(type(error).__name__, str(error).split("\n")[0])
    try:
        pm.add_checks(lambda a, b: None)
    except Exception as error:
        print(type(error).__name__, error)


def support():
    from rushlight.fx.passes import operator_support as support

    gm = fx.symbolic_trace(TwoLayer())
    modules = dict(gm.named_modules())

    class Mine(support.OperatorSupportBase):
        def is_node_supported(self, submodules, node):
            return node.target is torch.relu

    class Linear(support.OperatorSupport):
        _support_dict = {"torch.nn.modules.linear.Linear": None, "torch.relu": None}

    for node in gm.graph.nodes:
        print(
            node.name,
            Mine().is_node_supported(modules, node),
            support.chain(Mine(), Mine()).is_node_supported(modules, node),
            support.any_chain(Mine()).is_node_supported(modules, node),
            support.create_op_support(lambda m, n: n.op == "output").is_node_supported(
                modules, node
            ),
            support.OpSupports.decline_if_node_in_names({"a"}).is_node_supported(modules, node),
        )


def partitions():
    from rushlight.fx.passes.infra.partitioner import CapabilityBasedPartitioner
    from rushlight.fx.passes.operator_support import OperatorSupportBase

    class Adds(OperatorSupportBase):
        def is_node_supported(self, submodules, node):
            return node.op == "call_function" and node.target is operator.add

    def f(a, b, c):
        d = a + b
        e = d + c
        g = torch.relu(e)
        h = g + a
        return h + b

    gm = fx.symbolic_trace(f)
    partitioner = CapabilityBasedPartitioner(gm, Adds(), allows_single_node_partition=True)
    found = partitioner.propose_partitions()
    print(sorted(sorted(n.name for n in part.nodes) for part in found))
    fused = partitioner.fuse_partitions(found)
    print(fused.code)
    for name, child in fused.named_children():
        print(name, child.code)


def matching():
    from rushlight.fx.passes.utils.matcher_utils import SubgraphMatcher

    gm = fx.symbolic_trace(lambda x: torch.relu(x + 1) * torch.relu(x + 1))
    pattern = fx.symbolic_trace(lambda a: torch.relu(a + 1))
    matches = SubgraphMatcher(pattern.graph).match(gm.graph)
    print(
        len(matches),
        [m.anchors for m in matches],
        [[n.name for n in m.returning_nodes] for m in matches],
    )
    print([[n.name for n in m.placeholder_nodes] for m in matches])


class Functions:
    def is_node_supported(self, submodules, node):
        return node.op == "call_function"


def partitions_side_by_side():
    from rushlight.fx.passes.infra.partitioner import CapabilityBasedPartitioner, Partition

    gm = fx.symbolic_trace(lambda a, b: ((a + 1) * (b + 2), (a - b).relu() + 1))
    partitioner = CapabilityBasedPartitioner(gm, Functions())
    found = partitioner.propose_partitions()
    print([sorted(node.name for node in part.nodes) for part in found])
    fused = partitioner.fuse_partitions(found)
    print(fused.code)
    for name, child in fused.named_children():
        print(name, child.code)
    gm = fx.symbolic_trace(lambda a, b: (a + 1) * (b + 2))
    print(CapabilityBasedPartitioner(gm, Functions()).partition_and_fuse("p_").code)
    part = Partition(3, [node for node in gm.graph.nodes if node.op == "placeholder"])
    print(part, part.size(), part.id)


def supported_dtypes():
    from rushlight.fx.passes.operator_support import OperatorSupport, OpSupports
    from rushlight.fx.passes.tools_common import get_node_target

    gm = fx.symbolic_trace(lambda x, y: (x * y).relu() + 1)
    ShapeProp(gm).propagate(torch.ones(2), torch.ones(2))
    support = OperatorSupport(
        {"_operator.mul": (((torch.float32,),), {}), "relu": (((torch.int64,),), {})}
    )
    for node in gm.graph.nodes:
        if node.op not in ("placeholder", "output"):
            print(node, get_node_target({}, node), support.is_node_supported({}, node))
            print(OpSupports.decline_if_input_dtype(torch.float32).is_node_supported({}, node))


def legalising():
    from rushlight.fx.passes.tools_common import legalize_graph

    graph = fx.Graph()
    x = graph.placeholder("x")
    a = graph.call_function(torch.neg, (x,))
    b = graph.call_function(torch.exp, (a,))
    graph.output(b)
    b.append(a)
    print(legalize_graph(fx.GraphModule(nn.Module(), graph)).code)


def fake_shapes():
    from rushlight._subclasses.fake_tensor import FakeTensorMode
    from rushlight.fx.passes.fake_tensor_prop import FakeTensorProp

    gm = fx.symbolic_trace(TwoLayer())
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    print(FakeTensorProp(gm, mode).propagate(torch.rand(3, 4)).shape)
    print([(node.name, tuple(node.meta["val"].shape)) for node in gm.graph.nodes])


def split_with_tuples():
    gm = fx.symbolic_trace(TwoLayer())
    where = {"a": 0, "relu": 0, "b": 1}
    paths = {}
    made = split_module(gm, None, lambda n: where[n.name], paths, tuple_return=True)
    print(made.code, paths)
    for name, child in made.named_children():
        print(name, child.code)
    made = split_module(gm, None, lambda n: where[n.name], keep_original_node_name=True)
    print(made.submod_1.code)
