"""repr of tensors: PyTorch's, character for character."""

import math
import random

import pytest
import rushlight

NAMES = ["bool", "uint8", "int8", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
NAMES += ["complex64", "complex128", "float8_e4m3fn", "float8_e5m2"]


def _values(pick, count, name):
    if name == "bool":
        return [pick.random() < 0.5 for _ in range(count)]
    if "int" in name:
        return [pick.randrange(0, 100) for _ in range(count)]
    kind = pick.randrange(5)
    scale = 10.0 ** pick.randrange(-6, 8)
    reals = []
    for _ in range(count):
        value = pick.gauss(0, 1)
        if kind == 1:
            value *= scale
        elif kind == 2:
            value = round(value * 10)
        elif kind == 3 and pick.random() < 0.3:
            value = pick.choice([math.nan, math.inf, -math.inf, 0.0])
        reals.append(float(value))
    if "complex" in name:
        return [complex(value, -value / 3) for value in reals]
    return reals


@pytest.mark.parametrize("name", NAMES)
def test_repr_equals_pytorchs(name, theirs):
    pick = random.Random(name)
    for _ in range(60):
        shape = [pick.choice([0, 1, 2, 3, 7]) for _ in range(pick.randrange(4))]
        if pick.random() < 0.1:
            shape = [1001]
        options = {
            "precision": pick.choice([2, 4]),
            "threshold": pick.choice([5, 1000]),
            "edgeitems": pick.choice([1, 3]),
            "linewidth": pick.choice([40, 80]),
            "sci_mode": pick.choice([None, None, True, False]),
        }
        values = _values(pick, math.prod(shape), name)
        texts = []
        for library in (rushlight, theirs):
            library.set_printoptions(**options)
            tensor = library.tensor(values, dtype=getattr(library, name)).reshape(shape)
            texts.append(repr(tensor))
            library.set_printoptions(profile="default")
        assert texts[0] == texts[1], (shape, options)


def test_functions_are_named():
    x = rushlight.ones(2, requires_grad=True)
    assert repr(x) == "tensor([1., 1.], requires_grad=True)"
    assert repr(x + 1) == "tensor([2., 2.], grad_fn=<AddBackward0>)"


def test_profiles_change_the_digits():
    try:
        rushlight.set_printoptions(profile="short")
        assert repr(rushlight.tensor([0.12345])) == "tensor([0.12])"
    finally:
        rushlight.set_printoptions(profile="default")
    assert repr(rushlight.tensor([0.12345])) == "tensor([0.1235])"


def test_no_memory_no_numbers():
    meta = rushlight.empty(2, 3, device="meta", dtype=rushlight.int32)
    assert repr(meta) == "tensor(..., device='meta', size=(2, 3), dtype=torch.int32)"


def test_subclasses_print_under_their_name():
    class Mine(rushlight.Tensor):
        pass

    assert repr(rushlight.ones(2).as_subclass(Mine)) == "Mine([1., 1.])"
    parameter = rushlight.nn.Parameter(rushlight.ones(1))
    assert repr(parameter) == "Parameter containing:\ntensor([1.], requires_grad=True)"
