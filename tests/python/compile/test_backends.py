"""Back ends written in Python: what they are given, what may come back, what they may raise."""

import importlib.metadata

import pytest
import rushlight as torch
from rushlight import nn
from rushlight._dynamo.backends.common import aot_autograd


class Recorder:
    """A back end that keeps its graphs and runs them as written."""

    def __init__(self):
        self.graphs = []
        self.inputs = []

    def __call__(self, gm, inputs):
        gm.graph.lint()
        self.graphs.append(gm)
        self.inputs.append(inputs)
        return gm.forward

    def targets(self, number=-1):
        return [
            str(node.target)
            for node in self.graphs[number].graph.nodes
            if node.op == "call_function"
        ]


def test_registry():
    assert "inductor" in torch._dynamo.list_backends()
    assert "eager" not in torch._dynamo.list_backends()
    assert {"eager", "aot_eager"} <= set(torch.compiler.list_backends(exclude_tags=()))
    backend = Recorder()
    backend.__name__ = "recorder"
    assert torch._dynamo.register_backend(backend, name="recorder_by_name") is backend
    assert torch._dynamo.lookup_backend("recorder_by_name") is backend
    assert torch.compile(lambda x: x + 1, backend="recorder_by_name")(torch.ones(1)).item() == 2
    assert len(backend.graphs) == 1

    @torch._dynamo.register_backend(tags=("experimental",))
    def recorder_decorated(gm, inputs):
        return gm.forward

    assert "recorder_decorated" not in torch._dynamo.list_backends()
    assert "recorder_decorated" in torch._dynamo.list_backends(exclude_tags=None)


def test_entry_points(monkeypatch):
    point = importlib.metadata.EntryPoint(
        "from_a_package", "rushlight._dynamo.backends.debugging:eager_noexcept", "x"
    )
    monkeypatch.setattr(
        importlib.metadata, "entry_points", lambda group: [point] if "backends" in group else []
    )
    assert "from_a_package" in torch._dynamo.list_backends()
    assert torch.compile(lambda x: x + 1, backend="from_a_package")(torch.ones(1)).item() == 2


@pytest.mark.parametrize(
    "backend", ["eager", "aot_eager", "eager_noexcept", "eager_debug", "aot_eager_decomp_partition"]
)
def test_debugging_back_ends(backend):
    def f(x):
        y = x.clone()
        y[1:].mul_(3)
        return (y.sin() @ x).sum(), y.max(0), y.split(1)

    x = torch.randn(4, 4)
    eager, compiled = f(x), torch.compile(f, backend=backend)(x)
    assert torch.equal(eager[0], compiled[0])
    assert torch.equal(eager[1].values, compiled[1].values)
    assert all(torch.equal(a, b) for a, b in zip(eager[2], compiled[2]))


def test_graph():
    backend = Recorder()

    @torch.compile(backend=backend)
    def f(x, y):
        return (x + y).relu().sum(dim=-1, keepdim=True)

    x, y = torch.randn(2, 3), torch.randn(3)
    assert torch.equal(f(x, y), (x + y).relu().sum(dim=-1, keepdim=True))
    gm = backend.graphs[0]
    assert isinstance(gm, torch.fx.GraphModule)
    ops = [node.op for node in gm.graph.nodes]
    assert ops == ["placeholder"] * 2 + ["call_function"] * 3 + ["output"]
    assert backend.targets()[0] == "aten.add.Tensor"
    assert [tuple(example.shape) for example in backend.inputs[0]] == [(2, 3), (3,)]
    assert torch.equal(gm(x, y)[0], f(x, y))
    text = gm.print_readable(print_output=False)
    assert '"f32[2, 3]"' in text
    assert "test_backends.py" in text and "code: return (x + y).relu()" in text


def test_called_once_a_structure():
    backend = Recorder()
    f = torch.compile(lambda x, s: x * s, backend=backend)
    for x in (torch.ones(2), torch.zeros(2)):
        f(x, 3.0)
    assert len(backend.graphs) == 1
    assert f(torch.ones(2), 4.0).tolist() == [4, 4]  # another number, another graph
    assert f(torch.ones(3), 4.0).tolist() == [4, 4, 4]
    assert len(backend.graphs) == 3


