"""Signatures as inspect and help show them, and the arguments that they promise."""

from __future__ import annotations

import inspect

import pytest
import rushlight as torch


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (torch.get_default_dtype, "()"),
        (torch.is_grad_enabled, "()"),
        (torch.initial_seed, "()"),
        (torch.set_rng_state, "(new_state)"),
        (torch.Generator, "(device=None)"),
        (torch.Generator().manual_seed, "(seed)"),
        (torch.Generator().clone_state, "()"),
        (torch.Tensor.is_pinned, "(self, device=None)"),
        (torch.Tensor.dim_order, "(self, *, ambiguity_check=False)"),
        (torch.Tensor.as_subclass, "(self, cls)"),
        (torch.Tensor.__add__, "(self, other)"),
        (torch.Tensor.__rpow__, "(self, other)"),
        (torch.enable_grad, "(orig_func: 'Callable | None' = None) -> 'None'"),
    ],
)
def test_inspect(function, wanted):
    assert str(inspect.signature(function)).replace("($self", "(self").replace("/, ", "") == wanted


@pytest.mark.parametrize(
    ("function", "first"),
    [
        (torch.div, "div(input, other, *, rounding_mode=None, out=None) -> Tensor"),
        (torch.split_copy, "split_copy(input, split_size, dim=0, *, out=None) -> Tensor[]"),
        (torch.fft.fft2, "fft2(input, s=None, dim=(-2, -1), norm=None, *, out=None) -> Tensor"),
        (torch.Tensor.copy_, "copy_(other, non_blocking=False) -> Tensor"),
        (
            torch.avg_pool1d,
            "avg_pool1d(input, kernel_size, stride=(), padding=0, ceil_mode=False, "
            "count_include_pad=True) -> Tensor",
        ),
    ],
)
def test_help_of_operators(function, first):
    assert function.__doc__.splitlines()[0] == first


def test_overloads_that_need_more_are_told_apart():
    lines = torch.sort.__doc__.split("\n\n")[0].splitlines()
    assert [line.split(" ->")[0] for line in lines] == [
        "sort(input, dim=-1, descending=False, *, out=None)",
        "sort(input, *, stable, dim=-1, descending=False, out=None)",
    ]


def test_arithmetic_by_name():
    x = torch.tensor([1.0, 2.0])
    assert x.__add__(other=x).tolist() == [2.0, 4.0]
    assert x.__rsub__(other=3).tolist() == [2.0, 1.0]
    assert x.__rtruediv__(other=4).tolist() == [4.0, 2.0]
    assert x.__rpow__(other=3).tolist() == [3.0, 9.0]
    assert x.__imul__(other=2) is x and x.tolist() == [2.0, 4.0]
    assert x.__and__("a") is NotImplemented and x.__matmul__(3) is NotImplemented
    with pytest.raises(TypeError, match="other"):
        x.__add__(value=x)


class Loud(torch.Tensor):
    def __add__(self, other):
        return "mine"


class Quiet(Loud):
    pass


class Turned(torch.Tensor):
    def __radd__(self, other):
        return "turned"


def test_subclasses_change_their_own_arithmetic_alone():
    x = torch.ones(2)
    assert x.as_subclass(Loud) + 1 == "mine" and x.as_subclass(Quiet) + 1 == "mine"
    assert (x.as_subclass(Loud) * 2).tolist() == [2.0, 2.0]
    assert x + x.as_subclass(Turned) == "turned"
    assert (x + x).tolist() == [2.0, 2.0]
    parameter = torch.nn.Parameter(x)
    assert (parameter + 1).tolist() == (1 + parameter).tolist() == [2.0, 2.0]
    Quiet.__mul__ = lambda self, other: "late"
    assert x.as_subclass(Quiet) * 2 == "late" and (x * 2).tolist() == [2.0, 2.0]


def test_alpha_by_position_of_a_number():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    assert torch.sub(x, 2, 3).tolist() == x.subtract(2, 3).tolist() == [-5.0, -4.0]
    assert torch.rsub(x, 2, 3).tolist() == [-1.0, -4.0]
    torch.rsub(x, 2, 3).sum().backward()
    assert x.grad.tolist() == [-3.0, -3.0]
    with pytest.raises(TypeError, match="rsub"):
        torch.rsub(x, x, 3)


