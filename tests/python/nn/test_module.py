"""Modules own their members: registration, look-ups, conversions, printing, copies."""

import copy
import pickle

import pytest
import rushlight as torch
from rushlight import nn


def small_net():
    return nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Sequential(nn.Linear(3, 1)))


class Owner(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(2))
        self.register_buffer("seen", torch.zeros(1))
        self.register_buffer("scratch", torch.zeros(1), persistent=False)
        self.inner = nn.Linear(2, 2)

    def forward(self, x):
        return self.inner(x) * self.scale


def test_members_are_listed_with_their_paths():
    module = Owner()
    assert [name for name, _ in module.named_parameters()] == [
        "scale",
        "inner.weight",
        "inner.bias",
    ]
    assert [name for name, _ in module.named_buffers()] == ["seen", "scratch"]
    assert [name for name, _ in module.named_modules()] == ["", "inner"]
    assert [name for name, _ in module.named_parameters("p", recurse=False)] == ["p.scale"]
    assert list(module.children()) == [module.inner]


def test_a_shared_member_is_listed_once():
    layer = nn.Linear(2, 2)
    module = nn.ModuleDict({"a": layer, "b": layer})
    assert [name for name, _ in module.named_parameters()] == ["a.weight", "a.bias"]
    all_names = [name for name, _ in module.named_parameters(remove_duplicate=False)]
    assert all_names == ["a.weight", "a.bias", "b.weight", "b.bias"]
    assert len(list(module.modules())) == 2


def test_assignment_changes_the_kind_of_a_member():
    module = Owner()
    module.scratch = None
    assert module.scratch is None
    assert "scratch" in module._buffers
    module.inner = nn.ReLU()
    assert isinstance(module.inner, nn.ReLU)
    module.seen = nn.Parameter(torch.zeros(1))
    assert "seen" in module._parameters
    assert "seen" not in module._buffers
    module.plain = 3
    assert module.__dict__["plain"] == 3


def test_deleting_a_member_removes_it():
    module = Owner()
    del module.scale
    del module.inner
    del module.seen
    assert [name for name, _ in module.named_parameters()] == []
    with pytest.raises(AttributeError, match="'Owner' object has no attribute 'scale'"):
        _ = module.scale


def test_buffer_class_registers_a_buffer():
    module = nn.Module()
    module.kept = nn.Buffer(torch.ones(2))
    module.dropped = nn.Buffer(torch.ones(2), persistent=False)
    assert [name for name, _ in module.named_buffers()] == ["kept", "dropped"]
    assert list(module.state_dict()) == ["kept"]


def test_submodule_paths():
    net = small_net()
    assert net.get_submodule("2.0") is net[2][0]
    assert net.get_submodule("") is net
    assert net.get_parameter("0.weight") is net[0].weight
    net.set_submodule("2.0", nn.Tanh())
    assert isinstance(net[2][0], nn.Tanh)
    with pytest.raises(AttributeError, match="Sequential has no attribute `7`"):
        net.get_submodule("7")
    with pytest.raises(AttributeError, match="`weight` is not an nn.Module"):
        net.get_submodule("0.weight")
    with pytest.raises(AttributeError, match="`weight` is not a buffer"):
        net.get_buffer("0.weight")


def test_apply_visits_children_first():
    visited = []
    small_net().apply(lambda module: visited.append(type(module).__name__))
    assert visited == ["Linear", "ReLU", "Linear", "Sequential", "Sequential"]


def test_modes_reach_every_module():
    net = small_net().eval()
    assert not any(module.training for module in net.modules())
    net.train()
    assert all(module.training for module in net.modules())


def test_conversion_keeps_the_parameters_identity():
    module = Owner()
    module.register_buffer("count", torch.tensor(3))
    weight = module.inner.weight
    module.double()
    assert module.inner.weight is weight
    assert weight.dtype == torch.float64
    assert module.seen.dtype == torch.float64
    assert module.count.dtype == torch.int64
    module.to(torch.bfloat16)
    assert weight.dtype == torch.bfloat16
    module.to(torch.zeros(1, dtype=torch.float32))
    assert weight.dtype == torch.float32


def test_conversion_takes_the_gradient_along():
    layer = nn.Linear(2, 1)
    layer(torch.ones(1, 2)).sum().backward()
    layer.double()
    assert layer.weight.grad.dtype == torch.float64
    assert layer.weight.grad.tolist() == [[1.0, 1.0]]


def test_to_from_meta_names_the_way_out():
    with pytest.raises(NotImplementedError, match="Please use torch.nn.Module.to_empty"):
        nn.Linear(2, 3, device="meta").to("cpu")


def test_meta_device_makes_new_parameters():
    layer = nn.Linear(2, 3)
    layer.to("meta")
    assert layer.weight.is_meta
    assert layer.weight.shape == (3, 2)
    layer.to_empty(device="cpu")
    assert not layer.weight.is_meta


