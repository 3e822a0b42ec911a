"""Custom functions written in Python."""

import gc
import weakref

import pytest
import rushlight as torch
from rushlight.autograd import Function
from rushlight.autograd.function import once_differentiable


def leaf(*values):
    return torch.tensor(values, dtype=torch.float32, requires_grad=True)


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * grad


def test_backward_is_used():
    x = leaf(2.0)
    y = Cube.apply(x)
    assert type(y.grad_fn).__name__ == "CubeBackward"
    assert y.grad_fn.name() == "CubeBackward"
    assert "CubeBackward" in repr(y)
    assert isinstance(y.grad_fn, torch.autograd.graph.Node)
    assert y.grad_fn.next_functions[0][0].variable is x
    y.backward()
    assert x.grad.tolist() == pytest.approx([12.0])
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_double_backward():
    x = leaf(2.0)
    (first,) = torch.autograd.grad(Cube.apply(x), x, create_graph=True)
    (second,) = torch.autograd.grad(first, x)
    assert second.tolist() == pytest.approx([12.0])


def test_setup_context():
    class Scale(Function):
        @staticmethod
        def forward(x, factor=3.0):
            return x * factor

        @staticmethod
        def setup_context(ctx, inputs, output):
            _, ctx.factor = inputs

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.factor, None

    x = leaf(1.0)
    Scale.apply(x).backward()
    Scale.apply(x, 5.0).backward()
    assert x.grad.tolist() == [8.0]


def test_needs_input_grad_and_other_arguments():
    seen = []

    class Product(Function):
        @staticmethod
        def forward(ctx, a, factor, b):
            seen.append(ctx.needs_input_grad)
            return a * factor * b

        @staticmethod
        def backward(ctx, grad):
            seen.append(ctx.needs_input_grad)
            return grad * 2, None, None

    Product.apply(leaf(1.0), 2, torch.ones(1)).backward()
    assert seen == [(True, False, False)] * 2


def test_several_results_and_materialized_gradients():
    class Twins(Function):
        @staticmethod
        def forward(ctx, x, materialize):
            ctx.set_materialize_grads(materialize)
            return x * 1, x * 2, "text"

        @staticmethod
        def backward(ctx, first, second, text):
            assert text is None
            Twins.second = second
            return first, None

    x = leaf(1.0)
    first, second, text = Twins.apply(x, True)
    assert text == "text"
    first.backward()
    assert Twins.second.tolist() == [0.0]
    Twins.apply(x, False)[0].backward()
    assert Twins.second is None


def test_mark_non_differentiable():
    class Sorted(Function):
        @staticmethod
        def forward(ctx, x):
            index = x * 0
            ctx.mark_non_differentiable(index)
            return x * 2, index

        @staticmethod
        def backward(ctx, grad, _):
            return grad * 2

    values, index = Sorted.apply(leaf(1.0))
    assert values.requires_grad
    assert not index.requires_grad


class AddOne(Function):
    @staticmethod
    def forward(ctx, x):
        x.add_(1)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad * 3


def test_mark_dirty():
    x = leaf(1.0)
    y = x * 1
    z = AddOne.apply(y)
    assert z is y
    z.backward()
    assert x.grad.tolist() == [3.0]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        AddOne.apply(x)
    base = leaf(1.0, 2.0) * 1
    AddOne.apply(base[:1])
    assert base.grad_fn.name() == "CopySlices"


def test_dirty_tensors_must_be_returned():
    class Forgets(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x * 2

    with pytest.raises(RuntimeError, match="Some elements marked as dirty during the forward"):
        Forgets.apply(leaf(1.0) * 1)


def test_an_argument_handed_back_is_another_tensor():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return -grad

    x = leaf(1.0)
    y = Same.apply(x)
    assert y is not x
    y.backward()
    assert x.grad.tolist() == [-1.0]


def returning(value):
    class Returns(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return value(grad)

    return Returns


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (lambda g: torch.ones(5), r"returned an invalid gradient at index 0 - got \[5\] but"),
        (lambda g: (g, g), r"returned an incorrect number of gradients \(expected 1, got 2\)"),
        (lambda g: (), r"returned an incorrect number of gradients \(expected 1, got 0\)"),
        (lambda g: 1, r"expected Variable or None \(got int\)"),
    ],
)
def test_returned_gradients_are_checked(value, text):
    with pytest.raises(RuntimeError, match=text):
        returning(value).apply(leaf(1.0, 2.0, 3.0)).sum().backward()


def test_spare_nones_are_allowed():
    x = leaf(1.0)
    returning(lambda g: (g, None)).apply(x).backward()
    assert x.grad.tolist() == [1.0]


