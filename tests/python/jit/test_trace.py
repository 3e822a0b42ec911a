"""Traces make the calls of one run, for other values and sizes, or say why they cannot."""

import copy
import pickle
import warnings

import pytest
import rushlight as torch
from rushlight import jit, nn
from rushlight.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3)
        self.norm = nn.BatchNorm2d(2)
        self.head = nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.5))
        self.unused = nn.Parameter(torch.ones(1))
        self.register_buffer("scale", torch.full((3,), 2.0), persistent=False)

    def forward(self, x, offset=None):
        batch, _, height, width = x.shape
        y = F.relu(self.norm(self.conv(x))).flatten(2).mean(-1)
        y = self.head(y).view(batch, -1) * self.scale + torch.tensor([1.0, 2.0, 3.0])
        return y if offset is None else y + offset, y[: batch - 1] / (height * width)

    def double(self, x):
        return self.head(x) * 2


def test_a_module():
    torch.manual_seed(0)
    net = Net().eval()
    traced = jit.trace(net, torch.rand(2, 1, 5, 5))
    for shape in ((2, 1, 5, 5), (3, 1, 8, 6), (1, 1, 4, 4)):
        x = torch.rand(shape)
        for ours, wanted in zip(traced(x), net(x)):
            assert ours.shape == wanted.shape and torch.allclose(ours, wanted, atol=1e-6)
    assert isinstance(traced, jit.ScriptModule) and traced.original_name == "Net"
    assert list(traced.state_dict()) == list(net.state_dict())
    assert traced.conv.weight is net.conv.weight and not traced.training
    assert "(conv): Conv2d(original_name=Conv2d)" in repr(traced)
    assert "torch.nn.functional.relu(" in traced.code
    assert [node.op for node in traced.graph.nodes][0] == "placeholder"


def test_gradients_go_through():
    net = nn.Linear(2, 2)
    traced = jit.trace(net, torch.ones(1, 2))
    traced(torch.ones(3, 2)).sum().backward()
    assert torch.equal(net.weight.grad, torch.full((2, 2), 3.0))


def test_a_function_with_structures():
    def f(x, pair, named):
        a, b = torch.split(x, 1)
        return (a + pair[0], b.T @ pair[1][0]), named["k"].max(0).values

    args = (torch.rand(2, 3), (torch.rand(3), [torch.rand(1, 2)]), {"k": torch.rand(4, 2)})
    traced = jit.trace(f, args)
    other = (torch.rand(2, 3), (torch.rand(3), [torch.rand(1, 2)]), {"k": torch.rand(7, 2)})
    (a, b), c = traced(*other)
    (x, y), z = f(*other)
    assert torch.equal(a, x) and torch.equal(b, y) and torch.equal(c, z)
    assert traced.name == "f" and traced.qualified_name == "__torch__.f"
    assert isinstance(traced, jit.ScriptFunction) and jit.script(traced) is traced


def test_sizes_are_computed():
    def f(x):
        half = x.size(0) // 2
        return x[:half].reshape(half * x.shape[1]), torch.zeros(2 + x.size(-1) % 3), -half + x

    traced = jit.trace(f, torch.rand(4, 3))
    x = torch.rand(6, 5)
    for ours, wanted in zip(traced(x), f(x)):
        assert torch.equal(ours, wanted)


def test_writes_are_traced():
    def f(x):
        x.add_(1)
        x[0] = 5
        x *= 2
        return x

    traced = jit.trace(f, torch.zeros(3))
    x = torch.ones(3)
    assert traced(x).tolist() == [10, 4, 4] and x.tolist() == [10, 4, 4]


@pytest.mark.parametrize(
    ("read", "kind"),
    [(lambda x: x if x.sum() > 0 else -x, "boolean"), (lambda x: x * int(x.sum()), "integer"),
     (lambda x: x * x.sum().item(), "number"), (lambda x: x * float(x[0]), "float")],
)  # fmt: skip
def test_values_that_python_reads_warn(read, kind):
    with pytest.warns(jit.TracerWarning, match=f"to a Python {kind} might cause the trace"):
        traced = jit.trace(read, torch.ones(2))
    assert torch.equal(traced(torch.ones(2)), read(torch.ones(2)))


