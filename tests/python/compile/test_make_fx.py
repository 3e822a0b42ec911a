"""make_fx: what a call of a function runs, as a graph."""

import pytest
import rushlight as torch
from rushlight import fx, nn
from rushlight.fx.experimental.proxy_tensor import get_proxy_mode, make_fx

aten = torch.ops.aten


def targets(module):
    return [str(n.target) for n in module.graph.nodes if n.op == "call_function"]


def test_the_graph_of_a_function():
    x, y = torch.randn(2, 3), torch.randn(3, 2)
    module = make_fx(lambda x, y: (x @ y).sin() * 2)(x, y)
    assert isinstance(module, fx.GraphModule)
    assert [n.name for n in module.graph.nodes] == ["x_1", "y_1", "mm", "sin", "mul", "output"]
    assert targets(module) == ["aten.mm.default", "aten.sin.default", "aten.mul.Tensor"]
    mm = list(module.graph.nodes)[2]
    assert mm.meta["val"].shape == (2, 2) and mm.meta["tensor_meta"].dtype is torch.float32
    a, b = torch.randn(2, 3), torch.randn(3, 2)
    assert torch.equal(module(a, b), (a @ b).sin() * 2)


def test_structures_of_arguments_and_results():
    def function(d, parts):
        return {"a": d["u"] + parts[0], "b": [parts[1] * 2], "n": 3}

    x = torch.ones(2)
    module = make_fx(function)({"u": x}, [x + 1, x + 2])
    assert [n.name for n in module.graph.nodes][:3] == ["d_1", "parts_1", "parts_2"]
    made = module({"u": x}, [x, x])
    assert made["a"].tolist() == [2, 2] and made["b"][0].tolist() == [2, 2] and made["n"] == 3
    with pytest.raises(ValueError, match="the graph was made for arguments"):
        module({"v": x}, [x, x])


def test_gradients_are_operators_of_the_graph():
    def gradient(x):
        x = x.clone().requires_grad_()
        return torch.autograd.grad((x**3).sum(), x)[0]

    x = torch.randn(4)
    for function in (gradient, torch.func.grad(lambda x: (x**3).sum())):
        module = make_fx(function)(x)
        assert not list(module.buffers())  # nothing of the call is a constant
        y = torch.randn(4)
        torch.testing.assert_close(module(y), 3 * y**2)


def test_parameters_are_attributes():
    layer = nn.Linear(3, 2)
    module = make_fx(layer)(torch.ones(4, 3))
    assert targets(module) == ["aten.t.default", "aten.addmm.default"]
    assert module._param_constant0 is layer.weight
    x = torch.randn(5, 3)
    torch.testing.assert_close(module(x), layer(x))


def test_writes_stay_in_the_graph():
    def function(x):
        y = x.clone()
        y[0] = 1
        y.add_(2)
        return y, y.max(0)

    module = make_fx(function)(torch.zeros(2, 3))
    made, (values, places) = module(torch.full((2, 3), 5.0))
    assert made.tolist() == [[3] * 3, [7] * 3]
    assert values.tolist() == [7] * 3 and places.tolist() == [1] * 3


def test_the_memory_of_an_argument_under_another_name():
    module = make_fx(lambda x: x.data * 2 + x.detach().view(-1)[:2])(torch.ones(2))
    assert module(torch.tensor([3.0, 4.0])).tolist() == [9, 12]
    assert not list(module.buffers())


def test_decompositions():
    table = {aten._softmax.default: lambda x, dim, *_: x.exp() / x.exp().sum(dim, True)}
    x = torch.randn(2, 3)
    module = make_fx(lambda x: torch.softmax(x, 1), decomposition_table=table)(x)
    assert "aten._softmax.default" not in targets(module)
    assert targets(module).count("aten.exp.default") == 2
    torch.testing.assert_close(module(x), torch.softmax(x, 1))


def test_before_dispatch():
    module = make_fx(lambda x: torch.softmax(x, 1), pre_dispatch=True)(torch.ones(2, 3))
    assert targets(module) == ["aten.softmax.int"]


