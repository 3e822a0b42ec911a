"""Operators that programs define."""

import gc

import numpy
import pytest
import rushlight as torch
from rushlight import Tensor
from rushlight import library as L
from rushlight.utils._python_dispatch import TorchDispatchMode


@L.custom_op("test_lib::scaled_sin", mutates_args=())
def scaled_sin(x: Tensor, k: float = 2.0) -> Tensor:
    return torch.from_numpy(numpy.sin(x.detach().numpy() * k))


@scaled_sin.register_fake
def _(x, k=2.0):
    return torch.empty_like(x)


def _setup(ctx, inputs, output):
    x, ctx.k = inputs
    ctx.save_for_backward(x)


def _backward(ctx, gradient):
    (x,) = ctx.saved_tensors
    return gradient * (x * ctx.k).cos() * ctx.k, None


scaled_sin.register_autograd(_backward, setup_context=_setup)


def x(grad=False):
    return torch.tensor([0.5, 1.0], requires_grad=grad)


def test_an_operator_of_a_function():
    torch.testing.assert_close(scaled_sin(x()), (x() * 2).sin())
    torch.testing.assert_close(torch.ops.test_lib.scaled_sin(x(), k=1.0), x().sin())
    assert repr(scaled_sin) == "<CustomOpDef(test_lib::scaled_sin)>"
    overload = torch.ops.test_lib.scaled_sin.default
    assert overload._schema == "test_lib::scaled_sin(Tensor x, float k=2.0) -> Tensor"
    assert str(overload) == "test_lib.scaled_sin.default"
    assert torch.ops.test_lib.scaled_sin.overloads() == ["default"]
    assert "scaled_sin" in dir(torch.ops.test_lib)
    assert scaled_sin(torch.ones(3, device="meta")).shape == (3,)


def test_gradients():
    given = x(grad=True)
    result = scaled_sin(given)
    assert "GeneratedBackwardFor_test_lib_scaled_sin_default" in str(result.grad_fn)
    result.sum().backward()
    torch.testing.assert_close(given.grad, 2 * (x() * 2).cos())
    with torch.no_grad():
        assert not scaled_sin(given).requires_grad


def test_compiled_programs_call_it():
    compiled = torch.compile(lambda v: scaled_sin(v * 2) + 1)
    torch.testing.assert_close(compiled(x()), (x() * 4).sin() + 1)


def test_maps_over_batches():
    rows = torch.rand(3, 2)
    torch.testing.assert_close(torch.vmap(scaled_sin)(rows), (rows * 2).sin())

    @L.custom_op("test_lib::tripled", mutates_args=())
    def tripled(v: Tensor) -> Tensor:
        return v * 3

    @tripled.register_vmap
    def _(info, in_dims, v):
        assert in_dims == (0,) and info.batch_size == 3
        return v * 3 + 100, in_dims[0]

    torch.testing.assert_close(torch.vmap(tripled)(rows), rows * 3 + 100)


def test_without_a_gradient_backward_says_so():
    @L.custom_op("test_lib::plain", mutates_args=())
    def plain(v: Tensor) -> Tensor:
        return v * 2

    with pytest.raises(RuntimeError, match="Trying to backward through test_lib.plain.default but"):
        plain(x(grad=True)).sum().backward()
    with pytest.raises(RuntimeError, match="There was no fake impl registered for test_lib::plain"):
        plain(x().to("meta"))


def test_lists_and_several_results():
    @L.custom_op("test_lib::sums", mutates_args=())
    def sums(parts: list[Tensor], scale: float) -> tuple[Tensor, Tensor]:
        return sum(parts) * scale, parts[0] * scale

    def setup(ctx, inputs, output):
        ctx.count, ctx.scale = len(inputs[0]), inputs[1]

    def backward(ctx, whole, first):
        return [whole * ctx.scale + (first * ctx.scale if i == 0 else 0) for i in range(2)], None

    sums.register_autograd(backward, setup_context=setup)
    one, other = x(grad=True), x(grad=True)
    total, first = sums([one, other], 3.0)
    assert total.tolist() == [3.0, 6.0]
    (total.sum() + first.sum()).backward()
    assert one.grad.tolist() == [6.0, 6.0] and other.grad.tolist() == [3.0, 3.0]


