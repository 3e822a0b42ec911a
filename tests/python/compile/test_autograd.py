"""Gradients of compiled functions are eager's."""

import rushlight as torch
from rushlight import _C, nn


def test_no_grad_and_inference_mode():
    compiled = torch.compile(nn.Linear(2, 2))
    assert compiled(torch.ones(1, 2)).requires_grad
    with torch.no_grad():
        assert not compiled(torch.ones(1, 2)).requires_grad
    with torch.inference_mode():
        assert compiled(torch.ones(1, 2)).is_inference()


def test_autocast_needs_two_segments():
    """Gradients are converted in backward, which must not end segments."""
    model = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 8))
    compiled = torch.compile(model)
    x = torch.randn(4, 8)

    def step(function):
        model.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = function(x)
        out.float().sum().backward()
        return [p.grad for p in model.parameters()]

    before = _C._compile_statistics()["segments"]
    found = step(compiled)
    assert _C._compile_statistics()["segments"] - before == 2
    for a, b in zip(found, step(model)):
        assert torch.equal(a, b)


def test_custom_function_and_hooks():
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 3 * x * x * grad

    def f(x):
        y = Cube.apply(x).sin()
        y.register_hook(lambda grad: grad * 2)
        return y.sum()

    gradients = []
    for function in (f, torch.compile(f)):
        x = torch.randn(5, generator=torch.Generator().manual_seed(1), requires_grad=True)
        function(x).backward()
        gradients.append(x.grad)
    assert torch.equal(*gradients)


def test_double_backward():
    def f(x):
        return (x.sin() * x).sum()

    found = []
    for function in (f, torch.compile(f)):
        x = torch.arange(4.0, requires_grad=True)
        (g,) = torch.autograd.grad(function(x), x, create_graph=True)
        (gg,) = torch.autograd.grad(g.sum(), x)
        found.append((g, gg))
    assert torch.equal(found[0][0], found[1][0]) and torch.equal(found[0][1], found[1][1])


def test_checkpointed_and_frozen_layers():
    from rushlight.utils.checkpoint import checkpoint

    first, second = nn.Linear(3, 3), nn.Linear(3, 3)
    first.weight.requires_grad_(False)

    def f(x):
        return checkpoint(lambda x: second(first(x).relu()).tanh(), x, use_reentrant=False).sum()

    found = []
    for function in (f, torch.compile(f)):
        x = torch.arange(6.0).reshape(2, 3).requires_grad_()
        second.zero_grad()
        function(x).backward()
        found.append((x.grad, second.weight.grad.clone()))
    assert torch.equal(found[0][0], found[1][0]) and torch.equal(found[0][1], found[1][1])


def test_autocast_and_modes():
    def f(x):
        with torch.no_grad():
            y = x * 2
        with torch.enable_grad():
            return y, x * 3

    y, z = torch.compile(f)(torch.ones(2, requires_grad=True))
    assert not y.requires_grad and z.requires_grad


def test_gradients_of_shared_arguments():
    def f(x):
        y = x.sin()
        return torch.minimum(x, x).sum() + torch.hypot(y, x).sum() + torch.fmax(y, y).sum()

    found = []
    for function in (f, torch.compile(f)):
        x = torch.tensor([0.3, -1.7, 2.1], requires_grad=True)
        function(x).backward()
        found.append(x.grad)
    assert torch.equal(*found)
