"""Weak references to tensors, and tensors that change places."""

import gc

import pytest
import rushlight as torch
from rushlight.utils import swap_tensors
from rushlight.utils.weak import (
    TensorWeakRef,
    WeakIdKeyDictionary,
    WeakIdRef,
    WeakTensorKeyDictionary,
)


def test_keys_are_told_by_identity_and_not_kept():
    x, y = torch.ones(2), torch.ones(2)
    table = WeakTensorKeyDictionary()
    table[x], table[y] = 3, 4
    assert table[x] == 3 and table[y] == 4 and len(table) == 2 and x in table
    assert torch.ones(2) not in table and 3 not in table
    with pytest.raises(KeyError):
        table[torch.ones(2)]
    del y
    gc.collect()
    assert [value for _, value in table.items()] == [3] and len(table) == 1


def test_the_rest_of_a_dictionary():
    x, y = torch.ones(2), torch.ones(2)
    table = WeakIdKeyDictionary({x: 1})
    assert table.get(y) is None and table.get(y, 5) == 5
    assert table.setdefault(y, 2) == 2 and list(table.values()) == [1, 2]
    other = table.copy()
    assert other == table and table.pop(y) == 2 and other != table
    assert table.pop(y, 9) == 9 and table.popitem()[1] == 1 and len(table) == 0
    joined = table | other
    assert sorted(joined.values()) == [1, 2] and len(joined.keyrefs()) == 2
    table.update([(x, 8)])
    del table[x]
    assert list(table) == []
    with pytest.raises(TypeError, match="weak reference to 'int'"):
        table[3] = 4


def test_references():
    x = torch.ones(2)
    reference = TensorWeakRef(x)
    assert reference() is x
    assert WeakIdRef(x) == WeakIdRef(x) and hash(WeakIdRef(x)) == id(x)
    assert WeakIdRef(x) != WeakIdRef(torch.ones(2))
    with pytest.raises(AssertionError, match="expected torch.Tensor, got <class 'int'>"):
        TensorWeakRef(3)


def test_tensors_change_places():
    a, b = torch.ones(2), torch.zeros(3, dtype=torch.float64)
    holder, a.note = [a], "first"
    swap_tensors(a, b)
    assert holder[0] is a and a.tolist() == [0, 0, 0] and a.dtype == torch.float64
    assert b.tolist() == [1, 1] and b.note == "first" and not hasattr(a, "note")


def test_parameters_change_places_with_tensors():
    parameter, plain = torch.nn.Parameter(torch.ones(2)), torch.zeros(2)
    parameter.grad = torch.full((2,), 5.0)
    swap_tensors(parameter, plain)
    assert type(parameter) is torch.Tensor and isinstance(plain, torch.nn.Parameter)
    assert plain.requires_grad and plain.grad.tolist() == [5, 5]
    assert not parameter.requires_grad and parameter.grad is None
    (plain * 2).sum().backward()
    assert plain.grad.tolist() == [7, 7]
    view = plain.view(2)
    swap_tensors(parameter, plain)
    assert view.tolist() == [1, 1] and parameter.tolist() == [1, 1]
    del parameter, plain
    gc.collect()


class Slotted(torch.Tensor):
    __slots__ = ("mark",)


def test_mistakes_of_places():
    x = torch.ones(2)
    kept = TensorWeakRef(x)
    with pytest.raises(RuntimeError, match="Cannot swap t1 because it has weakref"):
        swap_tensors(x, torch.ones(2))
    assert kept() is x
    with pytest.raises(RuntimeError, match="if they have different slots"):
        swap_tensors(torch.ones(2).as_subclass(Slotted), torch.ones(2))
    with pytest.raises(TypeError, match="argument 't2' must be Tensor"):
        swap_tensors(torch.ones(2), 3)
    one, other = torch.ones(2).as_subclass(Slotted), torch.zeros(2).as_subclass(Slotted)
    one.mark = 1
    swap_tensors(one, other)
    assert other.mark == 1 and not hasattr(one, "mark")


def test_module_names_and_settings():
    def function():
        pass

    torch.utils.set_module(function, "elsewhere")
    assert function.__module__ == "elsewhere"
    with pytest.raises(TypeError, match="mod argument should be a string"):
        torch.utils.set_module(function, 3)
    settings = torch.utils.deterministic
    assert settings.fill_uninitialized_memory is True
    with pytest.raises(TypeError, match="must be a bool"):
        settings.fill_uninitialized_memory = 3
