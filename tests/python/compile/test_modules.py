"""torch.compile of modules: state, attributes, hooks, copies, training."""

import copy
import pickle

import pytest
import rushlight as torch
from rushlight import _C, nn


def segments_of(function):
    """The result of a call, and how many segments ran for it."""
    before = _C._compile_statistics()["segments"]
    result = function()
    return result, _C._compile_statistics()["segments"] - before


def network():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


def test_module():
    module, x = network(), torch.randn(3, 4)
    compiled = torch.compile(module)
    result, segments = segments_of(lambda: compiled(x))
    assert torch.equal(result, module(x)) and segments == 1
    assert compiled._orig_mod is module
    assert isinstance(compiled, nn.Module) and not isinstance(compiled, nn.Sequential)
    assert type(compiled).__name__ == "OptimizedModule"
    assert len(compiled) == 3


def test_module_state():
    module = network()
    compiled = torch.compile(module)
    names = [f"_orig_mod.{name}" for name in module.state_dict()]
    assert list(compiled.state_dict()) == names
    assert [name for name, _ in compiled.named_parameters()] == names
    compiled.load_state_dict(network().state_dict() and compiled.state_dict())
    compiled.eval()
    assert not module.training and not compiled.training
    module.train()
    assert compiled.training


def test_module_attributes():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0
            self.register_buffer("total", torch.zeros(()))

        def forward(self, x):
            self.calls += 1
            self.total += x.sum()
            return x * self.calls

        def reset(self):
            self.calls = 0

    module = Counter()
    compiled = torch.compile(module)
    assert compiled(torch.ones(2)).tolist() == [1, 1]
    assert compiled(torch.ones(2)).tolist() == [2, 2]
    assert module.calls == compiled.calls == 2 and module.total.item() == 4
    compiled.reset()
    assert module.calls == 0
    compiled.extra = 5
    assert module.extra == 5
    del compiled.extra
    assert not hasattr(module, "extra")
    assert "reset" in dir(compiled)
    with pytest.raises(AttributeError, match="missing"):
        compiled.missing


def test_module_copies():
    compiled, x = torch.compile(network()), torch.randn(2, 4)
    for other in (copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled))):
        assert type(other) is type(compiled)
        result, segments = segments_of(lambda other=other: other(x))
        assert torch.equal(result, compiled(x)) and segments == 1
        assert other._orig_mod is not compiled._orig_mod


def test_module_hooks_run_in_capture():
    module = nn.Linear(2, 2)
    seen = []
    module.register_forward_hook(lambda *_: seen.append(torch.compiler.is_compiling()))
    torch.compile(module)(torch.ones(1, 2))
    assert seen == [True]


def test_in_place():
    module, x = network(), torch.randn(3, 4)
    expected = module(x)
    names = list(module.state_dict())
    assert module.compile() is None
    result, segments = segments_of(lambda: module(x))
    assert torch.equal(result, expected) and segments == 1
    assert list(module.state_dict()) == names and isinstance(module, nn.Sequential)
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert segments_of(lambda other=other: other(x))[1] == 0


def test_in_place_with_hooks():
    module = nn.Linear(2, 2)
    module.register_forward_hook(lambda module, args, output: output + 1)
    expected = module(torch.ones(1, 2))
    module.compile()
    assert torch.equal(module(torch.ones(1, 2)), expected)


def test_training_is_eager_s():
    plain = network()
    compiled = torch.compile(copy.deepcopy(plain))
    x, y = torch.randn(16, 4), torch.randn(16, 2)

    def train(module):
        optimizer = torch.optim.AdamW(module.parameters(), lr=0.01)
        losses = []
        for _ in range(5):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(module(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    assert train(plain) == train(compiled)
    for a, b in zip(plain.parameters(), compiled.parameters()):
        assert torch.equal(a, b)


def test_whole_step():
    plain = network()
    other = copy.deepcopy(plain)
    x = torch.randn(5, 4)

    def make(module):
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)

        def step():
            optimizer.zero_grad()
            loss = module(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        return step

    eager, compiled = make(plain), torch.compile(make(other))
    assert [eager().item() for _ in range(4)] == [compiled().item() for _ in range(4)]