def test_the_mode_that_traces():
    found = []
    make_fx(lambda x: found.append(get_proxy_mode()) or x + 1)(torch.ones(1))
    assert found[0] is not None and get_proxy_mode() is None


def test_mistakes():
    with pytest.raises(AssertionError, match="tracing_mode must be real/fake/symbolic, got bad"):
        make_fx(torch.sin, tracing_mode="bad")
    with pytest.raises(RuntimeError, match="get value out of a tracing tensor"):
        make_fx(lambda x: x * x.sum().item())(torch.ones(2))


def test_numbers_that_compositions_read_are_not_frozen():
    scores, target = torch.randn(4, 3), torch.tensor([0, 2, -100, 1])
    loss = nn.functional.cross_entropy
    module = make_fx(lambda x, y: loss(x, y))(scores, target)
    other = torch.tensor([-100, -100, 1, 1])  # another count of targets that are not left out
    torch.testing.assert_close(module(scores, other), loss(scores, other))

    mask, value = torch.tensor([True, False]), torch.tensor(5.0)
    for function in (
        lambda x, v: x.masked_fill(mask, v),
        lambda x, v: x.clone().masked_fill_(mask, v),
        lambda x, v: x.index_fill(0, torch.tensor([1]), v),
        lambda x, v: x.clone().index_fill_(0, torch.tensor([1]), v),
    ):
        module = make_fx(function)(torch.zeros(2), value)
        again = torch.tensor(7.0)
        assert torch.equal(module(torch.ones(2), again), function(torch.ones(2), again))
    with pytest.raises(RuntimeError, match="get value out of a tracing tensor"):
        make_fx(lambda x, at: x.narrow(0, at, 2))(torch.rand(5), torch.tensor(1))


# ---- Open sizes --------------------------------------------------------------------------------

WEIGHT = torch.rand(3, 5)


@pytest.mark.parametrize(
    ("function", "given", "other"),
    [
        (lambda x: x.view(x.shape[0] * x.shape[1]) + x.shape[0], [(4, 3)], [(5, 6)]),
        (lambda x, y: (x @ y).softmax(-1), [(4, 3), (3, 6)], [(5, 2), (2, 9)]),
        (lambda x: x @ WEIGHT, [(4, 3)], [(7, 3)]),
        (lambda x, y: torch.cat([x, y]).reshape(-1, 2), [(4, 2), (6, 2)], [(5, 2), (9, 2)]),
        (lambda x: x.sum(1) / x.numel(), [(4, 3)], [(2, 5)]),
        (lambda x: x.view(x.shape[0] // 2, 2, -1).mean(2), [(4, 3)], [(10, 7)]),
        (lambda x: x + x.shape[1], [(4, 1)], [(9, 1)]),
    ],
)
def test_open_sizes(function, given, other):
    module = make_fx(function, tracing_mode="symbolic")(*(torch.rand(s) for s in given))
    for sizes in (given, other):
        x = [torch.rand(s) for s in sizes]
        torch.testing.assert_close(module(*x), function(*x))


def test_open_sizes_of_gradients_and_results():
    def gradient(x):
        return torch.autograd.grad((x * x).mean(), x)[0], x.shape[0] * 2

    x = torch.rand(4, 3, requires_grad=True)
    module = make_fx(gradient, tracing_mode="symbolic")(x)
    y = torch.rand(6, 2, requires_grad=True)
    torch.testing.assert_close(module(y), gradient(y))
    assert "sym_size_int * 2" in module.code


def test_sizes_that_the_program_depends_on_are_fixed():
    def branching(x):
        return x.reshape(x.shape[0] * 2) if x.shape[1] == 2 else x.sum()

    module = make_fx(branching, tracing_mode="symbolic")(torch.rand(4, 2))
    assert module(torch.rand(9, 2)).shape == (18,)
    assert "aten.sum" not in module.code and "sym_size.int(x_1, 1)" not in module.code