def test_writing_into_arguments():
    @L.custom_op("test_lib::add_one_", mutates_args={"v"})
    def add_one_(v: Tensor) -> None:
        v.add_(1)

    given = torch.zeros(2)
    assert add_one_(given) is None and given.tolist() == [1.0, 1.0]
    assert torch.ops.test_lib.add_one_.default._schema == "test_lib::add_one_(Tensor(a0!) v) -> ()"
    with pytest.raises(RuntimeError, match="for non-functional operator"):
        add_one_.register_autograd(_backward)


def test_results_have_memory_of_their_own():
    @L.custom_op("test_lib::same", mutates_args=())
    def same(v: Tensor) -> Tensor:
        return v

    with pytest.raises(RuntimeError, match="may not alias any inputs to this custom operator"):
        same(x())


def test_kernels_of_devices():
    @L.custom_op("test_lib::where_am_i", mutates_args=())
    def where_am_i(v: Tensor) -> Tensor:
        return v * 0

    @where_am_i.register_kernel("cpu")
    def _(v):
        return v * 0 + 7

    assert where_am_i(x()).tolist() == [7.0, 7.0]
    with where_am_i.set_kernel_enabled("cpu", enabled=False):
        assert where_am_i(x()).tolist() == [0.0, 0.0]
    assert where_am_i(x()).tolist() == [7.0, 7.0]
    elsewhere = L.custom_op(
        "test_lib::elsewhere",
        lambda v: v,
        mutates_args=(),
        schema="(Tensor v) -> Tensor",
        device_types="cuda",
    )
    with pytest.raises(NotImplementedError, match="with arguments from the 'CPU' backend"):
        elsewhere(x())


def test_autocast_converts_arguments():
    @L.custom_op("test_lib::dtype_of", mutates_args=())
    def dtype_of(v: Tensor) -> Tensor:
        return v + 1

    dtype_of.register_autocast("cpu", torch.bfloat16)
    assert dtype_of(x()).dtype == torch.float32
    with torch.autocast("cpu"):
        assert dtype_of(x()).dtype == torch.bfloat16


class Tagged(Tensor):
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise NotImplementedError(func)


def test_tensors_of_a_subclass():
    seen = []

    @scaled_sin.register_torch_dispatch(Tagged)
    def _(cls, func, types, args, kwargs):
        seen.append((cls, str(func), types))
        return 5

    assert scaled_sin(Tensor._make_subclass(Tagged, x())) == 5
    assert seen == [(Tagged, "test_lib.scaled_sin.default", (Tagged,))]


