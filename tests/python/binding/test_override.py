"""__torch_function__ of classes and modes."""

import copy
import inspect
import pickle

import pytest
import rushlight as torch
from rushlight import Tensor
from rushlight.nn import functional as F
from rushlight.overrides import (
    TorchFunctionMode,
    get_overridable_functions,
    handle_torch_function,
    has_torch_function,
    is_tensor_like,
    is_tensor_method_or_property,
    resolve_name,
    wrap_torch_function,
)


class Kept(Tensor):
    pass


class Logged(Tensor):
    calls: list = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(func)
        return super().__torch_function__(func, types, args, kwargs or {})


class Duck:
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return ("duck", func, args, kwargs)


class Unwilling:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


def test_results_have_the_class_of_the_arguments():
    x = torch.ones(2).as_subclass(Kept)
    assert type(x + 1) is Kept
    assert type(1 + x) is Kept
    assert type(x.sum()) is Kept
    assert all(type(part) is Kept for part in x.unbind(0))
    assert type(torch.max(x.view(1, 2), 0).values) is Kept
    assert type(x.shape) is torch.Size


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda x: torch.add(x, 1), "add"),
        (lambda x: x.add(1), "add"),
        (lambda x: x + 1, "add"),
        (lambda x: x.sum(), "sum"),
        (lambda x: x.dim(), "dim"),
        (lambda x: x.to(torch.float64), "to"),
    ],
)
def test_functions_methods_and_operators_ask_the_class(call, name):
    x = torch.ones(2).as_subclass(Logged)
    Logged.calls = []
    call(x)
    assert [function.__name__ for function in Logged.calls] == [name]


def test_properties_ask_the_class():
    x = torch.ones(2).as_subclass(Logged)
    Logged.calls = []
    assert x.shape == (2,)
    assert Logged.calls == [Tensor.shape.__get__]


def test_any_class_may_override():
    duck = Duck()
    kind, function, args, kwargs = torch.add(torch.ones(2), duck, alpha=2)
    assert (kind, function, kwargs) == ("duck", torch.add, {"alpha": 2})
    assert args[1] is duck
    assert torch.cat([torch.ones(2), duck])[0] == "duck"


def test_where_all_decline_the_call_fails():
    with pytest.raises(TypeError, match="returned NotImplemented"):
        torch.add(torch.ones(2), Unwilling())