def test_what_is_kept_is_part_of_the_structure():
    backend = Recorder()
    kept = []

    @torch.compile(backend=backend)
    def f(x, keep):
        y = x + 1
        if keep:
            kept.append(y)
        return y * 2

    f(torch.ones(2), False)
    f(torch.ones(2), True)
    assert len(backend.graphs) == 2
    assert kept[0].tolist() == [2, 2]


def test_writes_and_views():
    backend = Recorder()
    base = torch.zeros(4, 4)
    outside = base[1:3]  # a view that the graph does not make

    @torch.compile(backend=backend)
    def f(x):
        outside.add_(1)
        x.t()[0].copy_(x[2] + 5)
        y = x.reshape(-1)[4:8]
        y.mul_(2)
        return y, x.sum()

    expected = torch.zeros(4, 4)
    expected[1:3] += 1
    expected.t()[0].copy_(expected[2] + 5)
    expected.reshape(-1)[4:8].mul_(2)
    y, total = f(base)
    assert torch.equal(base, expected)
    assert torch.equal(y, expected[1]) and torch.equal(total, expected.sum())
    assert y.untyped_storage().data_ptr() == base.untyped_storage().data_ptr()
    assert "aten.add_.Tensor" in backend.targets()
    assert any(target.startswith("aten.as_strided") for target in backend.targets())


def test_training():
    backend = Recorder()
    plain = nn.Sequential(nn.Linear(3, 5), nn.GELU(), nn.LayerNorm(5), nn.Linear(5, 2))
    other = nn.Sequential(nn.Linear(3, 5), nn.GELU(), nn.LayerNorm(5), nn.Linear(5, 2))
    other.load_state_dict(plain.state_dict())
    compiled = torch.compile(other, backend=backend)
    x, y = torch.randn(6, 3), torch.tensor([0, 1, 0, 1, 1, 0])
    for module in (plain, compiled):
        optimizer = torch.optim.Adam(module.parameters(), lr=0.05)
        for _ in range(3):
            optimizer.zero_grad()
            nn.functional.cross_entropy(module(x), y).backward()
            optimizer.step()
    for a, b in zip(plain.parameters(), other.parameters()):
        assert torch.equal(a, b)
    assert [gm.meta["is_backward"] for gm in backend.graphs] == [False, True]


def test_random_numbers():
    def f():
        torch.manual_seed(1)
        return nn.functional.dropout(torch.ones(20), 0.5) + torch.rand(20)

    assert torch.equal(f(), torch.compile(f, backend=Recorder())())


def test_aot_autograd():
    forward, backward = [], []

    def compiler(into):
        def compile_graph(gm, inputs):
            into.append(gm)
            return gm.forward

        return compile_graph

    backend = aot_autograd(fw_compiler=compiler(forward), bw_compiler=compiler(backward))
    x = torch.randn(3, requires_grad=True)
    torch.compile(lambda x: (x.sin() * x).sum(), backend=backend)(x).backward()
    assert len(forward) == 1 and len(backward) == 1


def test_decompositions():
    seen = []

    def compiler(gm, inputs):
        seen.extend(str(n.target) for n in gm.graph.nodes if n.op == "call_function")
        return gm.forward

    aten = torch.ops.aten
    backend = aot_autograd(
        fw_compiler=compiler, decompositions={aten.silu.default: lambda x: x * x.sigmoid()}
    )
    x = torch.randn(4)
    made = torch.compile(nn.functional.silu, backend=backend)(x)
    assert torch.equal(made, x * x.sigmoid())
    assert "aten.silu.default" not in seen and "sigmoid" not in seen


def test_boxed_callable():
    def backend(gm, inputs):
        def run(args):
            assert isinstance(args, list)
            return gm.forward(*args)

        run._boxed_call = True
        return run

    assert torch.compile(lambda x: x + 1, backend=backend)(torch.ones(1)).item() == 2


def test_changed_graph():
    def swap(gm, inputs):
        for node in gm.graph.nodes:
            if node.target == torch.ops.aten.sin.default:
                node.target = torch.ops.aten.cos.default
        gm.recompile()
        return gm.forward

    x = torch.randn(3)
    assert torch.equal(torch.compile(torch.sin, backend=swap)(x), x.cos())