class Mode(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def test_a_rule_for_a_mode():
    @L.custom_op("test_lib::same", mutates_args=())
    def same(v: Tensor) -> Tensor:
        return v.clone()

    @L.register_torch_dispatch("test_lib::same", Mode)
    def _(mode, func, types, args, kwargs):
        assert isinstance(mode, Mode)
        return func(*args) + 1  # the mode is off here

    assert torch.equal(same(x()), x())
    with Mode():
        assert torch.equal(same(x()), x() + 1)


def test_an_operator_that_gives_the_argument_it_writes():
    @L.custom_op("test_lib::double_", mutates_args={"v"}, tags=torch.Tag.inplace)
    def double_(v: Tensor) -> Tensor:
        return v.mul_(2)

    assert str(double_._opoverload._schema) == "test_lib::double_(Tensor(a0!) v) -> Tensor(a0!)"
    given = x()
    assert double_(given) is given
    assert torch.equal(given, 2 * x())

    @L.custom_op("test_lib::copies_", mutates_args={"v"}, tags=torch.Tag.inplace)
    def copies_(v: Tensor) -> Tensor:
        return v.clone()

    with pytest.raises(RuntimeError, match="must return its first argument"):
        copies_(x())


def test_an_operator_that_writes_into_out():
    @L.custom_op("test_lib::double_out", mutates_args={"out"}, tags=torch.Tag.out)
    def double_out(v: Tensor, *, out: Tensor) -> Tensor:
        return out.copy_(2 * v)

    schema = "test_lib::double_out(Tensor v, *, Tensor(a1!) out) -> Tensor(a1!)"
    assert str(double_out._opoverload._schema) == schema
    out = torch.zeros(2)
    assert double_out(x(), out=out) is out
    assert torch.equal(out, 2 * x())
    with pytest.raises(NotImplementedError, match="kwarg-only Tensor args"):

        @L.custom_op("test_lib::untagged_out", mutates_args={"out"})
        def untagged_out(v: Tensor, *, out: Tensor) -> Tensor:
            return out


def test_kernels_may_ask_for_arrays_of_what_requires_grad():
    @L.custom_op("test_lib::numpy_sin", mutates_args=())
    def numpy_sin(v: Tensor) -> Tensor:
        return torch.from_numpy(numpy.sin(v.numpy()))

    def setup(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])

    numpy_sin.register_autograd(lambda ctx, g: g * ctx.saved_tensors[0].cos(), setup_context=setup)
    v = x().requires_grad_()
    numpy_sin(v).sum().backward()
    assert torch.equal(v.grad, x().cos())


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: scaled_sin(x(), 1.0, 2), "expected at most 2 argument.s. but received 3"),
        (lambda: scaled_sin(), "is missing value for argument 'x'"),
        (lambda: scaled_sin(3), "Expected a value of type 'Tensor' for argument 'x'"),
        (lambda: scaled_sin(x(), k="a"), "'float' for argument 'k' but instead found type 'str'"),
        (lambda: scaled_sin(x(), z=1), "Unknown keyword argument 'z' for operator"),
    ],
)
def test_arguments_follow_the_schema(call, text):
    with pytest.raises(RuntimeError, match=text):
        call()


def prototype(
    a: Tensor,
    b: Tensor | None,
    n: int,
    s: float = 1.0,
    flag: bool = True,
    text: str = "a",
    parts: list[Tensor] | None = None,
    *,
    dtype: torch.dtype | None = None,
    number: int | float | bool = 3,
) -> tuple[Tensor, int]: ...


def test_schemas_follow_annotations():
    assert L.infer_schema(prototype, mutates_args={"a"}, op_name="op") == (
        "op(Tensor(a0!) a, Tensor? b, SymInt n, float s=1.0, bool flag=True, "
        'str text="a", Tensor[]? parts=None, *, ScalarType? dtype=None, Scalar number=3) -> '
        "(Tensor, SymInt)"
    )

    def bare(v): ...

    def strange(v: dict) -> Tensor: ...

    def unsaid(v: Tensor): ...

    for function, text in (
        (bare, "Parameter v must have a type annotation"),
        (strange, "Parameter v has unsupported type <class 'dict'>"),
        (unsaid, "No return type annotation was provided"),
    ):
        with pytest.raises(ValueError, match=text):
            L.infer_schema(function, mutates_args=())
    with pytest.raises(ValueError, match="{'z'} in mutates_args were not found"):
        L.infer_schema(prototype, mutates_args={"z"})


def test_schemas_first_kernels_later():
    L.define("test_lib::pair", "(Tensor v, int n=2) -> (Tensor, Tensor)")
    with pytest.raises(NotImplementedError, match="Could not run 'test_lib::pair'"):
        torch.ops.test_lib.pair(x())

    @L.impl("test_lib::pair", "cpu")
    def _(v, n=2):
        return v + n, v * n

    @L.register_fake("test_lib::pair")
    def _(v, n=2):
        return torch.empty_like(v), torch.empty_like(v)

    assert torch.ops.test_lib.pair(x(), n=3)[1].tolist() == [1.5, 3.0]
    assert torch.ops.test_lib.pair(x().to("meta"))[0].is_meta
    given = x(grad=True)
    torch.ops.test_lib.pair(given)[1].sum().backward()
    assert given.grad.tolist() == [2.0, 2.0]
    assert L.get_kernel("test_lib::pair", "CPU")(x())[0].tolist() == [2.5, 3.0]
    with pytest.raises(RuntimeError, match="with the same name and overload name multiple times"):
        L.define("test_lib::pair", "(Tensor v) -> Tensor")
    with pytest.raises(ValueError, match='of the form "namespace::name", but got pair'):
        L.define("pair", "(Tensor v) -> Tensor")
    with pytest.raises(ValueError, match="expected schema to look like"):
        L.define("test_lib::bad", "nonsense")
    with pytest.raises(RuntimeError, match="operator test_lib::none does not exist"):
        L.register_fake("test_lib::none", lambda v: v)


