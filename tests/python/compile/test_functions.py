"""torch.compile of functions: forms, results of any structure, shapes."""

import pytest
import rushlight as torch
from rushlight import _C, nn


def segments_of(function):
    """The result of a call, and how many segments ran for it."""
    before = _C._compile_statistics()["segments"]
    result = function()
    return result, _C._compile_statistics()["segments"] - before


def chain(x):
    return (x.sin() + 1).exp() * 2


def test_function():
    x = torch.randn(7)
    compiled = torch.compile(chain)
    result, segments = segments_of(lambda: compiled(x))
    assert torch.equal(result, chain(x))
    assert segments == 1
    assert compiled.__name__ == "chain" and compiled.__wrapped__ is chain


@pytest.mark.parametrize("decorator", [torch.compile, torch.compile(), torch.compile(dynamic=True)])
def test_decorator(decorator):
    @decorator
    def f(x, *, scale=2):
        """Documented."""
        return x * scale

    assert f(torch.ones(2), scale=3).tolist() == [3, 3]
    assert f.__doc__ == "Documented."


def test_method():
    class Thing:
        weight = 3

        @torch.compile
        def times(self, x):
            return x * self.weight

    assert Thing().times(torch.ones(2)).tolist() == [3, 3]
    assert torch.compile(Thing().times)(torch.ones(1)).tolist() == [3]


def test_callable_object():
    class Double:
        def __call__(self, x):
            return x + x

    assert torch.compile(Double())(torch.ones(2)).tolist() == [2, 2]


def test_builtin():
    assert torch.equal(torch.compile(torch.sin)(torch.ones(3)), torch.ones(3).sin())


def test_class_compiles_its_calls():
    class Shift(nn.Module):
        def forward(self, x):
            return x + 1

    assert torch.compile(Shift) is Shift
    result, segments = segments_of(lambda: Shift()(torch.ones(2)))
    assert result.tolist() == [2, 2] and segments == 1


def test_results_of_any_structure():
    @torch.compile
    def f(x):
        return {"a": [x + 1, (x * 2,)], "n": 3}, None

    found, nothing = f(torch.ones(2))
    assert found["a"][0].tolist() == [2, 2] and found["a"][1][0].tolist() == [2, 2]
    assert found["n"] == 3 and nothing is None


def test_disable_argument():
    assert torch.compile(chain, disable=True) is chain
    assert torch.compile(disable=True)(chain) is chain


def test_nested_and_recursive():
    @torch.compile
    def inner(x):
        return x + 1

    @torch.compile
    def outer(x, depth):
        return outer(inner(x), depth - 1) if depth else x

    result, segments = segments_of(lambda: outer(torch.zeros(2), 5))
    assert result.tolist() == [5, 5] and segments == 1


def test_new_shapes_make_no_plans():
    compiled = torch.compile(chain)
    compiled(torch.randn(7, 3))
    before = _C._compile_statistics()["plans"]
    for rows in (2, 5, 40):
        x = torch.randn(rows, 3)
        assert torch.equal(compiled(x), chain(x))
    assert _C._compile_statistics()["plans"] == before


def test_deep_chain():
    @torch.compile
    def f(x):
        for _ in range(3000):
            x = x + 1
        return x

    assert f(torch.zeros(2)).tolist() == [3000, 3000]


def test_empty_tensors():
    @torch.compile
    def f(x):
        return x.sin().sum(), (x + 1).max(dim=-1).values, x @ x.mT

    total, largest, product = f(torch.zeros(0, 3))
    assert total.item() == 0 and largest.shape == (0,) and product.shape == (0, 0)