def test_dim_order_that_is_not_clear():
    x = torch.empty(2, 3, 4, 5)
    assert x.dim_order(ambiguity_check=True) == (0, 1, 2, 3)
    assert x.dim_order(ambiguity_check=[torch.contiguous_format]) == (0, 1, 2, 3)
    with pytest.raises(RuntimeError, match="unique dim order"):
        torch.ones(1, 1, 1, 1).dim_order(ambiguity_check=True)
    formats = [torch.contiguous_format, torch.channels_last]
    with pytest.raises(RuntimeError, match="unique dim order"):
        torch.ones(2, 1, 3, 1).dim_order(ambiguity_check=formats)
    with pytest.raises(TypeError, match=r"torch.memory_format, not of int"):
        x.dim_order(ambiguity_check=[3])


def test_result_type_by_the_names_of_its_forms():
    x, y = torch.ones(2), torch.ones(2, dtype=torch.float64)
    assert torch.result_type(tensor=x, other=y) is torch.float64
    assert torch.result_type(tensor=x, other=2) is torch.float32
    assert torch.result_type(scalar=1, tensor=x) is torch.float32
    assert torch.result_type(scalar1=1, scalar2=2.0) is torch.float32
    with pytest.raises(TypeError):
        torch.result_type(tensor1=x, tensor2=y)


def test_a_device_is_named_device_or_by_type_and_index():
    assert torch.device(device="cpu") == torch.device(type="cpu")
    assert torch.device(type="cpu", index=0) == torch.device("cpu:0")
    with pytest.raises(TypeError):
        torch.device(device="cpu", index=0)


def test_to_of_nothing_is_the_tensor_itself():
    x = torch.ones(2)
    assert x.to() is x and x.to(None, None) is x


def test_argsort_into_a_tensor():
    out = torch.empty(0, dtype=torch.int64)
    made = torch.argsort(torch.tensor([3.0, 1.0, 2.0]), stable=True, out=out)
    assert made is out and out.tolist() == [1, 2, 0]


def test_generators_of_the_cpu_have_no_offset():
    generator = torch.Generator(None)
    for call in (generator.get_offset, lambda: generator.set_offset(1)):
        with pytest.raises(RuntimeError, match="does not use offset"):
            call()
    with pytest.raises(NotImplementedError, match="graphs"):
        generator.graphsafe_get_state()
    with pytest.raises(TypeError, match="expected a Generator, but got int"):
        generator.graphsafe_set_state(3)


def test_streams_by_device_and_by_number():
    stream = torch.Stream(device="cpu")
    assert (stream.device, stream.stream_id, stream.device_index, stream.device_type) == (
        torch.device("cpu"), 0, -1, 0,
    )  # fmt: skip
    assert torch.Stream(0, -1, 0) == stream and torch.Event("cpu").device == torch.device("cpu")
    with pytest.raises(RuntimeError, match="expected device_type 0"):
        torch.Stream(stream_id=0, device_index=0, device_type=1)


def test_dlpack_of_a_stream_that_is_not_there():
    x = torch.ones(2)
    assert x.__dlpack__(stream=-1) is not None
    with pytest.raises(AssertionError, match="stream should be None"):
        x.__dlpack__(stream=1)


@pytest.mark.parametrize("name", ["cuda", "xpu", "mtia"])
def test_devices_that_are_not_there(name):
    with pytest.raises(AssertionError, match=f"{name.upper()} enabled"):
        getattr(torch.ones(2), name)()
    with pytest.raises(RuntimeError, match="ipu"):
        torch.ones(2).ipu()


def test_abbreviations_of_dtypes():
    assert [d.abbr for d in (torch.float32, torch.bfloat16, torch.int64, torch.uint8)] == [
        "f32", "bf16", "i64", "u8",
    ]  # fmt: skip
    assert [d.abbr for d in (torch.bool, torch.complex64, torch.float8_e4m3fn)] == [
        "b8", "c64", "f8e4m3fn",
    ]  # fmt: skip


def test_autocast_by_device_and_without():
    before = torch.is_autocast_enabled("cuda")
    torch.set_autocast_enabled(True)
    assert torch.is_autocast_enabled("cuda") and not torch.is_autocast_enabled("cpu")
    torch.set_autocast_enabled("cuda", before)
    assert torch.is_autocast_enabled("cuda") == before
    assert torch.get_autocast_xla_dtype() is torch.bfloat16


def test_autocast_decorator():
    from rushlight.amp.autocast_mode import autocast_decorator

    inside = autocast_decorator(torch.autocast("cpu"), lambda: torch.is_autocast_enabled("cpu"))
    assert inside() and not torch.is_autocast_enabled("cpu")