def test_subclasses_are_asked_before_their_bases():
    order = []

    class Base(Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            order.append(cls.__name__)
            return NotImplemented

    class Derived(Base):
        pass

    x, y = torch.ones(1).as_subclass(Base), torch.ones(1).as_subclass(Derived)
    with pytest.raises(TypeError):
        torch.add(x, y)
    assert order == ["Derived", "Base"]


def test_a_disabled_class_counts_as_plain():
    class Plain(Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

    x = torch.ones(2).as_subclass(Plain)
    assert type(x + 1) is Tensor
    assert not has_torch_function((x,))


def test_disabling_contexts():
    x = torch.ones(2).as_subclass(Logged)
    Logged.calls = []
    with torch._C.DisableTorchFunctionSubclass():
        assert type(x + 1) is Tensor
    assert Logged.calls == []


class Counting(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))


def test_a_mode_sees_every_call():
    with Counting() as mode:
        torch.ones(2) + 1
    assert mode.names == ["ones", "add"]
    torch.ones(2)
    assert mode.names == ["ones", "add"]


def test_modes_nest_inner_first():
    with Counting() as outer, Counting() as inner:
        torch.ones(2)
    assert inner.names == outer.names == ["ones"]


def test_a_mode_leaves_after_an_exception():
    class Failing(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"), Failing():
        torch.ones(2)
    assert torch.ones(2).shape == (2,)


def test_device_contexts_are_modes():
    with torch.device("meta"):
        assert torch.ones(2).is_meta
    assert torch.ones(2).is_cpu
    torch.set_default_device("meta")
    try:
        assert torch.zeros(2).is_meta
    finally:
        torch.set_default_device(None)
    assert torch.zeros(2).is_cpu


def test_python_functions_can_join():
    @wrap_torch_function(lambda a, b: (a, b))
    def both(a, b):
        return "plain"

    assert both(1, 2) == "plain"
    assert both(1, Duck())[0] == "duck"
    assert handle_torch_function(both, (Duck(),), 1, Duck())[0] == "duck"


def test_questions_about_objects_and_functions():
    assert is_tensor_like(Duck()) and is_tensor_like(torch.ones(1)) and not is_tensor_like(1)
    assert is_tensor_method_or_property(Tensor.add)
    assert not is_tensor_method_or_property(torch.add)
    assert resolve_name(torch.add) == "rushlight.add"
    assert resolve_name(Tensor.add) == "rushlight.Tensor.add"
    assert torch.add in get_overridable_functions()[torch]


def test_functions_of_nn_functional_are_asked_as_a_whole():
    duck = Duck()
    assert F.relu(duck) == ("duck", F.relu, (duck,), {"inplace": False})
    found = F.softmax(duck, -1)
    assert found[1:3] == (F.softmax, (duck,)) and found[3]["dim"] == -1
    _, func, args, kwargs = F.mse_loss(input=duck, target=torch.ones(1))
    assert func is F.mse_loss and args == (duck, torch.ones(1)) and kwargs["reduction"] == "mean"
    for name in ("cross_entropy", "embedding", "layer_norm", "kl_div", "pad", "dropout2d"):
        whole = getattr(F, name)
        parameters = inspect.signature(whole).parameters.values()
        required = sum(parameter.default is parameter.empty for parameter in parameters)
        assert whole(*[duck] * required)[1:3] == (whole, (duck,) * required)


def test_handlers_registered_by_function_of_nn_functional():
    handled = {F.mse_loss: lambda a, b, **options: "mse", F.gelu: lambda x, **options: "gelu"}

    class Handler:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return handled[func](*args, **(kwargs or {})) if func in handled else NotImplemented

    assert F.mse_loss(Handler(), Handler()) == "mse"
    assert F.gelu(Handler()) == "gelu"
    with pytest.raises(TypeError, match="relu"):
        F.relu(Handler())


def test_a_mode_sees_functions_of_nn_functional_and_not_what_they_call():
    seen = []

    class Log(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    x = torch.zeros(2)
    with Log():
        F.huber_loss(x, x)
    assert seen == [F.huber_loss]


def test_functions_of_nn_functional_are_functions():
    assert F.relu.__name__ == "relu" and F.relu.__module__ == "rushlight.nn.functional"
    assert str(inspect.signature(F.softsign)) == "(input: 'Tensor') -> 'Tensor'"
    assert pickle.loads(pickle.dumps(F.relu)) is F.relu is copy.deepcopy(F.relu)
    assert F.relu.__doc__ and repr(F.relu).startswith("<function relu at")
    bound = type("Model", (), {"act": F.relu, "loss": staticmethod(F.mse_loss)})()
    assert bound.act.__self__ is bound
    assert bound.loss(torch.zeros(2), torch.ones(2)).item() == 1
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'input'"):
        F.relu()
    with torch.device("meta"):
        assert F.relu(torch.ones(2)).is_meta


def test_as_subclass_is_not_asked():
    x = torch.ones(2).as_subclass(Logged)
    assert type(x.as_subclass(Tensor)) is Tensor and type(x.as_subclass(Kept)) is Kept


def test_names_of_functions_that_are_not_asked():
    assert resolve_name(torch.ones) == "rushlight.ones"
    assert resolve_name(F.gelu) == "rushlight.nn.functional.gelu"


def test_device_contexts_reach_every_factory():
    from rushlight.utils._device import set_device

    with torch.device("meta"):
        made = [torch.fft.fftfreq(3), torch.hann_window(3), torch.normal(0.0, 1.0, (2,))]
        made.append(torch.tensor([1.0]))
    assert [tensor.device.type for tensor in made] == ["meta"] * 4

    @set_device("meta")
    def zeros():
        return torch.zeros(3)

    assert zeros().is_meta and torch.zeros(3).is_cpu


def test_a_mode_is_taken_off_for_a_block():
    from rushlight.overrides import TorchFunctionMode, _pop_mode_temporarily

    class Count(TorchFunctionMode):
        calls = 0

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.calls += 1
            return func(*args, **(kwargs or {}))

    with Count() as mode:
        with _pop_mode_temporarily() as popped:
            assert popped is mode
            torch.ones(2)
        torch.ones(2)
    assert mode.calls == 1
