"""Dispatch modes see operators below autograd, and may answer for them."""

import pytest
import rushlight as torch
import rushlight.nn.functional as F
from rushlight import nn
from rushlight.utils._python_dispatch import (
    BaseTorchDispatchMode,
    TorchDispatchMode,
    _disable_current_modes,
    _get_current_dispatch_mode,
    _get_current_dispatch_mode_stack,
    _pop_mode_temporarily,
    is_in_torch_dispatch_mode,
)

aten = torch.ops.aten


class Log(TorchDispatchMode):
    def __init__(self, name="", calls=None):
        super().__init__()
        self.name = name
        self.calls = [] if calls is None else calls

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls.append((self.name, func, args, kwargs))
        return func(*args, **(kwargs or {}))

    def names(self):
        return [func.__name__ for _, func, _, _ in self.calls]


def names_of(function):
    with Log() as mode:
        function()
    return mode.names()


def test_operators_have_their_names():
    x = torch.ones(2, 3)
    assert names_of(lambda: x + x * 2) == ["mul.Tensor", "add.Tensor"]
    assert names_of(lambda: x.clone().add_(1)) == ["clone.default", "add_.Tensor"]
    assert names_of(lambda: torch.zeros(2)) == ["zeros.default"]
    assert names_of(lambda: x[:, 1:, None]) == ["slice.Tensor", "unsqueeze.default"]
    assert names_of(lambda: torch.add(x, x, out=torch.empty(2, 3))) == [
        "empty.memory_format",
        "add.out",
    ]
    assert names_of(lambda: x.sum().item())[-1] == "_local_scalar_dense.default"
    assert names_of(lambda: bool(x[0, 0] > 0))[-1] == "_local_scalar_dense.default"


def test_arguments_are_as_little_as_the_call_needs():
    x, y = torch.ones(2, 3), torch.ones(2, 3)
    with Log() as mode:
        torch.add(x, y)
        torch.add(x, 2, alpha=3)
        torch.cat([x, y])
        torch.cat([x, y], dim=1)
        torch.zeros(2, dtype=torch.float64)
    (_, add, args, kwargs), scaled, cat, along, zeros = mode.calls
    assert add is aten.add.Tensor and args[0] is x and args[1] is y and kwargs == {}
    assert scaled[2][1] == 2 and scaled[3] == {"alpha": 3}
    assert type(cat[2][0]) is list and cat[2][0][1] is y and len(cat[2]) == 1
    assert along[2][1] == 1
    assert zeros[2] == ([2],) and zeros[3] == {"dtype": torch.float64}


def test_compositions_are_seen_as_what_they_call():
    x, weight, bias = torch.ones(2, 3), torch.ones(4, 3), torch.ones(4)
    assert names_of(lambda: F.linear(x, weight, bias)) == ["t.default", "addmm.default"]
    assert names_of(lambda: F.linear(x, weight)) == ["t.default", "mm.default"]
    assert names_of(lambda: F.linear(torch.ones(2, 2, 3), weight, bias))[1:] == [
        "view.default",
        "t.default",
        "addmm.default",
        "view.default",
    ]
    assert names_of(lambda: torch.matmul(x, x.t())) == ["t.default", "mm.default"]
    assert names_of(lambda: F.conv2d(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2)))[-1:] == [
        "convolution.default"
    ]
    assert names_of(lambda: torch.softmax(x, 1)) == ["_softmax.default"]


@pytest.mark.parametrize("shape", [(3,), (5, 3), (2, 5, 3), (0, 3)])
@pytest.mark.parametrize("biased", [True, False])
def test_a_layer_gives_the_same_when_it_is_watched(shape, biased):
    layer = nn.Linear(3, 4, bias=biased)
    x = torch.randn(shape, requires_grad=True)
    expected = layer(x)
    expected.sum().backward()
    grads = [x.grad, *(p.grad for p in layer.parameters())]
    x.grad = None
    layer.zero_grad()
    with BaseTorchDispatchMode():
        made = layer(x)
        made.sum().backward()
    torch.testing.assert_close(made, expected)
    for grad, again in zip(grads, [x.grad, *(p.grad for p in layer.parameters())]):
        torch.testing.assert_close(again, grad)


