"""Optimizers and schedules take the same steps in C++, to the last bit."""

from __future__ import annotations

import pytest
import rushlight as torch
from rushlight.optim import lr_scheduler

from . import cpp_program
from .cpp_program import Both, literal, python

if not cpp_program.AVAILABLE:
    pytest.skip("needs a C++ compiler and the build", allow_module_level=True)

STEPS = 12
# An optimizer with settings.
CASES = [
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.01, "maximize": True}),
    ("Adam", {"lr": 0.1, "amsgrad": True}),
    ("AdamW", {"lr": 0.1, "weight_decay": 0.5}),
    ("Adamax", {}),
    ("Adamax", {"lr": 0.1, "betas": (0.5, 0.9), "eps": 0.1, "weight_decay": 0.1, "maximize": True}),
    ("NAdam", {}),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1, "momentum_decay": 0.1, "maximize": True}),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"lr": 0.1}),
    ("RAdam", {"lr": 0.1, "betas": (0.9, 0.99), "weight_decay": 0.1}),
    ("RAdam", {"lr": 1e-3, "weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}),
    ("RMSprop", {}),
    ("RMSprop", {"lr": 0.1, "alpha": 0.9, "momentum": 0.9, "centered": True, "weight_decay": 0.1}),
    ("Adagrad", {}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "initial_accumulator_value": 0.5, "maximize": True}),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.5, "rho": 0.8, "eps": 1e-4, "weight_decay": 0.1}),
    ("ASGD", {}),
    ("ASGD", {"lr": 0.02, "lambd": 0.01, "t0": 3, "weight_decay": 0.1}),
    ("Rprop", {}),
    ("Rprop", {"lr": 0.1, "etas": (0.4, 1.3), "step_sizes": (1e-3, 0.3), "maximize": True}),
    ("Adafactor", {}),
    ("Adafactor", {"lr": 0.1, "eps": (1e-5, 1e-2), "d": 2.0, "weight_decay": 0.1}),
    ("Muon", {}),
    ("Muon", {"lr": 0.1, "nesterov": False, "adjust_lr_fn": "match_rms_adamw", "ns_steps": 3}),
    ("LBFGS", {"lr": 0.05, "max_iter": 4}),
    ("LBFGS", {"line_search_fn": "strong_wolfe", "max_iter": 3, "history_size": 2}),
]
# What an optimizer cannot take.
LACKS = {"Adafactor": {"complex"}, "Muon": {"complex", "vector"}, "LBFGS": {"complex"}}
# One operator steps real parameters; Python steps complex ones by others, which round elsewhere.
LACKS |= {name: {"complex"} for name in ("SGD", "Adam", "AdamW")}

ONCE = Both(lambda epoch: 0.9**epoch, "[](int64_t epoch) { return std::pow(0.9, epoch); }")
SCALE = Both(lambda x: 1 / (1 + x), "[](double x) { return 1 / (1 + x); }")


class Made:
    """A schedule with positional arguments, the optimizer before them."""

    def __init__(self, name: str, *arguments: object) -> None:
        self.name = name
        self.arguments = arguments

    def cpp(self) -> str:
        return ", ".join(["optimizer", *map(self.literal, self.arguments)])

    def literal(self, value: object) -> str:
        if isinstance(value, list) and value and isinstance(value[0], Made):
            made = [f"std::make_shared<schedules::{m.name}>({m.cpp()})" for m in value]
            return "schedules::Schedulers{" + ", ".join(made) + "}"
        return literal(value)

    def python(self, optimizer):
        def argument(value):
            if isinstance(value, list) and value and isinstance(value[0], Made):
                return [one.python(optimizer) for one in value]
            return python(value)

        arguments = [argument(value) for value in self.arguments]
        if self.name == "ChainedScheduler":
            return lr_scheduler.ChainedScheduler(*arguments, optimizer)
        return getattr(lr_scheduler, self.name)(optimizer, *arguments)


