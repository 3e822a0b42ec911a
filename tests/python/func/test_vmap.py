"""vmap: arguments, results, randomness, and what it refuses."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import rushlight as torch
from rushlight.func import grad, vmap


def double(x, y=None):
    return x * 2


def x():
    return torch.arange(6.0).view(2, 3)


def test_dimensions_in_and_out():
    assert torch.equal(vmap(double)(x()), x() * 2)
    assert torch.equal(vmap(double, in_dims=1)(x()), x().T * 2)
    assert torch.equal(vmap(double, in_dims=-1, out_dims=1)(x()), x() * 2)
    assert torch.equal(torch.vmap(double, out_dims=-1)(x()), x().T * 2)
    pair = vmap(lambda v: (v, v), out_dims=(0, 1))(x())
    assert torch.equal(pair[0], x()) and torch.equal(pair[1], x().T)


def test_trees():
    def add(tree):
        return {"sum": tree["a"] + tree["b"], "same": [tree["a"]]}

    found = vmap(add, in_dims=({"a": 0, "b": None},))({"a": x(), "b": x()[0]})
    assert torch.equal(found["sum"], x() + x()[0])
    assert torch.equal(found["same"][0], x())


def test_what_all_elements_share():
    assert torch.equal(vmap(lambda v: torch.ones(2))(x()), torch.ones(2, 2))
    assert torch.equal(vmap(lambda v: torch.ones(2), out_dims=None)(x()), torch.ones(2))
    assert vmap(lambda v, k: v * k)(x(), k=x()).shape == (2, 2, 3)


@pytest.mark.parametrize("chunk_size", [1, 2, 3, 7])
def test_chunks(chunk_size):
    rows = torch.rand(7, 3)
    found = vmap(lambda v: (v * 2, v.sum()), out_dims=(1, 0), chunk_size=chunk_size)(rows)
    assert torch.equal(found[0], rows.T * 2)
    torch.testing.assert_close(found[1], rows.sum(1))


def test_a_batch_of_none():
    assert vmap(lambda v: v.sum(0) * 2)(torch.ones(0, 2)).shape == (0,)


def test_nested():
    one, other = torch.rand(3), torch.rand(4)
    found = vmap(vmap(torch.mul, (None, 0)), (0, None))(one, other)
    torch.testing.assert_close(found, torch.outer(one, other))


@pytest.mark.parametrize(
    ("arguments", "given", "text"),
    [
        ({"in_dims": 2}, (x(),), r"expected in_dim to satisfy -2 <= in_dim < 2"),
        ({"in_dims": "a"}, (x(),), "expected `in_dims` to be int or a .* got: <class 'str'>"),
        ({"in_dims": (0, 0)}, (x(),), "in_dims is not compatible with the structure of `inputs`"),
        ({"in_dims": (None,)}, (x(),), "vmap: Expected at least one Tensor to vmap over"),
        ({"in_dims": ("a",)}, (x(),), "Got in_dim=a for an input but in_dim must be either"),
        ({}, (3,), "the input is of type <class 'int'>. We cannot vmap over non-Tensor"),
        ({}, (), "got no inputs"),
        ({}, (x(), torch.ones(4)), r"same size in the mapped dimension, got sizes \[2, 4\]"),
        ({"out_dims": "a"}, (x(),), "`out_dims` must be an int, None or a python collection"),
        ({"out_dims": (0, 1)}, (x(),), "out_dims is not compatible with the structure of `outputs"),
        ({"out_dims": None}, (x(),), "can not return a BatchedTensor when out_dim is None"),
    ],
)
def test_mistakes_of_dimensions(arguments, given, text):
    with pytest.raises(ValueError, match=text):
        vmap(double, **arguments)(*given)


def test_mistakes_of_settings_and_results():
    with pytest.raises(RuntimeError, match="Only allowed values for randomness are 'error'"):
        vmap(double, randomness="x")
    with pytest.raises(ValueError, match="chunk_size should be None or greater than 0"):
        vmap(double, chunk_size=0)
    with pytest.raises(ValueError, match="must only return Tensors, got type <class 'int'>"):
        vmap(lambda v: 3)(x())


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda v: v.sum().item(), "calling .item"),
        (lambda v: float(v.sum()), "calling .item"),
        (lambda v: v if v.sum() > 0 else -v, "data-dependent control flow"),
        (lambda v: v.nonzero(), "output dynamic shape. Attempted to vmap over nonzero"),
        (lambda v: v.unique(), "dynamic shape"),
        (lambda v: v[v > 1], "indexing with a boolean mask"),
        (lambda v: v.tolist(), "reads the numbers of a tensor"),
        (lambda v: v.numpy(), "reads the numbers of a tensor"),
        (lambda v: torch.add(v, 1, out=torch.ones(3)), "add with out= is not possible"),
        (lambda v: torch.zeros(3).add_(v), "inplace arithmetic.* is not possible"),
        (lambda v: torch.zeros(3).copy_(v), "inplace arithmetic.* is not possible"),
        (lambda v: v.sum().backward(), r"backward\(\) called inside a functorch transform"),
        (lambda v: v.data, "accessing `data` under vmap transform is not allowed"),
        (lambda v: v.resize_(2), "changes what a tensor is"),
        (lambda v: torch.tensor([v[0], v[1]]), "reads the numbers"),
    ],
)
def test_what_one_of_many_cannot_do(function, text):
    with pytest.raises(RuntimeError, match=text):
        vmap(function)(x())


def test_dimensions_count_within_the_element():
    with pytest.raises(IndexError, match=r"range of \[-1, 0\], but got 1"):
        vmap(lambda v: v.sum(1))(x())


def test_elements_show_their_batch_and_do_not_outlive_it():
    kept = []
    vmap(lambda v: kept.append(v) or v)(x())
    assert repr(kept[0]).startswith("BatchedTensor(lvl=1, bdim=0, value=\n    tensor([[0., 1.")
    assert kept[0].shape == (3,)
    with pytest.raises(RuntimeError, match="escaped from inside a function being vmapped"):
        kept[0] + 1


def test_an_error_inside_leaves_no_level():
    with pytest.raises(ZeroDivisionError):
        vmap(lambda v: 1 / 0)(x())
    assert torch.ones(2).sum().item() == 2


RANDOM = {
    "randn": lambda v: v * 0 + torch.randn(3),
    "rand in a size": lambda v: v * 0 + torch.rand((3,)),
    "randint": lambda v: v * 0 + torch.randint(0, 1000, (3,)),
    "randn_like": lambda v: torch.randn_like(v),
    "randperm": lambda v: v * 0 + torch.randperm(1000)[:3],
    "dropout": lambda v: torch.dropout(torch.ones(40) + v[0] * 0, 0.5, True),
    "normal_": lambda v: torch.zeros_like(v).normal_(),
    "uniform_": lambda v: v.clone().uniform_(),
}


@pytest.mark.parametrize("name", RANDOM)
def test_randomness(name):
    with pytest.raises(RuntimeError, match="called random operation while in randomness error"):
        vmap(RANDOM[name])(x())
    one, other = vmap(RANDOM[name], randomness="same")(x())
    assert torch.equal(one, other)
    one, other = vmap(RANDOM[name], randomness="different")(x())
    assert not torch.equal(one, other)


def test_randomness_that_cannot_be():
    with pytest.raises(RuntimeError, match="same randomness with a batched tensor input"):
        vmap(torch.bernoulli, randomness="same")(torch.full((2, 3), 0.5))
    with pytest.raises(RuntimeError, match="different inplace randomness on an unbatched tensor"):
        vmap(lambda v: torch.empty(2).normal_(), randomness="different")(x())
    drawn = vmap(torch.bernoulli, randomness="different")(torch.full((2, 100), 0.5))
    assert not torch.equal(drawn[0], drawn[1])


def test_dropout_that_does_not_train_draws_nothing():
    assert torch.equal(vmap(lambda v: torch.dropout(v, 0.5, False))(x()), x())


def test_randomness_same_in_chunks():
    found = vmap(RANDOM["randn"], randomness="same", chunk_size=1)(x())
    assert torch.equal(found[0], found[1])


def test_gradients_pass_through():
    rows = torch.rand(3, 4, requires_grad=True)
    weight = torch.rand(4, requires_grad=True)
    vmap(lambda row: torch.dot(row, weight).sin())(rows).sum().backward()
    wanted = (rows @ weight).sin().sum()
    expected = torch.autograd.grad(wanted, (rows, weight))
    torch.testing.assert_close(rows.grad, expected[0])
    torch.testing.assert_close(weight.grad, expected[1])


class Scale(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(value, factor):
        return value * factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.factor * 10, None


class OwnRule(Scale):
    generate_vmap_rule = False

    @staticmethod
    def vmap(info, in_dims, value, factor):
        assert info.batch_size == 2 and info.randomness == "error"
        assert in_dims == (0, None)
        return Scale.apply(value, factor), 0


class NoRule(Scale):
    generate_vmap_rule = False


class Old(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        return value


@pytest.mark.parametrize("function", [Scale, OwnRule])
def test_custom_functions(function):
    assert torch.equal(vmap(function.apply, (0, None))(x(), 2), x() * 2)
    found = vmap(grad(lambda v: function.apply(v, 2).sum()))(x())
    assert torch.equal(found, torch.full((2, 3), 20.0))


def test_custom_functions_without_a_rule():
    with pytest.raises(RuntimeError, match="vmap over NoRule, but it does not have vmap support"):
        vmap(NoRule.apply, (0, None))(x(), 2)
    with pytest.raises(RuntimeError, match="must override the setup_context staticmethod"):
        vmap(Old.apply)(x())


def test_rows_of_gradients():
    value = torch.rand(3, requires_grad=True)
    rows = torch.eye(3)
    result = value**2
    (found,) = torch.autograd.grad(result, value, rows, is_grads_batched=True, retain_graph=True)
    torch.testing.assert_close(found, torch.diag(2 * value.detach()))
    found = vmap(lambda row: torch.autograd.grad(result, value, row, retain_graph=True)[0])(rows)
    torch.testing.assert_close(found, torch.diag(2 * value.detach()))


def test_threads_have_levels_of_their_own():
    x = torch.randn(8, 5)

    def nested(x):
        return torch.vmap(torch.vmap(lambda a, b: a * b.sin(), (0, None)), (None, 0))(x[0], x[1])

    want = nested(x)
    with ThreadPoolExecutor(4) as pool:
        for got in pool.map(nested, [x] * 200):
            assert torch.equal(got, want)
