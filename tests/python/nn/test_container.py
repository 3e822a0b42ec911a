"""Lists and dictionaries of modules and parameters."""

from collections import OrderedDict

import pytest
import rushlight as torch
from rushlight import nn


def chain():
    return nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))


def kinds(container):
    return [type(module).__name__ for module in container]


def test_sequential_runs_in_order():
    net = nn.Sequential(nn.Flatten(0), nn.ReLU())
    assert net(torch.tensor([[-1.0, 2.0]])).tolist() == [0.0, 2.0]


def test_sequential_from_ordered_dictionary_keeps_names():
    net = nn.Sequential(OrderedDict(first=nn.ReLU(), second=nn.Tanh()))
    assert [name for name, _ in net.named_children()] == ["first", "second"]
    assert isinstance(net.second, nn.Tanh)


def test_sequential_indexing():
    net = chain()
    assert net[-1] is net[2]
    assert kinds(net[1:]) == ["ReLU", "Linear"]
    net[1] = nn.Tanh()
    del net[0]
    assert kinds(net) == ["Tanh", "Linear"]
    assert list(net._modules) == ["0", "1"]
    with pytest.raises(IndexError, match="index 5 is out of range"):
        net[5]


def test_sequential_edits():
    net = chain().append(nn.Tanh()).insert(0, nn.Sigmoid())
    assert kinds(net) == ["Sigmoid", "Linear", "ReLU", "Linear", "Tanh"]
    assert isinstance(net.pop(0), nn.Sigmoid)
    net.extend([nn.ReLU()])
    assert kinds(net) == ["Linear", "ReLU", "Linear", "Tanh", "ReLU"]


def test_sequential_arithmetic():
    net = nn.Sequential(nn.ReLU())
    assert kinds(net + nn.Sequential(nn.Tanh())) == ["ReLU", "Tanh"]
    assert kinds(2 * net) == ["ReLU", "ReLU"]
    net *= 3
    assert len(net) == 3
    with pytest.raises(ValueError, match="Non-positive multiplication factor 0"):
        net * 0


def test_module_list():
    layers = nn.ModuleList([nn.Linear(1, 1), nn.ReLU()])
    layers.append(nn.Tanh())
    layers.insert(1, nn.Sigmoid())
    assert kinds(layers) == ["Linear", "Sigmoid", "ReLU", "Tanh"]
    assert kinds(layers[1:3]) == ["Sigmoid", "ReLU"]
    assert [name for name, _ in layers.named_parameters()] == ["0.weight", "0.bias"]
    del layers[0]
    assert list(layers._modules) == ["0", "1", "2"]
    with pytest.raises(TypeError, match="should be called with an iterable, but got int"):
        layers.extend(3)


def test_module_list_prints_equal_neighbours_once():
    layers = nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Tanh()])
    assert repr(layers) == "ModuleList(\n  (0-1): 2 x ReLU()\n  (2): Tanh()\n)"
    assert repr(nn.ModuleList()) == "ModuleList()"


def test_module_dict():
    layers = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})
    layers["c"] = nn.Linear(1, 1)
    layers.update([("d", nn.Sigmoid())])
    assert list(layers) == ["a", "b", "c", "d"]
    assert "c" in layers and len(layers) == 4
    assert isinstance(layers.pop("a"), nn.ReLU)
    with pytest.raises(KeyError):
        layers["a"]
    with pytest.raises(ValueError, match="sequence element #0 has length 3; 2 is required"):
        layers.update([("a", 1, 2)])


def test_parameter_list_makes_parameters():
    values = nn.ParameterList([torch.ones(2), torch.zeros(1)])
    values.append(torch.ones(3))
    assert all(isinstance(value, nn.Parameter) for value in values)
    assert [name for name, _ in values.named_parameters()] == ["0", "1", "2"]
    assert values[-1].shape == (3,)
    assert len(values[1:]) == 2
    assert repr(nn.ParameterList([torch.ones(2)])) == (
        "ParameterList(  (0): Parameter containing: [torch.float32 of size 2])"
    )
    with pytest.raises(RuntimeError, match="ParameterList should not be called"):
        values()


def test_parameter_dict():
    values = nn.ParameterDict({"b": torch.ones(1), "a": torch.zeros(1)})
    assert list(values) == ["a", "b"]
    values["c"] = torch.ones(2)
    assert values.pop("a").tolist() == [0.0]
    assert values.popitem()[0] == "c"
    assert values.get("missing") is None
    both = values | nn.ParameterDict({"z": torch.ones(1)})
    assert list(both) == ["b", "z"]
    assert list(both.state_dict()) == ["b", "z"]