def test_backward_is_seen():
    x = torch.ones(2, 3, requires_grad=True)
    y = torch.ones(3, 4, requires_grad=True)
    loss = (x @ y).sum()
    names = names_of(loss.backward)
    assert names[0] == "ones_like.default"
    assert names.count("mm.default") == 2
    assert torch.equal(x.grad, torch.full((2, 3), 4.0))


def test_a_mode_may_answer():
    class Replace(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func is aten.add.Tensor:
                return torch.full((2,), 7.0)
            out = func(*args, **(kwargs or {}))
            return out + 100 if func.overloadpacket == aten.mul else out

    x = torch.ones(2, requires_grad=True)
    with Replace():
        y, z = x + 1, x * 3
        z.sum().backward()
    assert y.tolist() == [7, 7] and y.requires_grad
    assert z.tolist() == [103, 103]
    assert x.grad.tolist() == [103, 103]  # gradients multiply too


def test_what_modes_see_of_each_other():
    calls = []
    with Log("outer", calls), Log("inner", calls):
        torch.ones(2) + 1
    assert [(name, func.__name__) for name, func, _, _ in calls] == [
        ("inner", "ones.default"),
        ("outer", "ones.default"),
        ("inner", "add.Tensor"),
        ("outer", "add.Tensor"),
    ]
    assert not is_in_torch_dispatch_mode()


def test_the_stack_of_modes():
    with Log("outer") as outer, Log("inner") as inner:
        assert _get_current_dispatch_mode() is inner
        assert _get_current_dispatch_mode_stack() == [outer, inner]
        with _pop_mode_temporarily() as popped:
            assert popped is inner
            torch.ones(1)
        with _disable_current_modes():
            assert not is_in_torch_dispatch_mode()
            torch.ones(1)
        assert _get_current_dispatch_mode_stack() == [outer, inner]
    assert (len(outer.calls), len(inner.calls)) == (1, 0)
    assert _get_current_dispatch_mode() is None


def test_an_error_leaves_the_mode():
    with pytest.raises(RuntimeError), Log():
        torch.mm(torch.ones(2), torch.ones(2))
    assert not is_in_torch_dispatch_mode()

    class Fail(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"), Fail():
        torch.ones(2)
    assert torch.ones(2).tolist() == [1, 1]


def test_results_are_checked():
    class Wrong(TorchDispatchMode):
        def __init__(self, result):
            super().__init__()
            self.result = result

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return self.result

    x = torch.ones(2, 2)
    with pytest.raises(TypeError, match=r"add\(\): argument 'the result of __torch_dispatch__'"):
        with Wrong("text"):
            x + x
    with pytest.raises(RuntimeError, match="gave 1 results, the operator has 2"), Wrong((x,)):
        x.max(0)
    with pytest.raises(TypeError, match="all __torch_dispatch__ handlers returned NotImplemented"):
        with Wrong(NotImplemented):
            x + x


def test_custom_operators_are_seen():
    @torch.library.custom_op("test_dispatch::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    twice.register_autograd(lambda ctx, grad: grad * 2)
    x = torch.ones(2, requires_grad=True)
    with Log() as mode:
        twice(x).sum().backward()
    assert mode.names()[0] == "twice.default"
    assert mode.calls[0][1] is torch.ops.test_dispatch.twice.default
    assert "mul.Tensor" in mode.names()[1:]
    assert x.grad.tolist() == [2, 2]


def test_modes_belong_to_their_thread():
    import threading

    with Log() as mode:
        thread = threading.Thread(target=lambda: torch.ones(2) + 1)
        thread.start()
        thread.join()
    assert mode.calls == []


def test_compiled_functions_are_seen():
    compiled = torch.compile(lambda x: (x + 1).sin())
    x = torch.ones(3)
    with Log() as mode:
        made = compiled(x)
    assert mode.names() == ["add.Tensor", "sin.default"]
    torch.testing.assert_close(made, (x + 1).sin())


def test_calls_that_nobody_sees_stay_as_they_were():
    """A class with a handler exists from here on; calls without its tensors are not opened."""
    x = torch.randn(2, 4, 3, 5).contiguous(memory_format=torch.channels_last)
    before = torch.nn.functional.group_norm(x, 2)

    class Seen(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
            return function(*args, **(kwargs or {}))

    torch.ones(2).as_subclass(Seen)
    after = torch.nn.functional.group_norm(x, 2)
    assert after.stride() == before.stride() == x.stride()
    assert after.equal(before)
