"""Fake tensors: shapes, dtypes and devices of what a program would compute."""

import pytest
import rushlight as torch
from rushlight import nn
from rushlight._guards import active_fake_mode, detect_fake_mode
from rushlight._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    is_fake,
    unset_fake_temporarily,
)


def test_factories_and_operators_give_fake_tensors():
    with FakeTensorMode() as mode:
        x = torch.ones(2, 3)
        y = x @ torch.rand(3, 4)
        assert type(x) is FakeTensor and type(y) is FakeTensor and y.fake_mode is mode
        assert (y.shape, y.stride(), y.device.type, y.fake_device) == (
            (2, 4), (4, 1), "cpu", torch.device("cpu"),
        )  # fmt: skip
        assert not x.t().is_contiguous() and x.to(torch.float64).dtype is torch.float64
        assert x.add_(1) is x and type(x.data) is FakeTensor
        assert repr(x.double()) == "FakeTensor(..., size=(2, 3), dtype=torch.float64)"
        assert torch.zeros(2, device="meta").device.type == "meta"
        with unset_fake_temporarily():
            assert type(torch.ones(1)) is torch.Tensor
    assert type(y + 1) is FakeTensor  # outside the mode too
    assert type(torch.ones(1)) is torch.Tensor


def test_a_training_step_without_elements():
    with FakeTensorMode():
        model = nn.Sequential(
            nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(144, 5)
        )
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(2):
            loss = nn.functional.cross_entropy(model(torch.rand(2, 3, 8, 8)), torch.tensor([1, 2]))
            loss.backward()
            optimizer.step()
    assert all(is_fake(p.grad) and p.grad.shape == p.shape for p in model.parameters())


def test_real_tensors():
    mode, real = FakeTensorMode(), torch.randn(4, 6).t()
    fake = mode.from_tensor(real)
    assert (fake.shape, fake.stride(), is_fake(fake), is_fake(real)) == (
        (6, 4),
        (1, 6),
        True,
        False,
    )
    assert mode.from_tensor(fake) is fake
    with mode, pytest.raises(AssertionError, match=r"Found in aten\.add\.Tensor"):
        real + fake
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert is_fake(real + 1)
    with pytest.raises(AssertionError, match="Mixing fake modes"):
        FakeTensorMode().from_tensor(fake)
    parameter = mode.from_tensor(nn.Parameter(torch.ones(2)))
    assert isinstance(parameter, nn.Parameter) and is_fake(parameter) and parameter.requires_grad


def test_what_depends_on_elements():
    with FakeTensorMode():
        x = torch.ones(3)
        for use in (x.sum().item, lambda: bool(x[0] > 0), x.tolist):
            with pytest.raises(DataDependentOutputException, match="_local_scalar_dense"):
                use()
        with pytest.raises(DynamicOutputShapeException, match=r"aten\.nonzero\.default"):
            x.nonzero()


def test_constants_keep_their_number():
    with FakeTensorMode():
        x = torch.tensor(3.0)
        assert is_fake(x) and x.item() == 3 and (x * 2 + 1).item() == 7
        x.add_(1)
        assert x.item() == 4
        x.add_(torch.rand(()))
        with pytest.raises(DataDependentOutputException):
            x.item()


def test_which_mode_is_on():
    assert active_fake_mode() is None
    with FakeTensorMode() as mode:
        assert active_fake_mode() is mode
        x = torch.ones(1)
    assert detect_fake_mode([x]) is mode and detect_fake_mode([torch.ones(1)]) is None


def test_graphs_of_fake_calls():
    from rushlight.fx.experimental.proxy_tensor import make_fx

    x, ran = torch.randn(3, 3), []

    def function(x):
        ran.append(is_fake(x))
        return (x @ x + torch.ones(3)).sum()

    module = make_fx(function, tracing_mode="fake")(x)
    assert ran == [True]
    torch.testing.assert_close(module(x), (x @ x + 1).sum())
    assert all(is_fake(n.meta["val"]) for n in module.graph.nodes if "val" in n.meta)
    with pytest.raises(NotImplementedError, match="no symbolic sizes"):
        FakeTensorMode(shape_env=object())
