"""Compiled functions of any Python: values, exceptions, generators, random numbers."""

import asyncio
import pickle

import numpy as np
import pytest
import rushlight as torch
from rushlight import nn


def test_values_end_segments():
    @torch.compile
    def f(x):
        y = x * 2
        if y.sum() > 0:
            y = y + 1
        scale = y[0].item()
        return y * scale, float(y.mean()), str(y), y.tolist(), y.numpy().copy()

    y, mean, text, listed, array = f(torch.ones(2))
    assert y.tolist() == [9, 9] and mean == 3 and "3., 3." in text and listed == [3, 3]
    assert np.array_equal(array, [3, 3])


def test_data_dependent_shapes():
    @torch.compile
    def f(x):
        return x[x > 0].sum() + x.nonzero().shape[0]

    assert f(torch.tensor([1.0, -1.0, 2.0])).item() == 6


def test_random_numbers_are_eager_s():
    def draw():
        torch.manual_seed(3)
        a = torch.rand(3)
        torch.manual_seed(4)
        b = torch.randn(3)
        state = torch.get_rng_state()
        c = torch.nn.functional.dropout(torch.ones(8), 0.5)
        return a, b, c, state, torch.rand(2)

    for eager, compiled in zip(draw(), torch.compile(draw)()):
        assert torch.equal(eager, compiled)


def test_exception_closes_capture():
    x = torch.zeros(2)

    @torch.compile
    def f():
        x.add_(1)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        f()
    assert not torch.compiler.is_compiling()
    assert x.tolist() == [1, 1]


def test_errors_of_operators_are_eager_s():
    @torch.compile
    def f(x):
        return x @ torch.ones(5, 5)

    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        f(torch.ones(2, 3))


def test_errors_that_depend_on_data():
    @torch.compile
    def f(x, index):
        return x[index] + 1

    with pytest.raises(IndexError, match="out of bounds"):
        f(torch.ones(3), torch.tensor([7]))
    assert f(torch.ones(3), torch.tensor([1])).tolist() == [2]


def test_generator():
    @torch.compile
    def count(x):
        sent = yield x + 1
        try:
            yield x * sent
        except ValueError:
            yield x - 1
        return "end"

    generator = count(torch.ones(2))
    assert next(generator).tolist() == [2, 2]
    assert not torch.compiler.is_compiling()
    assert generator.send(3).tolist() == [3, 3]
    assert generator.throw(ValueError()).tolist() == [0, 0]
    with pytest.raises(StopIteration) as stop:
        next(generator)
    assert stop.value.value == "end"


def test_async():
    @torch.compile
    async def add(x):
        y = x + 1
        await asyncio.sleep(0)
        return y * 2

    @torch.compile
    async def stream(x):
        for i in range(2):
            await asyncio.sleep(0)
            yield x + i

    async def main():
        both = await asyncio.gather(add(torch.ones(1)), add(torch.zeros(1)))
        return [t.item() for t in both], [t.item() async for t in stream(torch.zeros(1))]

    assert asyncio.run(main()) == ([4, 2], [0, 1])


def test_pickle_inside():
    @torch.compile
    def f(x):
        return pickle.loads(pickle.dumps(x + 1)) * 2

    assert f(torch.ones(2)).tolist() == [4, 4]


def test_fusion_keeps_the_order_of_draws():
    def f(p):
        x = p * 1
        kept = x.abs().clamp(0, 1).bernoulli()
        return x, kept, x + torch.rand(2)

    found = []
    for function in (f, torch.compile(f)):
        torch.manual_seed(0)
        found.append(function(torch.full((2,), 0.5)))
    assert all(torch.equal(a, b) for a, b in zip(*found))


def test_dropout_draws_in_order():
    def f():
        return torch.randn(3), nn.functional.dropout(torch.ones(8), 0.4), torch.rand(2)

    found = []
    for function in (f, torch.compile(f)):
        torch.manual_seed(0)
        found.append(function())
    assert all(torch.equal(a, b) for a, b in zip(*found))


@pytest.mark.parametrize("backend", ["inductor", "eager"])
def test_code_in_a_file_whose_name_is_not_utf8(backend):
    text = "def program(x):\n    y = x * 2\n    if y.sum() > 0:\n        y = y + 1\n    return y\n"
    space: dict = {}
    exec(compile(text, "\udcff.py", "exec"), space)
    x = torch.ones(3, requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        torch.compile(space["program"], backend=backend)(x).sum().backward()
        space["program"](x).sum().backward()
    assert x.grad.tolist() == [4, 4, 4]
