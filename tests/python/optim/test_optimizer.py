"""What all optimizers share: groups, state, hooks, refusals."""

import copy
import pickle

import pytest
import rushlight as torch
from rushlight import optim
from rushlight.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)


def parameter(value=1.0):
    made = torch.tensor([value], requires_grad=True)
    made.grad = torch.ones(1)
    return made


def test_groups_override_defaults():
    a, b = parameter(), parameter()
    optimizer = optim.SGD([{"params": [a]}, {"params": b, "lr": 0.5}], lr=0.1)
    optimizer.step()
    assert a.item() == pytest.approx(0.9)
    assert b.item() == 0.5
    optimizer.add_param_group({"params": parameter(), "lr": 0.2})
    assert [group["lr"] for group in optimizer.param_groups] == [0.1, 0.5, 0.2]


def test_named_parameters_keep_their_names():
    optimizer = optim.SGD([("w", parameter()), ("b", parameter())], lr=0.1)
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["w", "b"]


def test_repr():
    assert repr(optim.SGD([parameter()], lr=0.1)) == (
        "SGD (\nParameter Group 0\n    dampening: 0\n    differentiable: False\n"
        "    foreach: None\n    fused: None\n    lr: 0.1\n    maximize: False\n"
        "    momentum: 0\n    nesterov: False\n    weight_decay: 0\n)"
    )


def test_state_dict_numbers_parameters():
    optimizer = optim.Adam([parameter(), parameter()], lr=0.1)
    optimizer.step()
    state = optimizer.state_dict()
    assert list(state) == ["state", "param_groups"]
    assert state["param_groups"][0]["params"] == [0, 1]
    assert list(state["state"]) == [0, 1]
    assert list(state["state"][0]) == ["step", "exp_avg", "exp_avg_sq"]
    assert state["state"][0]["step"].item() == 1.0
    assert state["state"][0]["step"].dtype == torch.float32


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
def test_resumed_training_is_the_same(name):
    options = {"lr": 0.1, "momentum": 0.9} if name == "SGD" else {"lr": 0.1}
    straight = parameter()
    whole = getattr(optim, name)([straight], **options)
    for _ in range(4):
        whole.step()
    broken = parameter()
    first = getattr(optim, name)([broken], **options)
    for _ in range(2):
        first.step()
    saved = copy.deepcopy(first.state_dict())
    second = getattr(optim, name)([broken], lr=99.0)
    second.load_state_dict(saved)
    for _ in range(2):
        second.step()
    assert broken.item() == straight.item()


def test_loaded_state_takes_the_parameters_dtype():
    source = optim.Adam([parameter()], lr=0.1)
    source.step()
    wide = torch.ones(1, dtype=torch.float64, requires_grad=True)
    target = optim.Adam([wide], lr=0.1)
    target.load_state_dict(source.state_dict())
    assert target.state[wide]["exp_avg"].dtype == torch.float64
    assert target.state[wide]["step"].dtype == torch.float32


def test_groups_must_match_when_loading():
    two = optim.SGD([{"params": [parameter()]}, {"params": [parameter()]}], lr=0.1)
    one = optim.SGD([parameter()], lr=0.1)
    with pytest.raises(ValueError, match="different number of parameter groups"):
        one.load_state_dict(two.state_dict())
    pair = optim.SGD([parameter(), parameter()], lr=0.1)
    with pytest.raises(ValueError, match="doesn't match the size of optimizer's group"):
        one.load_state_dict(pair.state_dict())


def test_zero_grad():
    p = parameter()
    optimizer = optim.SGD([p], lr=0.1)
    optimizer.zero_grad(set_to_none=False)
    assert p.grad.tolist() == [0.0]
    optimizer.zero_grad()
    assert p.grad is None


def test_closure_gives_the_loss():
    p = parameter()
    optimizer = optim.SGD([p], lr=0.5)

    def closure():
        optimizer.zero_grad()
        loss = (p * 3).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 3.0
    assert p.item() == -0.5


def test_steps_leave_no_graph():
    p = parameter()
    optim.Adam([p], lr=0.1).step()
    assert p.is_leaf and p.requires_grad


def test_step_hooks():
    calls = []
    optimizer = optim.SGD([parameter()], lr=0.1)
    before = optimizer.register_step_pre_hook(lambda o, args, kwargs: calls.append("before"))
    optimizer.register_step_post_hook(lambda o, args, kwargs: calls.append("after"))
    everywhere = [
        register_optimizer_step_pre_hook(lambda *a: calls.append("all before")),
        register_optimizer_step_post_hook(lambda *a: calls.append("all after")),
    ]
    try:
        optimizer.step()
    finally:
        for handle in everywhere:
            handle.remove()
    assert calls == ["all before", "before", "after", "all after"]
    before.remove()
    calls.clear()
    optimizer.step()
    assert calls == ["after"]


def test_state_hooks():
    optimizer = optim.SGD([parameter()], lr=0.1)
    calls = []
    optimizer.register_state_dict_pre_hook(lambda o: calls.append("save"))
    optimizer.register_state_dict_post_hook(lambda o, state: {**state, "note": 1})
    state = optimizer.state_dict()
    assert state["note"] == 1
    optimizer.register_load_state_dict_pre_hook(lambda o, s: calls.append("load"))
    optimizer.register_load_state_dict_post_hook(lambda o: calls.append("loaded"))
    optimizer.load_state_dict(state)
    assert calls == ["save", "load", "loaded"]


def test_pickle_keeps_groups():
    optimizer = pickle.loads(pickle.dumps(optim.SGD([parameter()], lr=0.25)))
    assert optimizer.param_groups[0]["lr"] == 0.25
    optimizer.param_groups[0]["params"][0].grad = torch.ones(1)
    optimizer.step()
    assert optimizer.param_groups[0]["params"][0].item() == 0.75


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: optim.SGD([]), ValueError, "empty parameter list"),
        (lambda: optim.SGD(parameter()), TypeError, "should be an iterable of Tensors or dicts"),
        (lambda: optim.SGD([3]), TypeError, "one of the params is int"),
        (lambda: optim.SGD([{"params": {parameter()}}]), TypeError, "ordered collections"),
        (lambda: optim.SGD([parameter() * 2]), ValueError, "can't optimize a non-leaf Tensor"),
        (lambda: optim.SGD([parameter()], lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda: optim.SGD([parameter()], momentum=-1), ValueError, "Invalid momentum value"),
        (lambda: optim.SGD([parameter()], nesterov=True), ValueError, "Nesterov momentum"),
        (lambda: optim.Adam([parameter()], eps=-1), ValueError, "Invalid epsilon value: -1"),
        (
            lambda: optim.Adam([parameter()], betas=(0.9, 1.0)),
            ValueError,
            "Invalid beta parameter at index 1: 1.0",
        ),
        (
            lambda: optim.Adam([parameter()], fused=True, foreach=True),
            RuntimeError,
            "`fused` and `foreach` cannot be `True` together",
        ),
        (
            lambda: optim.Adam([parameter()], fused=True, differentiable=True),
            RuntimeError,
            "`fused` does not support `differentiable`",
        ),
        (lambda: optim.Muon([parameter()]), ValueError, "Muon only supports 2D parameters"),
        (lambda: optim.Rprop([parameter()], etas=(1.0, 0.5)), ValueError, "Invalid eta values"),
    ],
)
def test_wrong_arguments(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_a_parameter_belongs_to_one_group():
    p = parameter()
    with pytest.raises(ValueError, match="appear in more than one parameter group"):
        optim.SGD([{"params": [p]}, {"params": [p]}])
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optim.SGD([p, p])
