"""Checks that programs make, and small questions of PyTorch's insides."""

import pytest
import rushlight as torch
from rushlight.utils._contextlib import _DecoratorContextManager
from rushlight.utils._foreach_utils import _group_tensors_by_device_and_dtype
from rushlight.utils._python_dispatch import is_traceable_wrapper_subclass


def test_assertions():
    torch._assert(True, "fine")
    torch._assert(torch.tensor(True), "fine")
    with pytest.raises(AssertionError, match="not so"):
        torch._assert(False, "not so")
    torch._assert_async(torch.tensor(1))
    with pytest.raises(RuntimeError, match="single nonzero value, but got zero"):
        torch._assert_async(torch.tensor(0))
    with pytest.raises(RuntimeError, match="mine"):
        torch._assert_async(torch.tensor(0), "mine")
    assert torch._shape_as_tensor(torch.ones(2, 3)).tolist() == [2, 3]


def test_checks_raise_their_type():
    torch._check(True)
    for check, error in (
        (torch._check, RuntimeError),
        (torch._check_index, IndexError),
        (torch._check_value, ValueError),
        (torch._check_type, TypeError),
        (torch._check_not_implemented, NotImplementedError),
    ):
        with pytest.raises(error, match="what is wrong"):
            check(False, lambda: "what is wrong")
    with pytest.raises(RuntimeError, match="Expected cond to be True"):
        torch._check(False)
    with pytest.raises(TypeError, match="cond must be a bool"):
        torch._check(torch.tensor(True))
    with pytest.raises(RuntimeError):
        torch._check_is_size(-1)
    torch._check_tensor_all(torch.tensor([True, True]))
    with pytest.raises(RuntimeError, match="Expected cond to be True"):
        torch._check_tensor_all(torch.tensor([True, False]))


class Wrapper(torch.Tensor):
    def __tensor_flatten__(self):
        return [], None

    @staticmethod
    def __tensor_unflatten__(inner, meta, size, stride):
        return None


def test_small_questions():
    assert torch._C._log_api_usage_once("x") is None and torch._C._get_tracing_state() is None
    assert not torch._C._are_functorch_transforms_active()
    seen = []
    torch.vmap(lambda v: seen.append(torch._C._are_functorch_transforms_active()) or v)(
        torch.ones(2)
    )
    assert seen == [True]
    assert not is_traceable_wrapper_subclass(torch.ones(1))
    assert is_traceable_wrapper_subclass(torch.ones(1).as_subclass(Wrapper))
    one, other = torch.ones(1), torch.ones(1).double()
    groups = _group_tensors_by_device_and_dtype([[one, other], [None, one]], with_indices=True)
    assert groups[(one.device, torch.float64)] == ([[other], [one]], [1])
    assert issubclass(torch.no_grad, _DecoratorContextManager)
    assert torch._utils._element_size(torch.float32) == 4
    assert torch._utils._get_device_module("cpu") is torch.cpu
    assert torch._utils._get_available_device_type() is None or torch.accelerator.is_available()
