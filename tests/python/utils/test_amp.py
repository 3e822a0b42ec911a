"""Autocast and gradient scaling."""

import math

import pytest
import rushlight as torch
from rushlight import nn

A = torch.ones(2, 3)


def test_products_run_in_the_lower_precision():
    with torch.autocast("cpu"):
        assert (A @ A.t()).dtype == torch.bfloat16
        assert nn.functional.linear(A, A).dtype == torch.bfloat16
        assert (A + 1).dtype == torch.float32
        assert (A.double() @ A.double().t()).dtype == torch.float64
    assert (A @ A.t()).dtype == torch.float32


def test_dtype_and_disabled_regions():
    with torch.autocast("cpu", dtype=torch.float16):
        assert torch.mm(A, A.t()).dtype == torch.float16
        with torch.autocast("cpu", enabled=False):
            assert torch.mm(A, A.t()).dtype == torch.float32
            assert not torch.is_autocast_enabled("cpu")
        assert torch.get_autocast_dtype("cpu") == torch.float16
    assert torch.get_autocast_dtype("cpu") == torch.bfloat16


def test_losses_run_in_single_precision():
    x = torch.zeros(2, 3, dtype=torch.bfloat16)
    with torch.autocast("cpu"):
        assert nn.functional.cross_entropy(x, torch.tensor([0, 1])).dtype == torch.float32
        assert torch.cat([x, A]).dtype == torch.float32
        assert torch.mv(A, A[0]).dtype == torch.float32


def test_gradients_come_back_in_the_dtype_of_the_weights():
    model = nn.Linear(3, 2)
    with torch.autocast("cpu"):
        out = model(A)
        loss = out.float().square().sum()
    loss.backward()
    assert out.dtype == torch.bfloat16
    assert model.weight.grad.dtype == torch.float32


def test_weights_are_converted_once_and_anew_in_the_next_region():
    weight = torch.ones(3, 3, requires_grad=True)
    for value in (1.0, 2.0):
        with torch.no_grad():
            weight.fill_(value)
        with torch.autocast("cpu"):
            first, second = torch.mm(A, weight), torch.mm(A, weight)
        assert first[0, 0] == 3 * value
        (first.sum() + second.sum()).backward()


def test_decorator_and_threads_state():
    @torch.autocast("cpu")
    def product(a, b):
        return a @ b

    assert product(A, A.t()).dtype == torch.bfloat16
    assert not torch.is_autocast_enabled("cpu")


def test_mistakes():
    with pytest.raises(RuntimeError, match="unsupported autocast device_type"):
        torch.autocast("abacus")
    with pytest.raises(ValueError, match="of type `str`"):
        torch.autocast(torch.float32)
    with pytest.warns(UserWarning, match="not available"):
        region = torch.autocast("cuda")
    with region:
        assert (A @ A.t()).dtype == torch.float32


def test_custom_function():
    class Double(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @torch.amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            return grad * 2

    x = torch.ones(2, dtype=torch.bfloat16, requires_grad=True)
    with torch.autocast("cpu"):
        y = Double.apply(x)
    y.sum().backward()
    assert y.dtype == torch.float32
    assert x.grad.tolist() == [2.0, 2.0]


def test_scaler_scales_skips_and_grows():
    weight = torch.tensor([1.0], requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=1.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=1)
    scaler.scale((weight * 0.5).sum()).backward()
    assert weight.grad.item() == 4.0
    scaler.step(optimizer)
    scaler.update()
    assert weight.item() == 0.5
    assert scaler.get_scale() == 16.0
    weight.grad = torch.tensor([math.inf])
    scaler.step(optimizer)
    scaler.update()
    assert weight.item() == 0.5
    assert scaler.get_scale() == 8.0
    other = torch.amp.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    assert other.get_scale() == 8.0


def test_scaler_mistakes():
    optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    scaler = torch.amp.GradScaler("cpu")
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.unscale_(optimizer)
    with pytest.warns(UserWarning, match="Disabling"):
        assert not torch.amp.GradScaler("cuda").is_enabled()