def test_missing_methods():
    class OnlyForward(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    with pytest.raises(NotImplementedError, match="either the backward or vjp method"):
        OnlyForward.apply(leaf(1.0)).backward()
    with pytest.raises(NotImplementedError, match="must implement the forward function"):
        type("Empty", (Function,), {}).apply(leaf(1.0))


def test_save_for_backward_takes_tensors():
    class Saves(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(1)
            return x * 2

    with pytest.raises(TypeError, match="save_for_backward can only save variables, but argument"):
        Saves.apply(leaf(1.0))


def test_once_differentiable():
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            return grad * 2

    x = leaf(1.0)
    weight = leaf(1.0)
    Once.apply(x).backward()
    assert x.grad.tolist() == [2.0]
    (first,) = torch.autograd.grad(Once.apply(x) * weight, x, create_graph=True)
    with pytest.raises(RuntimeError, match="marked with @once_differentiable"):
        first.sum().backward()


def test_without_grad_nothing_is_recorded():
    with torch.no_grad():
        assert not Cube.apply(leaf(1.0)).requires_grad
    assert not Cube.apply(torch.ones(1)).requires_grad


def test_contexts_are_freed():
    contexts = []

    class Remembers(Function):
        @staticmethod
        def forward(ctx, x):
            contexts.append(weakref.ref(ctx))
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad

    y = Remembers.apply(leaf(1.0))
    assert contexts[0]() is y.grad_fn
    del y
    gc.collect()
    assert contexts[0]() is None


def test_checkpoint_style_reentrancy():
    class Checkpoint(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.exp() * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            with torch.enable_grad():
                x = x.detach().requires_grad_()
                y = x.exp() * x
            torch.autograd.backward(y, grad)
            return x.grad

    x = leaf(0.5)
    Checkpoint.apply(x).backward()
    expected = leaf(0.5)
    (expected.exp() * expected).backward()
    assert x.grad.tolist() == pytest.approx(expected.grad.tolist())


def test_gradients_in_one_list_that_can_be_emptied():
    import weakref

    class Boxed(torch.autograd.Function):
        boxed_grads_call = True

        @staticmethod
        def forward(ctx, a):
            return a * 2, a * 3

        @staticmethod
        def backward(ctx, grads):
            assert type(grads) is list and len(grads) == 2
            seen = weakref.ref(grads[0])
            total = grads[0] * 2 + grads[1] * 3
            grads.clear()
            assert seen() is None
            return total

    x = torch.ones(2, requires_grad=True)
    a, b = Boxed.apply(x)
    ((a * 5).sum() + (b * 7).sum()).backward()
    assert x.grad.tolist() == [31.0, 31.0]


def test_saved_tensors_that_are_freed_by_hand():
    class Frees(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return a * 2

        @staticmethod
        def backward(ctx, grad):
            ctx.maybe_clear_saved_tensors()
            (a,) = ctx.saved_tensors
            return grad * 2

    y = Frees.apply(torch.ones(2, requires_grad=True)).sum()
    y.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_saved_tensors_that_are_read_once():
    class Once(torch.autograd.Function):
        clear_saved_tensors_on_access = True

        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return a * 2

        @staticmethod
        def backward(ctx, grad):
            (a,) = ctx.saved_tensors
            return grad * 2 * a

    x = torch.ones(2, requires_grad=True)
    y = Once.apply(x).sum()
    y.backward(retain_graph=True)
    assert x.grad.tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="only be accessed once"):
        y.backward()


class ForwardOnly(Function):
    @staticmethod
    def forward(ctx, x, y, scale):
        ctx.save_for_forward(x, y)
        ctx.scale = scale
        return x * y * scale

    @staticmethod
    def jvp(ctx, x_t, y_t, _):
        x, y = ctx.saved_tensors
        second = 0 if y_t is None else x * y_t
        return ctx.scale * (y * x_t + second)


def test_forward_mode_of_a_function_without_backward():
    x, y = torch.tensor([2.0, 3.0]), torch.tensor([5.0, 7.0])
    forward_ad = torch.autograd.forward_ad
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.tensor([1.0, 10.0]))
        result = forward_ad.unpack_dual(ForwardOnly.apply(dual, y, 4.0))
    assert result.primal.tolist() == [40.0, 84.0]
    assert result.tangent.tolist() == [20.0, 280.0]
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(value, torch.ones(2)) for value in (x, y)]
        tangent = forward_ad.unpack_dual(ForwardOnly.apply(*duals, 4.0)).tangent
    assert tangent.tolist() == [28.0, 40.0]