EPOCHS = 40
SCHEDULES = [
    Made("LambdaLR", ONCE),
    Made("MultiplicativeLR", ONCE),
    Made("StepLR", 7),
    Made("StepLR", 3, 0.7),
    Made("MultiStepLR", [5, 11, 11, 20], 0.3),
    Made("ConstantLR"),
    Made("ConstantLR", 0.3, 9),
    Made("LinearLR"),
    Made("LinearLR", 0.1, 0.7, 13),
    Made("ExponentialLR", 0.9),
    Made("PolynomialLR"),
    Made("PolynomialLR", 21, 0.7),
    Made("CosineAnnealingLR", 10),
    Made("CosineAnnealingLR", 7, 0.01),
    Made("CosineAnnealingWarmRestarts", 5),
    Made("CosineAnnealingWarmRestarts", 3, 2, 0.01),
    Made("CyclicLR", 0.01, 0.1, 7),
    Made("CyclicLR", 0.01, 0.1, 4, 3, "triangular2"),
    Made("CyclicLR", [0.01, 0.02], [0.1, 0.3], 5, 9, "exp_range", 0.97),
    Made("CyclicLR", 0.01, 0.1, 4, None, "triangular", 1.0, SCALE, "iterations", False),
    Made("OneCycleLR", 0.3, 45),
    Made("OneCycleLR", [0.3, 0.2], None, 5, 9, 0.4, "linear", True, 0.8, 0.9, 10.0, 100.0, True),
    Made("SequentialLR", [Made("ConstantLR"), Made("ExponentialLR", 0.9)], [8]),
    Made(
        "SequentialLR",
        [Made("LinearLR"), Made("CosineAnnealingLR", 9), Made("StepLR", 4), Made("LambdaLR", ONCE)],
        [5, 15, 30],
    ),
    Made("ChainedScheduler", [Made("ConstantLR"), Made("ExponentialLR", 0.9)]),
    Made("ReduceLROnPlateau"),
    Made("ReduceLROnPlateau", "max", 0.5, 2, 1e-3, "abs", 3, 0.01),
]
METRICS = [round(1 / (1 + 0.3 * min(step, 9)) + 0.001 * (step % 3), 6) for step in range(EPOCHS)]

PROGRAM = """\
#include <rushlight/rushlight.h>

#include <cmath>
#include <cstdio>
#include <optional>

using namespace rushlight;
namespace schedules = optim::lr_scheduler;

void show(const char* name, const std::vector<double>& values) {
  std::printf("%s", name);
  for (double value : values) std::printf(" %a", value);
  std::printf("\\n");
}

std::vector<Tensor> start(bool with_vector, bool with_complex) {
  std::vector<Tensor> made = {(arange(12).to(DType::Float32) / 7 - 1).reshape({4, 3})};
  if (with_vector) made.push_back(arange(5).to(DType::Float32) / 3 - 1);
  if (with_complex) made.push_back(complex(made[1], made[1] * 2 + 1));
  for (Tensor& one : made) one.requires_grad_();
  return made;
}

Tensor loss_of(const std::vector<Tensor>& params) {
  Tensor loss = zeros({});
  for (const Tensor& p : params) {
    const Tensor real = p.is_complex() ? view_as_real(p) : p;
    const Tensor moved = real - 0.3;
    loss = loss + (moved * moved * (real * real + 0.5)).sum();
  }
  return loss;
}

template <typename O>
void run(const char* name, O&& optimizer, const std::vector<Tensor>& params) {
  for (int step = 0; step < STEPS; ++step) {
    optimizer.step([&] {
      optimizer.zero_grad();
      const Tensor loss = loss_of(params);
      loss.backward();
      return loss;
    });
    std::vector<double> values;
    for (const Tensor& p : params) {
      const Tensor flat = (p.is_complex() ? view_as_real(p) : p).detach().reshape({-1});
      for (int64_t i = 0; i < flat.numel(); ++i) values.push_back(flat[i].item<double>());
    }
    show(name, values);
  }
}

std::optional<double> metric(schedules::LRScheduler& schedule, int step) {
  const double metrics[] = METRICS;
  return schedule.needs_metrics() ? std::optional<double>(metrics[step]) : std::nullopt;
}

template <typename S, typename Make>
void follow(const char* name, Make&& make) {
  optim::Adam optimizer({{{ones({1}).requires_grad_()}, optim::AdamOptions(0.1)},
                         {{ones({1}).requires_grad_()}, optim::AdamOptions(0.04)}});
  const auto schedule = make(optimizer);
  for (int step = 0; step < EPOCHS; ++step) {
    std::vector<double> values = schedule->get_last_lr();
    values.push_back(*optimizer.group_momentum(1));
    show(name, values);
    optimizer.step();
    schedule->step(metric(*schedule, step));
  }
}

int main() {
BODY
}
"""


