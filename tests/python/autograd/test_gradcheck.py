"""gradcheck, gradgradcheck and the functional helpers."""

import pytest
import rushlight as torch
from rushlight.autograd import Function, gradcheck, gradgradcheck
from rushlight.autograd.gradcheck import GradcheckError


def double(*shape):
    torch.manual_seed(0)
    return (torch.rand(*shape, dtype=torch.float64) + 0.5).requires_grad_()


class WrongBackward(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 3


@pytest.mark.parametrize("fast_mode", [False, True])
def test_right_gradients_pass(fast_mode):
    assert gradcheck(lambda a, b: (a * b).exp(), (double(2, 3), double(3)), fast_mode=fast_mode)
    assert gradcheck(lambda a: (a.sin(), a.sum()), double(2, 2), fast_mode=fast_mode)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_wrong_gradients_fail(fast_mode):
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to inp"):
        gradcheck(WrongBackward.apply, double(2), fast_mode=fast_mode)
    assert not gradcheck(WrongBackward.apply, double(2), raise_exception=False)


def test_inputs_must_require_grad():
    with pytest.raises(ValueError, match="gradcheck expects at least one input tensor to require"):
        gradcheck(torch.sin, torch.ones(2, dtype=torch.float64))


def test_float32_inputs_warn():
    with pytest.warns(UserWarning, match="not a double precision"), pytest.raises(GradcheckError):
        gradcheck(torch.exp, torch.ones(2, requires_grad=True))


def test_second_derivatives():
    assert gradgradcheck(lambda a, b: a * a * b, (double(2), double(2)))

    class WrongTwice(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 3 * x.detach() ** 2 * grad

    assert gradcheck(WrongTwice.apply, double(2))
    with pytest.raises(GradcheckError):
        gradgradcheck(WrongTwice.apply, double(2))


def test_functional_helpers():
    functional = torch.autograd.functional
    x = torch.tensor([1.0, 2.0], dtype=torch.float64)
    jacobian = functional.jacobian(lambda t: t * t, x)
    assert jacobian.tolist() == [[2.0, 0.0], [0.0, 4.0]]
    hessian = functional.hessian(lambda t: (t**3).sum(), x)
    assert hessian.flatten().tolist() == pytest.approx([6.0, 0.0, 0.0, 12.0])
    v = torch.tensor([1.0, 10.0], dtype=torch.float64)
    assert functional.vjp(lambda t: t * t, x, v)[1].tolist() == [2.0, 40.0]
    assert functional.jvp(lambda t: t * t, x, v)[1].tolist() == [2.0, 40.0]
    assert functional.vhp(lambda t: (t**3).sum(), x, v)[1].tolist() == pytest.approx([6.0, 120.0])
    assert functional.hvp(lambda t: (t**3).sum(), x, v)[1].tolist() == pytest.approx([6.0, 120.0])
