"""The names of the operators that dispatch modes see and traced graphs hold."""

import rushlight as torch
import rushlight.nn.functional as F
from rushlight.fx.experimental.proxy_tensor import make_fx
from rushlight.utils._python_dispatch import TorchDispatchMode


class Names(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        shown = [arg if isinstance(arg, (int, float)) else "_" for arg in args]
        self.seen.append((str(func), *shown))
        return func(*args, **(kwargs or {}))


def show(*functions, arguments=True):
    for function in functions:
        for x in (torch.tensor([[0.5, 1.5], [2.5, 3.0]]), torch.tensor([[1, 2], [3, 4]])):
            try:
                expected = function(x)
            except RuntimeError:
                continue
            with Names() as mode:
                made = function(x)
            seen = mode.seen if arguments else [name for name, *_ in mode.seen]
            print(*seen, torch.equal(made, expected), end=" ")
            gm = make_fx(function)(x)
            calls = [str(n.target) for n in gm.graph.nodes if "aten" in str(n.target)]
            print(*calls, torch.equal(gm(x), expected))


def numbers_compared():
    show(lambda x: x == 2, lambda x: x != 2, lambda x: x < 2, lambda x: x <= 2)
    show(lambda x: x > 2, lambda x: x >= 2, lambda x: 2 > x, lambda x: x > x, lambda x: x.eq(x))


def numbers_in_arithmetic():
    show(lambda x: x + 2, lambda x: x - 2, lambda x: x * 2, lambda x: x / 2, lambda x: x // 2)
    show(lambda x: x % 2, lambda x: x.fmod(2), lambda x: x % x, lambda x: x.fmod(x))
    show(lambda x: x**2, lambda x: x**x, lambda x: 2**x, lambda x: 5 - x)
    show(lambda x: x.xlogy(2), lambda x: torch.xlogy(2, x), lambda x: x.copysign(-1))
    show(lambda x: torch.div(x, 2, rounding_mode="floor"), lambda x: torch.remainder(7, x))


def numbers_and_bits():
    show(lambda x: x & 1, lambda x: x | 1, lambda x: x ^ 1, lambda x: x & x)
    show(lambda x: torch.bitwise_and(2, x), lambda x: torch.bitwise_left_shift(x, 1))
    show(lambda x: torch.bitwise_right_shift(8, x), lambda x: torch.bitwise_left_shift(x, x))


def written_numbers():
    show(lambda x: x.clone().eq_(2), lambda x: x.clone().pow_(2), lambda x: x.clone().pow_(x))
    show(lambda x: x.clone().remainder_(2), lambda x: x.clone().add_(1))
    show(lambda x: torch.gt(x, 2, out=torch.empty(2, 2, dtype=torch.bool)))
    show(lambda x: torch.lt(x, x, out=torch.empty(2, 2, dtype=torch.bool)))
    show(lambda x: torch.pow(x, 2, out=torch.empty_like(x)))


def reductions():
    show(torch.sum, torch.mean, torch.max, torch.min, torch.prod, torch.amax)
    show(lambda x: x.sum(0), lambda x: x.mean(0), lambda x: x.mean((0, 1), keepdim=True))
    show(lambda x: (x > 2).any(), lambda x: (x > 2).all(), lambda x: (x > 2).any(1))
    show(lambda x: (x > 2).all(0, keepdim=True), lambda x: (x > 2).any((0, 1)))
    show(torch.argmax, lambda x: x.argmin(1), torch.count_nonzero)
    show(lambda x: x.norm(), arguments=False)


def losses_and_layers():
    show(lambda x: F.mse_loss(x, x * 2), lambda x: F.smooth_l1_loss(x, x * 2))
    show(lambda x: F.l1_loss(x, x * 2), lambda x: F.glu(x))
    show(lambda x: F.layer_norm(x, (2,)), lambda x: F.linear(x, x, x[0]))
    show(lambda x: F.softmax(x, -1), lambda x: F.gelu(x), arguments=False)
    show(lambda x: F.hardswish(x), arguments=False)


def overloads():
    aten = torch.ops.aten
    print(aten.gt.Scalar, aten.gt.Scalar is aten.gt.Tensor, aten.gt.Scalar.name())
    print(aten.gt.Scalar._schema, aten.pow_.Scalar._schema, aten.any.dim._schema)
    print(aten.sum.default._schema, aten.pow.Tensor_Scalar._schema, aten.pow.Scalar._schema)
    x = torch.tensor([[1.0, 2.0], [0.0, 4.0]])
    print(aten.gt.Scalar(x, 2).tolist(), aten.sum.default(x).item(), aten.any.dim(x, 1).tolist())
    print(aten.pow.Tensor_Scalar(x, 2).tolist(), aten.remainder.Scalar(x, 2).tolist())
    print({"Scalar", "Tensor"} <= set(aten.gt.overloads()), aten.gt.Scalar in {aten.gt.Tensor})


def gradients():
    def f(x):
        x = x.detach().requires_grad_()
        y = (F.layer_norm(x, (2,)) * x % 2).pow(2).mean() + x.max() + F.mse_loss(x, x * x)
        return torch.autograd.grad(y, x)[0]

    x = torch.tensor([[0.5, 1.5], [2.5, 3.0]])
    gm = make_fx(f)(x)
    other = x.flip(1) * 1.5
    print(torch.allclose(gm(x), f(x)), torch.allclose(gm(other), f(other), atol=1e-5))
    mapped = make_fx(torch.func.vmap(lambda row: (row % 2).mean() + row.max()))
    print(torch.allclose(mapped(x)(other), other.remainder(2).mean(1) + other.amax(1)))