def settings_in_cpp(name: str, settings: dict) -> str:
    calls = "".join(f".{key}({literal(value)})" for key, value in settings.items())
    return f"optim::{name}Options(){calls}"


def optimizer_line(number: int, name: str, settings: dict) -> str:
    lacks = LACKS.get(name, set())
    start = f"start({literal('vector' not in lacks)}, {literal('complex' not in lacks)})"
    made = f"optim::{name}(params, {settings_in_cpp(name, settings)})"
    return f'  {{ const auto params = {start}; run("optimizer{number}", {made}, params); }}'


def schedule_line(number: int, made: Made) -> str:
    if made.name == "ChainedScheduler":
        inner = made.literal(made.arguments[0])
        call = f"{inner}, &optimizer"
    else:
        call = made.cpp()
    kind = f"schedules::{made.name}"
    body = (
        f"[](optim::Optimizer& optimizer) {{ return std::unique_ptr<{kind}>(new {kind}({call})); }}"
    )
    return f'  follow<{kind}>("schedule{number}", {body});'


@pytest.fixture(scope="module")
def printed(tmp_path_factory) -> dict[str, list[list[float]]]:
    lines = [optimizer_line(number, *case) for number, case in enumerate(CASES)]
    lines += [schedule_line(number, made) for number, made in enumerate(SCHEDULES)]
    text = PROGRAM.replace("BODY", "\n".join(lines)).replace("METRICS", literal(METRICS))
    text = text.replace("STEPS", str(STEPS)).replace("EPOCHS", str(EPOCHS))
    found: dict[str, list[list[float]]] = {}
    for line in cpp_program.output(text, tmp_path_factory.mktemp("program")):
        name, *values = line.split()
        found.setdefault(name, []).append([float.fromhex(value) for value in values])
    return found


def start(lacks: set[str]) -> list[torch.Tensor]:
    made = [(torch.arange(12).float() / 7 - 1).reshape(4, 3)]
    vector = torch.arange(5).float() / 3 - 1
    if "vector" not in lacks:
        made.append(vector)
    if "complex" not in lacks:
        made.append(torch.complex(vector, vector * 2 + 1))
    return [one.requires_grad_() for one in made]


def real(tensor: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def loss_of(params: list[torch.Tensor]) -> torch.Tensor:
    loss = torch.zeros(())
    for p in map(real, params):
        moved = p - 0.3
        loss = loss + (moved * moved * (p * p + 0.5)).sum()
    return loss


@pytest.mark.parametrize("number", range(len(CASES)), ids=[f"{n}-{s}" for n, s in CASES])
def test_optimizer(printed, number) -> None:
    name, settings = CASES[number]
    params = start(LACKS.get(name, set()))
    optimizer = getattr(torch.optim, name)(params, **settings)

    def closure():
        optimizer.zero_grad()
        loss = loss_of(params)
        loss.backward()
        return loss

    expected = []
    for _ in range(STEPS):
        optimizer.step(closure)
        expected.append([x for p in params for x in real(p.detach()).reshape(-1).tolist()])
    assert printed[f"optimizer{number}"] == expected
    assert expected[0] != expected[-1]


@pytest.mark.parametrize("number", range(len(SCHEDULES)), ids=[made.name for made in SCHEDULES])
def test_schedule(printed, number) -> None:
    groups = [{"params": [torch.ones(1, requires_grad=True)], "lr": lr} for lr in (0.1, 0.04)]
    optimizer = torch.optim.Adam(groups)
    schedule = SCHEDULES[number].python(optimizer)
    expected = []
    for step in range(EPOCHS):
        expected.append([*schedule.get_last_lr(), optimizer.param_groups[1]["betas"][0]])
        optimizer.step()
        plateau = isinstance(schedule, lr_scheduler.ReduceLROnPlateau)
        schedule.step(METRICS[step]) if plateau else schedule.step()
    assert printed[f"schedule{number}"] == expected
    assert any(row != expected[0] for row in expected)