def test_a_branch_is_that_of_the_run():
    with pytest.warns(jit.TracerWarning):
        traced = jit.trace(lambda x: x if x.sum() > 0 else -x, torch.ones(2))
    assert traced(-torch.ones(2)).tolist() == [-1, -1]


def test_other_calls_in_another_run():
    calls = []

    def f(x):
        calls.append(1)
        return x * len(calls)

    with pytest.warns(jit.TracerWarning, match="Output nr 1"):
        with pytest.raises(jit.TracingCheckError, match="Graphs differed across invocations"):
            jit.trace(f, torch.ones(2))
    assert jit.trace(f, torch.ones(2), check_trace=False)(torch.ones(1)).tolist() == [len(calls)]

    def g(x):
        return x if x.shape[0] == 2 else -x

    jit.trace(g, torch.ones(2))
    with pytest.warns(jit.TracerWarning):
        with pytest.raises(jit.TracingCheckError):
            jit.trace(g, torch.ones(2), check_inputs=[torch.ones(3)])


def test_random_calls_warn():
    with pytest.warns(jit.TracerWarning) as caught:
        jit.trace(lambda x: x + torch.rand(2), torch.ones(2))
    texts = [str(one.message) for one in caught]
    assert texts[0].startswith("Trace had nondeterministic nodes. Did you forget call .eval()")
    with pytest.warns(jit.TracerWarning, match="nondeterministic"):
        jit.trace(nn.Dropout(0.5), torch.ones(50))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jit.trace(nn.Dropout(0.5).eval(), torch.ones(50))


def test_results():
    with pytest.raises(RuntimeError, match="Encountering a dict at the output"):
        jit.trace(lambda x: {"a": x}, torch.ones(2))
    made = jit.trace(lambda x: {"a": x}, torch.ones(2), strict=False)
    assert made(torch.ones(1))["a"].tolist() == [1]
    with pytest.warns(jit.TracerWarning, match="Encountering a list at the output"):
        jit.trace(lambda x: [x, x], torch.ones(2))
    with pytest.raises(RuntimeError, match="Only tensors, lists, tuples of tensors"):
        jit.trace(lambda x: 3, torch.ones(2))
    with pytest.raises(RuntimeError, match="didn't return any values"):
        jit.trace(lambda x: None, torch.ones(2))


def test_arguments():
    with pytest.raises(RuntimeError, match="Type 'int' cannot be traced"):
        jit.trace(lambda x, n: x + n, (torch.ones(2), 3))
    with pytest.raises(TypeError, match="example_inputs"):
        jit.trace(lambda x: x)
    with pytest.raises(RuntimeError, match="expected a function or a module"):
        jit.trace(3, torch.ones(2))
    traced = jit.trace(
        lambda x, y: x - y, example_kwarg_inputs={"y": torch.ones(1), "x": torch.ones(1)}
    )
    assert traced(x=torch.tensor([5.0]), y=torch.tensor([3.0])).tolist() == [2]
    with pytest.raises(AttributeError, match="Please use trace_module"):
        jit.trace(Net().double, torch.ones(1, 2))


def test_tensors_that_others_made():
    base = torch.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="Cannot insert a Tensor that requires grad"):
        jit.trace(lambda x: x + base, torch.ones(2))
    fixed = base.detach()
    assert jit.trace(lambda x: x + fixed, torch.ones(2))(torch.ones(2)).tolist() == [3, 3]


def test_is_tracing():
    seen = []

    def f(x):
        seen.append(jit.is_tracing())
        return x + 1

    jit.trace(f, torch.ones(1))
    assert set(seen) == {True, False} and seen[0] and not jit.is_tracing()


def test_several_methods():
    net = Net().eval()
    traced = jit.trace_module(net, {"forward": torch.rand(1, 1, 4, 4), "double": torch.rand(1, 2)})
    x = torch.rand(4, 2)
    assert torch.equal(traced.double(x), net.double(x))
    with pytest.raises(AttributeError):
        traced.nothing


# ---- Files ---------------------------------------------------------------------------------------


@jit.script
def scripted(x, n: int = 2):
    return x * n if float(x.sum()) > 0 else x


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x):
        return self.layer(x) if float(x.sum()) > 0 else x


