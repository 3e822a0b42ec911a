"""Writes, views and lent memory in compiled functions: what eager would have seen."""

import copy
import pickle

import numpy as np
import pytest
import rushlight as torch
from rushlight import nn


def test_reads_after_writes_of_inputs():
    x = torch.ones(3)

    @torch.compile
    def f():
        x.add_(1)
        first = x[0].item()
        x.mul_(2)
        return first, x.numpy().copy(), x.tolist()

    first, array, listed = f()
    assert first == 2 and array.tolist() == [4, 4, 4] and listed == [4, 4, 4]


def test_views_of_inputs_are_written():
    x = torch.zeros(4)

    @torch.compile
    def f():
        x[1:3].add_(1)
        x[0] = 5
        return x.sum()

    assert f().item() == 7 and x.tolist() == [5, 1, 1, 0]


def test_results_alias_as_in_eager():
    @torch.compile
    def f(x):
        y = x + 1
        return x, y, y[1:], y

    x = torch.zeros(3)
    a, b, c, d = f(x)
    assert a is x and b is d
    b.add_(1)
    assert c.tolist() == [2, 2]


def test_storage_of_captured_inputs():
    x = torch.zeros(2)

    @torch.compile
    def f():
        x.add_(1)
        clone = x.untyped_storage().clone()
        x.add_(1)
        return torch.frombuffer(bytearray(bytes(clone)), dtype=torch.float32), x.data_ptr()

    copied, address = f()
    assert copied.tolist() == [1, 1] and address == x.data_ptr() and x.tolist() == [2, 2]


def test_lent_memory_is_written():
    @torch.compile
    def f(x):
        y = x * 2
        x.numpy()[0] = 100
        z = x * 1
        return y, z

    y, z = f(torch.ones(2))
    assert y.tolist() == [2, 2] and z.tolist() == [100, 1]


def test_data_of_parameters():
    weight = nn.Parameter(torch.ones(2))

    @torch.compile
    def f():
        weight.data.mul_(3)
        weight.data = weight.data + 1
        return weight * 1

    assert f().tolist() == [4, 4] and weight.tolist() == [4, 4]


def test_results_outlive_what_made_them():
    @torch.compile
    def f(x):
        views = [(x + i)[1:] for i in range(3)]
        return views

    views = f(torch.zeros(3))
    assert [view.tolist() for view in views] == [[0, 0], [1, 1], [2, 2]]


# ---- What changes or lends memory ----------------------------------------------------------------

# Each of these, between operators on the same memory, must find and leave what eager would.
TOUCHES = {
    "data_ptr": lambda y, z: y.data_ptr() != 0,
    "numpy": lambda y, z: y.numpy().copy(),
    "write through numpy": lambda y, z: y.numpy().fill(7),
    "numpy of a view": lambda y, z: y[1:].numpy().copy(),
    "asarray": lambda y, z: np.asarray(y).sum(),
    "dlpack": lambda y, z: np.from_dlpack(y).copy(),
    "from_dlpack": lambda y, z: torch.from_dlpack(y).add_(1).sum().item(),
    "untyped_storage": lambda y, z: bytes(y.untyped_storage()),
    "storage fill_": lambda y, z: y.untyped_storage().fill_(0).nbytes(),
    "storage copy_": lambda y, z: y.untyped_storage().copy_(z.untyped_storage()).nbytes(),
    "storage resize_": lambda y, z: (y.untyped_storage().resize_(64), y.untyped_storage().nbytes()),
    "storage item": lambda y, z: y.untyped_storage()[3],
    "typed storage": lambda y, z: list(y.storage()),
    "write a typed storage": lambda y, z: y.storage().__setitem__(0, 5.0),
    "share_memory_": lambda y, z: y.share_memory_().is_shared(),
    "share memory of a storage": lambda y, z: y.untyped_storage().share_memory_().nbytes(),
    "set_ to a tensor": lambda y, z: y.set_(z).tolist(),
    "set_ to a storage": lambda y, z: y.set_(z.untyped_storage(), 1, (2,), (1,)).tolist(),
    "set_ to nothing": lambda y, z: tuple(y.set_().shape),
    "resize_ to less": lambda y, z: y.resize_(2).tolist(),
    "resize_ to the same": lambda y, z: y.resize_(2, 2).tolist(),
    "resize_as_": lambda y, z: y.resize_as_(z[:2]).tolist(),
    "data": lambda y, z: (setattr(y, "data", z), y.tolist()),
    "swap of data": lambda y, z: setattr(y, "data", z.data * 2),
    "tolist": lambda y, z: y.tolist(),
    "deepcopy": lambda y, z: copy.deepcopy(y).tolist(),
    "save": lambda y, z: pickle.loads(pickle.dumps(y)).tolist(),
    "memoryview": lambda y, z: bytes(memoryview(y.numpy())),
    "from_numpy": lambda y, z: torch.from_numpy(y.numpy()).mul_(2).sum().item(),
}


@pytest.mark.parametrize("where", ["a result", "an input that was written"])
@pytest.mark.parametrize("touch", TOUCHES, ids=lambda name: name.replace(" ", "-"))
def test_memory_that_is_touched(touch, where):
    def f(x, z):
        y = x.mul_(2) if where != "a result" else x * 2
        w = y + 1
        found = TOUCHES[touch](y, z)
        if isinstance(found, tuple):
            found = found[-1]
        if where == "a result" or y.numel() == 4:
            y.add_(3)
        return found, w, y, y * 2, z + 0

    results = []
    for function in (f, torch.compile(f)):
        made = function(torch.arange(4.0), torch.arange(4.0) * 10)
        assert not torch.compiler.is_compiling()
        results.append(made)
    (plain, *expected), (compiled, *found) = results
    assert np.array_equal(np.asarray(plain), np.asarray(compiled))
    for a, b in zip(expected, found):
        assert a.shape == b.shape and torch.equal(a, b)


def test_resize_to_more_keeps_what_was_there():
    def f(x):
        y = x * 2
        y.resize_(6)
        y[4:] = 1
        return y + 1, y.untyped_storage().nbytes()

    for function in (f, torch.compile(f)):
        y, size = function(torch.ones(4))
        assert y.tolist() == [3, 3, 3, 3, 2, 2] and size == 24


def test_memory_given_away_is_not_written_early():
    """What was captured before set_ goes to the memory that the tensor had then."""

    def f(x, z):
        y = x.mul_(3)
        y.set_(z)
        y.add_(1)
        return y

    for function in (f, torch.compile(f)):
        x = torch.ones(2)
        kept, z = x.view(2), torch.zeros(2)
        assert function(x, z) is x
        assert kept.tolist() == [3, 3] and z.tolist() == [1, 1] and x.tolist() == [1, 1]


def test_compositions_write_in_place():
    def f(x):
        return x.float_power_(0.5), x * 2

    for function in (f, torch.compile(f)):
        x = torch.full((3,), 4.0, dtype=torch.float64)
        made, twice = function(x)
        assert made is x and x.dtype == torch.float64 and x.tolist() == [2, 2, 2]
        assert twice.tolist() == [4, 4, 4]