@pytest.mark.parametrize("change", [False, True])
def test_delegating_to_the_built_in_one(change):
    graphs = []

    def backend(gm, inputs):
        graphs.append(gm)
        if change:
            for node in gm.graph.nodes:
                if node.target == torch.ops.aten.sin.default:
                    node.target = torch.ops.aten.cos.default
            gm.recompile()
        return torch._dynamo.lookup_backend("inductor")(gm, inputs)

    x = torch.randn(3)
    made = torch.compile(lambda x: x.sin() + 1, backend=backend)(x)
    assert torch.equal(made, (x.cos() if change else x.sin()) + 1) and len(graphs) == 1


def test_options_reach_the_back_end():
    got = {}

    def backend(gm, inputs, **kwargs):
        got.update(kwargs)
        return gm.forward

    torch.compile(abs, backend=backend, options={"level": 3})(torch.ones(1))
    assert got == {"options": {"level": 3}}
    got.clear()
    torch.compile(abs, backend=backend, mode="max-autotune")(torch.ones(1))
    assert got == {"mode": "max-autotune"}


def test_results_that_others_hold_are_copied():
    constant = torch.ones(2)

    def backend(gm, inputs):
        return lambda *args: [constant]

    f = torch.compile(lambda x: x + 1, backend=backend)
    a, b = f(torch.zeros(2)), f(torch.zeros(2))
    a.add_(5)
    assert constant.tolist() == [1, 1] and b.tolist() == [1, 1] and a.tolist() == [6, 6]


def test_inputs_given_back_are_copied():
    f = torch.compile(lambda x: x.clone(), backend=lambda gm, inputs: lambda x: (x,))
    x = torch.ones(2)
    f(x).add_(1)
    assert x.tolist() == [1, 1]


def test_suppressed_failure():
    def backend(gm, inputs):
        raise ValueError("no")

    with torch._dynamo.config.patch(suppress_errors=True):
        with pytest.warns(UserWarning, match="back end failed"):
            assert torch.compile(lambda x: x + 1, backend=backend)(torch.ones(1)).item() == 2


def test_views_of_another_dtype():
    backend = Recorder()

    @torch.compile(backend=backend)
    def f(x):
        y = x + 1
        bits = y.view(torch.int32)
        y.mul_(2)
        return bits + 0, y

    bits, y = f(torch.ones(3))
    assert torch.equal(bits, y.view(torch.int32))


def test_list_arguments_and_many_results():
    backend = Recorder()

    @torch.compile(backend=backend)
    def f(x):
        a, b = x.chunk(2)
        values, indices = torch.cat([b, a]).sort(0)
        return torch.stack([values, indices.float()]), x[torch.tensor([1, 0])]

    x = torch.randn(4, 2)
    made, picked = f(x)
    values, indices = torch.cat([x[2:], x[:2]]).sort(0)
    assert torch.equal(made, torch.stack([values, indices.float()]))
    assert torch.equal(picked, x[[1, 0]])


def test_counters():
    from rushlight._dynamo.testing import CompileCounter, CompileCounterWithBackend

    counter = CompileCounter()
    f = torch.compile(lambda x: x.sin() + 1, backend=counter)
    f(torch.ones(2))
    f(torch.ones(2))
    assert (counter.frame_count, counter.op_count) == (1, 2)
    counter = CompileCounterWithBackend("inductor")
    f = torch.compile(lambda x: x.sin() + 1, backend=counter)
    assert torch.equal(f(torch.ones(2)), torch.ones(2).sin() + 1) and len(counter.graphs) == 1


def test_compile_fx():
    from rushlight._inductor.compile_fx import compile_fx

    x = torch.randn(3)
    assert torch.equal(torch.compile(torch.sin, backend=compile_fx)(x), x.sin())


def test_patched_options():
    with torch._inductor.config.patch({"triton.cudagraphs": True, "max_autotune": True}):
        assert torch._inductor.config.triton.cudagraphs and torch._inductor.config.max_autotune
    assert not torch._inductor.config.triton.cudagraphs


def test_nodes_have_fake_tensors():
    seen = []

    def backend(gm, example_inputs):
        seen.extend(node.meta["val"] for node in gm.graph.nodes if node.op != "output")
        return gm.forward

    torch.compile(lambda x: (x.t() * 2).sum(0), backend=backend)(torch.ones(2, 3))
    assert [type(value).__name__ for value in seen] == ["FakeTensor"] * len(seen) and seen
    assert seen[-1].shape == (2,) and str(seen[-1].device) == "cpu"