def test_a_traced_module_in_a_file(tmp_path):
    net = Net().eval()
    with torch.no_grad():
        net.unused.fill_(7)
    traced = jit.trace_module(net, {"forward": torch.rand(2, 1, 5, 5), "double": torch.rand(1, 2)})
    jit.save(traced, tmp_path / "net.pt", _extra_files={"a.txt": "text", "b": b"bytes"})
    extra = {"a.txt": "", "b": ""}
    loaded = jit.load(str(tmp_path / "net.pt"), map_location="cpu", _extra_files=extra)
    assert extra == {"a.txt": b"text", "b": b"bytes"}
    x = torch.rand(3, 1, 6, 7)
    for ours, wanted in zip(loaded(x), net(x)):
        assert torch.allclose(ours, wanted, atol=1e-6)
    assert torch.equal(loaded.double(torch.ones(1, 2)), net.double(torch.ones(1, 2)))
    assert list(loaded.state_dict()) == list(net.state_dict()) and loaded.unused.item() == 7
    assert loaded.original_name == "Net" and loaded.code == traced.code and not loaded.training
    assert isinstance(loaded.conv.weight, nn.Parameter) and loaded.conv.weight.requires_grad
    assert str(loaded.graph) == str(traced.graph)


def test_shared_modules_stay_shared(tmp_path):
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(2, 2)
            self.b = self.a

        def forward(self, x):
            return self.b(self.a(x))

    net = Twice()
    loaded = pickle.loads(pickle.dumps(jit.trace(net, torch.ones(1, 2))))
    assert loaded.a is loaded.b and torch.equal(loaded(torch.ones(1, 2)), net(torch.ones(1, 2)))
    copied = copy.deepcopy(loaded)
    assert copied.a.weight is not loaded.a.weight and torch.equal(copied.a.weight, loaded.a.weight)


def test_functions_and_scripts_in_files(tmp_path):
    def f(x):
        return x[..., 1:] * float("inf") + torch.tensor([1.0])

    jit.trace(f, torch.ones(2)).save(tmp_path / "f.pt")
    assert torch.equal(jit.load(tmp_path / "f.pt")(torch.ones(3)), f(torch.ones(3)))
    jit.save(scripted, tmp_path / "s.pt")
    assert jit.load(tmp_path / "s.pt")(torch.ones(1), n=3).tolist() == [3]
    model = jit.script(Branches())
    model.save(tmp_path / "m.pt")
    loaded = jit.load(tmp_path / "m.pt")
    assert type(loaded).__name__ == "RecursiveScriptModule" and loaded.original_name == "Branches"
    for x in (torch.ones(1, 2), -torch.ones(1, 2)):
        assert torch.equal(loaded(x), model(x))
    assert model.save_to_buffer()[:2] == b"PK"


def test_what_is_not_read(tmp_path):
    import io
    import zipfile

    with pytest.raises(ValueError, match="filename .*nothing does not exist"):
        jit.load(tmp_path / "nothing")
    with pytest.raises(RuntimeError, match="is no archive"):
        jit.load(io.BytesIO(b"text"))
    with zipfile.ZipFile(tmp_path / "theirs.pt", "w") as archive:
        archive.writestr("theirs/constants.pkl", b"")
        archive.writestr("theirs/code/__torch__.py", b"")
    with pytest.raises(
        RuntimeError, match="archive of TorchScript, which PyTorch wrote.*state_dict"
    ):
        jit.load(tmp_path / "theirs.pt")
    torch.save({}, tmp_path / "state.pt")
    with pytest.raises(RuntimeError, match="torch.jit.load: the file is"):
        jit.load(tmp_path / "state.pt")
    with pytest.raises(AttributeError, match="'Linear' object has no attribute 'save_to_buffer'"):
        jit.save(nn.Linear(1, 1), tmp_path / "x.pt")


def mine(x):
    return x + 1


def test_what_is_not_saved():
    torch.fx.wrap
    traced = jit.trace(mine, torch.ones(1))
    assert traced.save_to_buffer()  # what it calls is the library's
    with pytest.raises(pickle.PicklingError, match="is not found under this name"):
        jit.script(lambda x: x).save_to_buffer()
