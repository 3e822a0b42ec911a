"""Schedules: the rates of the first epochs, saving, order of calls."""

import copy

import pytest
import rushlight as torch
from rushlight import optim
from rushlight.optim import lr_scheduler as schedules


def optimizer(rate=1.0, **options):
    parameter = torch.ones(1, requires_grad=True)
    parameter.grad = torch.zeros(1)
    return optim.SGD([parameter], lr=rate, **options)


def rates(opt, scheduler, count=5):
    found = [opt.param_groups[0]["lr"]]
    for _ in range(count):
        opt.step()
        scheduler.step()
        found.append(opt.param_groups[0]["lr"])
    return found


CASES = {
    "StepLR(o, 2, 0.5)": [1.0, 1.0, 0.5, 0.5, 0.25, 0.25],
    "MultiStepLR(o, [1, 3], 0.1)": [1.0, 0.1, 0.1, 0.01, 0.01, 0.01],
    "ConstantLR(o, 0.5, 2)": [0.5, 0.5, 1.0, 1.0, 1.0, 1.0],
    "LinearLR(o, 0.5, 1.0, 4)": [0.5, 0.625, 0.75, 0.875, 1.0, 1.0],
    "ExponentialLR(o, 0.9)": [1.0, 0.9, 0.81, 0.729, 0.6561, 0.59049],
    "PolynomialLR(o, 4, 2.0)": [1.0, 0.5625, 0.25, 0.0625, 0.0, 0.0],
    "CosineAnnealingLR(o, 4)": [1.0, 0.853553, 0.5, 0.146447, 0.0, 0.146447],
    "CosineAnnealingWarmRestarts(o, 2, 2)": [1.0, 0.5, 1.0, 0.853553, 0.5, 0.146447],
    "LambdaLR(o, lambda e: 1 / (e + 1))": [1.0, 0.5, 0.333333, 0.25, 0.2, 0.166667],
    "MultiplicativeLR(o, lambda e: 0.5)": [1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125],
    "CyclicLR(o, 0.1, 0.5, 2, cycle_momentum=False)": [0.1, 0.3, 0.5, 0.3, 0.1, 0.3],
    "OneCycleLR(o, 1.0, total_steps=6, cycle_momentum=False)": [
        0.04,
        0.994415,
        0.811746,
        0.462637,
        0.133478,
        4e-06,
    ],
    "SequentialLR(o, [ConstantLR(o, 0.1, 2), ExponentialLR(o, 0.5)], [2])": [
        0.1,
        0.1,
        1.0,
        0.5,
        0.25,
        0.125,
    ],
    "ChainedScheduler([ConstantLR(o, 0.5, 2), ExponentialLR(o, 0.9)])": [
        0.5,
        0.45,
        0.81,
        0.729,
        0.6561,
        0.59049,
    ],
}


def build(text, opt):
    return eval(text, {**vars(schedules), "o": opt})


@pytest.mark.parametrize("text", CASES)
def test_rates(text):
    opt = optimizer()
    assert rates(opt, build(text, opt)) == pytest.approx(CASES[text], abs=1e-6)


@pytest.mark.parametrize("text", [text for text in CASES if "Lambda" not in text])
def test_saved_schedules_go_on(text):
    opt = optimizer()
    scheduler = build(text, opt)
    rates(opt, scheduler, 2)
    saved = copy.deepcopy(scheduler.state_dict())
    other = optimizer()
    resumed = build(text, other)
    resumed.load_state_dict(saved)
    other.load_state_dict(opt.state_dict())
    assert rates(other, resumed, 3)[1:] == pytest.approx(CASES[text][3:], abs=1e-6)


def test_last_rate_is_remembered():
    opt = optimizer()
    scheduler = schedules.StepLR(opt, 1, 0.5)
    rates(opt, scheduler, 1)
    assert scheduler.get_last_lr() == [0.5]


def test_plateau_waits_for_patience():
    opt = optimizer()
    scheduler = schedules.ReduceLROnPlateau(opt, factor=0.5, patience=1, cooldown=1)
    seen = []
    for value in (1.0, 1.0, 1.0, 1.0, 1.0, 1.0):
        scheduler.step(value)
        seen.append(opt.param_groups[0]["lr"])
    assert seen == [1.0, 1.0, 0.5, 0.5, 0.5, 0.25]


def test_plateau_counts_improvements():
    opt = optimizer()
    scheduler = schedules.ReduceLROnPlateau(opt, "max", patience=0)
    for value in (1.0, 2.0, 3.0):
        scheduler.step(value)
    assert opt.param_groups[0]["lr"] == 1.0
    scheduler.step(3.0)
    assert opt.param_groups[0]["lr"] == pytest.approx(0.1)


def test_momentum_cycles_against_the_rate():
    opt = optimizer(momentum=0.9)
    scheduler = schedules.CyclicLR(opt, 0.1, 0.5, 2, base_momentum=0.8, max_momentum=0.9)
    momenta = [opt.param_groups[0]["momentum"]]
    for _ in range(2):
        opt.step()
        scheduler.step()
        momenta.append(opt.param_groups[0]["momentum"])
    assert momenta == pytest.approx([0.9, 0.85, 0.8])


def test_tensor_rates_are_filled_in_place():
    rate = torch.tensor(1.0)
    opt = optimizer(rate)
    scheduler = schedules.ExponentialLR(opt, 0.5)
    opt.step()
    scheduler.step()
    assert opt.param_groups[0]["lr"] is rate
    assert rate.item() == 0.5


def test_order_of_steps_is_checked():
    opt = optimizer()
    scheduler = schedules.StepLR(opt, 1)
    with pytest.warns(UserWarning, match="Detected call of .lr_scheduler.step"):
        scheduler.step()


def test_one_cycle_ends():
    opt = optimizer(momentum=0.9)
    scheduler = schedules.OneCycleLR(opt, 1.0, total_steps=2)
    rates(opt, scheduler, 2)
    with pytest.raises(ValueError, match="Tried to step 3 times"):
        scheduler.step()


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda o: schedules.StepLR(3, 1), TypeError, "int is not an Optimizer"),
        (lambda o: schedules.StepLR(o, 1, last_epoch=3), KeyError, "initial_lr"),
        (lambda o: schedules.ConstantLR(o, 2.0), ValueError, "between 0 and 1"),
        (lambda o: schedules.LambdaLR(o, [abs, abs]), ValueError, "Expected 1 lr_lambdas"),
        (lambda o: schedules.ReduceLROnPlateau(o, factor=1.0), ValueError, "Factor should be"),
        (lambda o: schedules.SequentialLR(o, [], []), ValueError, "at least one scheduler"),
        (lambda o: schedules.OneCycleLR(o, 1.0), ValueError, "You must define either"),
        (lambda o: schedules.CosineAnnealingWarmRestarts(o, 0), ValueError, "positive integer"),
    ],
)
def test_wrong_arguments(make, error, text):
    with pytest.raises(error, match=text):
        make(optimizer())


def test_averaged_model():
    from rushlight import nn
    from rushlight.optim.swa_utils import AveragedModel, get_ema_avg_fn

    layer = nn.Linear(1, 1, bias=False)
    mean, moving = AveragedModel(layer), AveragedModel(layer, avg_fn=get_ema_avg_fn(0.5))
    for value in (1.0, 2.0, 6.0):
        with torch.no_grad():
            layer.weight.fill_(value)
        mean.update_parameters(layer)
        moving.update_parameters(layer)
    assert mean.module.weight.item() == pytest.approx(3.0)
    assert moving.module.weight.item() == pytest.approx(3.75)