def test_zero_grad():
    layer = nn.Linear(2, 1)
    layer(torch.ones(1, 2)).sum().backward()
    layer.zero_grad(set_to_none=False)
    assert layer.weight.grad.tolist() == [[0.0, 0.0]]
    layer.zero_grad()
    assert layer.weight.grad is None


def test_requires_grad_is_set_for_all():
    net = small_net().requires_grad_(False)
    assert not any(parameter.requires_grad for parameter in net.parameters())


def test_repr_shows_the_tree():
    assert repr(small_net()) == (
        "Sequential(\n"
        "  (0): Linear(in_features=2, out_features=3, bias=True)\n"
        "  (1): ReLU()\n"
        "  (2): Sequential(\n"
        "    (0): Linear(in_features=3, out_features=1, bias=True)\n"
        "  )\n"
        ")"
    )


def test_dir_lists_members():
    names = dir(Owner())
    assert {"scale", "seen", "inner", "forward"} <= set(names)


def test_deepcopy_and_pickle_give_independent_equals():
    net = small_net()
    x = torch.ones(3, 2)
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert torch.equal(other(x), net(x))
        assert other[0].weight is not net[0].weight
        with torch.no_grad():
            other[0].weight.zero_()
        assert not torch.equal(other[0].weight, net[0].weight)


def test_parameter_is_a_leaf_tensor():
    parameter = nn.Parameter(torch.tensor([1.0, 2.0]))
    assert isinstance(parameter, torch.Tensor)
    assert parameter.requires_grad and parameter.is_leaf
    assert type(parameter + 1) is torch.Tensor
    assert type(parameter.detach()) is torch.Tensor
    assert repr(parameter) == ("Parameter containing:\ntensor([1., 2.], requires_grad=True)")
    assert not nn.Parameter(torch.ones(1), requires_grad=False).requires_grad
    assert nn.Parameter().shape == (0,)


def test_parameter_shares_memory_with_its_tensor():
    data = torch.zeros(2)
    parameter = nn.Parameter(data)
    data[0] = 5.0
    assert parameter.tolist() == [5.0, 0.0]


def test_parameter_copies_and_pickles_as_parameter():
    parameter = nn.Parameter(torch.ones(2))
    for other in (copy.deepcopy(parameter), pickle.loads(pickle.dumps(parameter))):
        assert type(other) is nn.Parameter
        assert other.requires_grad
        assert other.tolist() == [1.0, 1.0]


def test_subclass_without_init_cannot_own():
    class Careless(nn.Module):
        def __init__(self):
            self.layer = nn.Linear(1, 1)

    with pytest.raises(AttributeError, match="cannot assign module before Module.__init__"):
        Careless()


def test_missing_forward_is_named():
    class Empty(nn.Module):
        pass

    with pytest.raises(NotImplementedError, match='Empty.* missing the required "forward"'):
        Empty()(1)


def test_unknown_constructor_arguments():
    with pytest.raises(TypeError, match="unexpected keyword argument 'size'"):
        nn.Module(size=3)
    with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given"):
        nn.Module(3)


@pytest.mark.parametrize(
    ("assign", "error", "text"),
    [
        (
            lambda m: setattr(m, "scale", torch.ones(2)),
            TypeError,
            r"as parameter 'scale' \(torch.nn.Parameter or None expected\)",
        ),
        (
            lambda m: setattr(m, "inner", 3),
            TypeError,
            "cannot assign 'int' as child module 'inner'",
        ),
        (lambda m: setattr(m, "seen", 3), TypeError, "cannot assign 'int' as buffer 'seen'"),
        (lambda m: m.register_buffer("a.b", None), KeyError, "buffer name can"),
        (lambda m: m.register_buffer("forward", None), KeyError, "already exists"),
        (lambda m: m.register_parameter("", None), KeyError, "be empty string"),
        (
            lambda m: m.register_parameter("p", torch.ones(1)),
            TypeError,
            r"\(torch.nn.Parameter or None required\)",
        ),
        (
            lambda m: m.register_parameter("p", nn.Parameter(torch.ones(1)) * 2),
            (TypeError, ValueError),
            "p",
        ),
        (lambda m: m.add_module("x", 3), TypeError, "int is not a Module subclass"),
        (lambda m: m.add_module(3, nn.ReLU()), TypeError, "module name should be a string"),
        (lambda m: m.train("yes"), ValueError, "training mode is expected to be boolean"),
        (
            lambda m: m.to(torch.int64),
            TypeError,
            "only accepts floating point or complex dtypes",
        ),
    ],
)
def test_wrong_members_are_refused(assign, error, text):
    with pytest.raises(error, match=text):
        assign(Owner())
