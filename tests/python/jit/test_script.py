"""Scripted functions and modules give what eager gives."""

import copy
from typing import Optional

import pytest
import rushlight as torch
from rushlight import jit, nn


@jit.script
def gated(x, scale: float = 2.0, parts: list[int] | None = None):
    """Doubles or halves."""
    if float(x.sum()) > 0:
        x = x * scale
    else:
        x = x / scale
    for n in parts or []:
        x = x + n
    return x.sigmoid() * x.tanh()


def test_a_function():
    assert type(gated) is jit.ScriptFunction and jit.script(gated) is gated
    assert gated.name == "gated" and gated.__doc__ == "Doubles or halves."
    assert gated.qualified_name.endswith("test_script.gated") and "x.sigmoid()" in gated.code
    for sign in (1, -1):
        x = sign * torch.rand(5)
        y = (x * 2 if sign > 0 else x / 2) + 3
        assert torch.equal(gated(x, parts=[1, 2]), y.sigmoid() * y.tanh())
    x = torch.rand(3, requires_grad=True)
    gated(x).sum().backward()
    assert x.grad.shape == (3,)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])
        self.drop = nn.Dropout(0.5)
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        for layer in self.layers:
            x = self.drop(layer(x).relu())
        self.seen += 1
        return x

    @jit.export
    def twice(self, x):
        return self.forward(self.forward(x))

    @jit.ignore
    def note(self, x):
        return x

    @jit.unused
    def other(self, x):
        return x


def test_a_module_shares_what_it_has():
    net = Net()
    made = jit.script(net)
    assert isinstance(made, jit.ScriptModule) and isinstance(made, jit.RecursiveScriptModule)
    assert made.original_name == "Net" and jit.script(made) is made
    assert made.layers[0].weight is net.layers[0].weight
    assert list(made.state_dict()) == list(net.state_dict())
    made.eval()
    net.eval()
    x = torch.randn(3, 4)
    assert torch.equal(made(x), net(x)) and torch.equal(made.twice(x), net.twice(x))
    assert made.seen.item() == 6 and made.note(3) == made.other(3) == 3
    made(x.requires_grad_()).sum().backward()
    assert net.layers[0].weight.grad is not None
    assert copy.deepcopy(made).original_name == "Net"
    assert "original_name=Net" in repr(made)


def test_freezing():
    net = Net()
    with pytest.raises(RuntimeError, match="Freezing expects a ScriptModule"):
        jit.freeze(net)
    with pytest.raises(RuntimeError, match="modules in eval mode"):
        jit.freeze(jit.script(net))
    frozen = jit.freeze(jit.script(net.eval()))
    x = torch.randn(2, 4)
    assert torch.equal(frozen(x), net(x))
    assert not any(p.requires_grad for p in frozen.parameters())
    assert all(p.requires_grad for p in net.parameters())


def test_types():
    assert jit.isinstance([1, 2], list[int]) and not jit.isinstance([1, "a"], list[int])
    assert jit.isinstance({"a": [1.0]}, dict[str, list[float]])
    assert jit.isinstance((1, "a"), tuple[int, str]) and not jit.isinstance((1,), tuple[int, str])
    assert jit.isinstance(None, Optional[int])  # noqa: UP045
    assert jit.isinstance(2, (str, int))
    assert jit.annotate(list[int], [3]) == [3] and jit.Attribute(1, int).type is int
    assert jit.annotations.BroadcastingList2[int] is None


def test_what_has_no_effect_and_what_is_refused():
    assert not jit.is_scripting() and not jit.is_tracing()
    assert jit.script_if_tracing(lambda x: x + 1)(1) == 2
    assert jit.wait(jit.fork(lambda x, y: x - y, 5, y=2)) == 3
    assert jit.ignore(drop=True)(len) is len
    before = jit.set_fusion_strategy([("STATIC", 1)])
    assert jit.set_fusion_strategy(before) == [("STATIC", 1)]
    with pytest.raises(RuntimeError, match="interface must be applied to a class"):
        jit.interface(3)
    with pytest.raises(RuntimeError, match="expected a function, a module or a class, got"):
        jit.script(3)
    with pytest.raises(RuntimeError, match="must be a bool or a function"):
        jit.ignore(drop=3)


def test_distributed_says_that_it_is_absent():
    distributed = torch.distributed
    assert not distributed.is_available() and not distributed.is_initialized()
    with pytest.raises(RuntimeError, match="built without distributed training; back end 'gloo'"):
        distributed.init_process_group("gloo")
    for needs_group in (distributed.get_rank, distributed.get_world_size, distributed.barrier):
        with pytest.raises(ValueError, match="Default process group has not been initialized"):
            needs_group()
    assert distributed.ReduceOp.MAX > distributed.ReduceOp.SUM
