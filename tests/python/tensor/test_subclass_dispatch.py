"""Subclasses with a __torch_dispatch__: they answer for their tensors below autograd."""

import pytest
import rushlight as torch
from rushlight import nn
from rushlight.utils._python_dispatch import (
    TorchDispatchMode,
    return_and_correct_aliasing,
    transform_subclass,
)
from rushlight.utils._pytree import tree_map


class Wrapper(torch.Tensor):
    """Holds a tensor and does what that does."""

    calls = []

    @staticmethod
    def __new__(cls, inner, requires_grad=False):
        return torch.Tensor._make_wrapper_subclass(
            cls,
            inner.size(),
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=inner.device,
            requires_grad=requires_grad,
        )

    def __init__(self, inner, requires_grad=False):
        self.inner = inner

    __torch_function__ = torch._C._disabled_torch_function_impl

    def __repr__(self):
        return f"Wrapper({self.inner.tolist()})"

    def __tensor_flatten__(self):
        return ["inner"], None

    @staticmethod
    def __tensor_unflatten__(tensors, context, outer_size, outer_stride):
        return Wrapper(tensors["inner"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(func.__name__)
        kwargs = kwargs or {}
        unwrap = lambda x: x.inner if isinstance(x, Wrapper) else x  # noqa: E731
        wrap = lambda x: Wrapper(x) if isinstance(x, torch.Tensor) else x  # noqa: E731
        out = func(*tree_map(unwrap, args), **tree_map(unwrap, kwargs))
        return return_and_correct_aliasing(func, args, kwargs, tree_map(wrap, out))


@pytest.fixture(autouse=True)
def no_calls():
    Wrapper.calls.clear()


def test_operators_give_wrappers():
    x = Wrapper(torch.arange(6.0).view(2, 3))
    assert (x.shape, x.dtype, x.device.type, x.stride()) == ((2, 3), torch.float32, "cpu", (3, 1))
    y = (x * 2).t() + 1
    assert type(y) is Wrapper and str(y) == "Wrapper([[1.0, 7.0], [3.0, 9.0], [5.0, 11.0]])"
    assert Wrapper.calls == ["mul.Tensor", "t.default", "add.Tensor"]
    assert type(torch.ones(2, 3) + x) is Wrapper
    assert type(torch.cat([torch.ones(1, 3), x])) is Wrapper
    assert [type(part) for part in x.unbind(0)] == [Wrapper, Wrapper]
    values, places = x.max(1)
    assert (values.inner.tolist(), places.inner.tolist()) == ([2, 5], [2, 2])


def test_numbers_are_read_through_the_class():
    x = Wrapper(torch.tensor([2.5]))
    assert (x.item(), float(x), int(x), bool(x)) == (2.5, 2.5, 2, True)
    assert Wrapper.calls == ["_local_scalar_dense.default"] * 4


def test_in_place_forms_give_the_tensor_itself():
    x = Wrapper(torch.zeros(3))
    assert x.add_(1) is x
    x[1] = 5
    assert x.inner.tolist() == [1, 5, 1]


def test_gradients():
    inner = torch.arange(3.0)
    x = Wrapper(inner, requires_grad=True)
    y = (x * x).sin()
    assert y.requires_grad and type(y) is Wrapper
    y.sum().backward()
    assert type(x.grad) is Wrapper
    torch.testing.assert_close(x.grad.inner, 2 * inner * (inner * inner).cos())
    (again,) = torch.autograd.grad((x * 3).sum(), x)
    assert again.inner.tolist() == [3, 3, 3]


def test_gradients_add_up():
    x = Wrapper(torch.ones(2), requires_grad=True)
    for _ in range(2):
        (x * 2).sum().backward()
    assert x.grad.inner.tolist() == [4, 4]


def test_as_a_parameter():
    layer = nn.Linear(3, 2, bias=False)
    layer.weight = nn.Parameter(Wrapper(torch.ones(2, 3)))
    assert isinstance(layer.weight, nn.Parameter) and isinstance(layer.weight, Wrapper)
    made = layer(torch.ones(1, 3))
    assert made.inner.tolist() == [[3, 3]]
    made.sum().backward()
    assert layer.weight.grad.inner.tolist() == [[1, 1, 1], [1, 1, 1]]


def test_a_class_without_a_function_override_of_its_own():
    class Logged(torch.Tensor):
        calls = []

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            cls.calls.append(func.__name__)
            return super().__torch_dispatch__(func, types, args, kwargs or {})

    assert Logged.__torch_function__ is torch._C._disabled_torch_function_impl
    x = torch.ones(2).as_subclass(Logged)
    y = x * 2 + x
    assert type(y) is torch.Tensor and y.tolist() == [3, 3]
    assert Logged.calls == ["mul.Tensor", "add.Tensor"]


def test_classes_and_modes():
    class Log(TorchDispatchMode):
        calls = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.calls.append((func.__name__, types))
            return func(*args, **(kwargs or {}))

    x = Wrapper(torch.ones(2))
    with Log():
        made = x + 1
    assert Log.calls[0] == ("add.Tensor", (Wrapper,))
    assert made.inner.tolist() == [2, 2]


def test_nobody_answers():
    class Silent(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    x = torch.Tensor._make_subclass(Silent, torch.ones(2))
    with pytest.raises(TypeError, match=r"Multiple dispatch failed for 'aten\.sin\.default'.*Sil"):
        torch.sin(x)


def test_another_thread_meets_the_class():
    import threading

    x, made = Wrapper(torch.ones(2)), []
    thread = threading.Thread(target=lambda: made.append(x + 1))
    thread.start()
    thread.join()
    assert made[0].inner.tolist() == [2, 2]


def test_there_is_no_memory():
    x = Wrapper(torch.ones(2))
    for use in (x.numpy, x.tolist):
        with pytest.raises((NotImplementedError, RuntimeError, TypeError)):
            use()


def test_what_cannot_be_asked_for():
    with pytest.raises(RuntimeError, match="must define __torch_dispatch__"):
        torch.Tensor._make_wrapper_subclass(nn.Parameter, (2,))
    with pytest.raises(NotImplementedError, match="dispatch_device"):
        torch.Tensor._make_wrapper_subclass(Wrapper, (2,), dispatch_device=True)


def test_taken_apart_and_put_together():
    x = Wrapper(torch.ones(2))
    made = transform_subclass(x, lambda name, inner: inner * 3)
    assert type(made) is Wrapper and made.inner.tolist() == [3, 3]