def test_libraries_last_as_long_as_they_are_kept():
    library = L.Library("test_lib2", "DEF")
    assert library.define("twice(Tensor v) -> Tensor") == "twice"
    library.define("twice.number(Tensor v, int n) -> Tensor")
    library.impl("twice", lambda v: v * 2, "CompositeImplicitAutograd")
    library.impl("twice.number", lambda v, n: v * 2 * n, "CPU")
    twice = torch.ops.test_lib2.twice
    assert twice(x()).tolist() == [1.0, 2.0] and twice(x(), 2).tolist() == [2.0, 4.0]
    assert twice.overloads() == ["default", "number"]
    with pytest.raises(RuntimeError, match="Only a single TORCH_LIBRARY can be used"):
        L.Library("test_lib2", "DEF")
    with pytest.raises(ValueError, match="Unsupported kind: X"):
        L.Library("test_lib2", "X")
    with L._scoped_library("test_lib2", "IMPL") as other:
        other.impl("twice", lambda v: v * 100, "CPU")
        assert torch.ops.test_lib2.twice(x()).tolist() == [50.0, 100.0]
    assert torch.ops.test_lib2.twice(x()).tolist() == [1.0, 2.0]
    del library, twice
    gc.collect()
    with pytest.raises(AttributeError, match="'test_lib2' object has no attribute 'twice'"):
        torch.ops.test_lib2.twice


def test_a_kernel_of_its_own_for_gradients():
    library = L.Library("test_lib3", "DEF")
    library.define("op(Tensor v) -> Tensor")
    library.impl("op", lambda v: v * 2, "CPU")
    library.impl("op", lambda v: torch.ops.test_lib3.op(v) + 1, "Autograd")
    assert torch.ops.test_lib3.op(x()).tolist() == [2.0, 3.0]


def test_the_table_has_its_names():
    assert torch.ops.aten.add.Tensor(x(), x()).tolist() == [1.0, 2.0]
    with pytest.raises(AttributeError, match="'_OpNamespace' 'aten' object has no attribute"):
        torch.ops.aten.no_such_operator
    with pytest.raises(RuntimeError, match="that come with the package cannot be replaced"):
        L.Library("aten", "IMPL").impl("add.Tensor", lambda a, b: a, "CPU")


def test_checks_pass():
    found = L.opcheck(scaled_sin, (x(grad=True),))
    assert set(found.values()) == {"SUCCESS"} and len(found) == 4


def test_checks_find_mistakes():
    @L.custom_op("test_lib::liar", mutates_args=())
    def liar(v: Tensor) -> Tensor:
        v.add_(1)
        return v * 2

    liar.register_fake(lambda v: v.new_empty(7))
    found = L.opcheck(liar, (x(),), raise_exception=False)
    assert "not defined as mutable but was mutated" in str(found["test_schema"])
    assert "has shape torch.Size([7])" in str(found["test_faketensor"])
    with pytest.raises(Exception, match="test_autograd_registration failed"):
        L.opcheck(liar, (x(grad=True),), test_utils="test_autograd_registration")
    with pytest.raises(ValueError, match="expected test_utils out of"):
        L.opcheck(liar, (x(),), test_utils="other")


def test_libraries_of_code(tmp_path):
    with pytest.raises(OSError, match="cannot open shared object|no such file|not found"):
        torch.ops.load_library(str(tmp_path / "none.so"))
