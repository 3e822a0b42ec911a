// Schedules: state and errors. That they give Python's rates is tested by
// tests/python/binding/test_optim_in_both.py.
#include <gtest/gtest.h>
#include <rushlight/rushlight.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace rushlight {
namespace {

using namespace optim::lr_scheduler;

optim::SGD two_groups() {
  using Group = optim::Group<optim::SGDOptions>;
  return optim::SGD({Group{{ones({1}).requires_grad_()}, optim::SGDOptions(0.1)},
                     Group{{ones({1}).requires_grad_()}, optim::SGDOptions(0.2)}});
}

void expect_error(ErrorKind kind, const std::string& text, const std::function<void()>& body) {
  try {
    body();
    ADD_FAILURE() << "no error; expected: " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

using Make = std::function<std::shared_ptr<LRScheduler>(optim::Optimizer&)>;

void expect_resumed(const Make& make, std::optional<double> metric = {}) {
  optim::SGD first = two_groups();
  optim::SGD second = two_groups();
  const auto straight = make(first);
  const auto resumed = make(second);
  for (int epoch = 0; epoch < 5; ++epoch) {
    first.step();
    straight->step(metric);
  }
  second.step();
  resumed->load_state_dict(straight->state_dict());
  for (int epoch = 0; epoch < 10; ++epoch) {
    EXPECT_EQ(straight->get_last_lr(), resumed->get_last_lr()) << epoch;
    EXPECT_EQ(second.group_lr(1), first.group_lr(1));
    straight->step(metric);
    resumed->step(metric);
  }
}

TEST(Schedules, Resume) {
  expect_resumed([](auto& o) { return std::make_shared<StepLR>(o, 4); });
  expect_resumed([](auto& o) { return std::make_shared<CosineAnnealingWarmRestarts>(o, 3, 2); });
  expect_resumed([](auto& o) { return std::make_shared<OneCycleLR>(o, 0.3, 20); });
  expect_resumed([](auto& o) { return std::make_shared<ReduceLROnPlateau>(o, "min", 0.5, 2); }, 1);
  expect_resumed([](auto& o) {
    return std::make_shared<SequentialLR>(
        o, Schedulers{std::make_shared<ConstantLR>(o), std::make_shared<ExponentialLR>(o, 0.9)},
        std::vector<int64_t>{7});
  });
}

TEST(Schedules, RefuseStateThatDoesNotFit) {
  optim::SGD sgd = two_groups();
  StepLR schedule(sgd, 4);
  nn::NamedTensors state = schedule.state_dict();
  const std::vector<double> rates = schedule.get_last_lr();
  state.pop_back();
  expect_error(ErrorKind::Key, "the state has no '_last_lr'",
               [&] { schedule.load_state_dict(state); });
  state.emplace_back("_last_lr", ones({}));
  expect_error(ErrorKind::Value, "expected '_last_lr' to have 1 dimensions",
               [&] { schedule.load_state_dict(state); });
  state.back() = {"_last_lr", ones({2})};
  state.emplace_back("T_cur", ones({}));
  expect_error(ErrorKind::Value, "expected the 4 names of this schedule, got 5",
               [&] { schedule.load_state_dict(state); });
  EXPECT_EQ(schedule.get_last_lr(), rates);
}

TEST(Schedules, RefuseSettingsThatCannotBe) {
  optim::SGD sgd = two_groups();
  expect_error(ErrorKind::Value, "Constant multiplicative factor expected to be between 0 and 1.",
               [&] { ConstantLR(sgd, 2); });
  expect_error(ErrorKind::Value, "Starting multiplicative factor", [&] { LinearLR(sgd, 0); });
  expect_error(ErrorKind::Value, "Expected positive integer T_0, but got 0",
               [&] { CosineAnnealingWarmRestarts(sgd, 0); });
  expect_error(ErrorKind::Value, "mode is invalid and scale_fn is None",
               [&] { CyclicLR(sgd, 0.1, 0.2, 5, {}, "square"); });
  expect_error(ErrorKind::Value, "base_lr has 3 values, param_groups has 2",
               [&] { CyclicLR(sgd, {0.1, 0.2, 0.3}, 0.2); });
  expect_error(ErrorKind::Value, "You must define either total_steps OR",
               [&] { OneCycleLR(sgd, 0.1); });
  expect_error(ErrorKind::Value, "anneal_strategy must be one of 'cos' or 'linear'",
               [&] { OneCycleLR(sgd, 0.1, 10, {}, {}, 0.3, "sine"); });
  expect_error(ErrorKind::Value, "Factor should be < 1.0.",
               [&] { ReduceLROnPlateau(sgd, "min", 1); });
  expect_error(ErrorKind::Value, "mode least is unknown!",
               [&] { ReduceLROnPlateau(sgd, "least"); });
  expect_error(ErrorKind::Value, "Expected 2 lr_lambdas, but got 1",
               [&] { LambdaLR(sgd, std::vector<Lambda>{[](int64_t) { return 1.0; }}); });
  optim::Rprop rprop({ones({1}).requires_grad_()});
  expect_error(ErrorKind::Value, "optimizer must support momentum or beta1",
               [&] { OneCycleLR(rprop, 0.1, 10); });
}

TEST(Schedules, ResumingNeedsTheFirstRates) {
  optim::SGD sgd = two_groups();
  expect_error(ErrorKind::Key, "param 'initial_lr' is not specified in param_groups[0]",
               [&] { StepLR(sgd, 3, 0.1, 5); });
}

TEST(Schedules, RefuseSchedulesThatCannotBeJoined) {
  optim::SGD sgd = two_groups();
  optim::SGD other = two_groups();
  const auto step = std::make_shared<StepLR>(sgd, 3);
  expect_error(ErrorKind::Value, "expects at least one scheduler to be chained",
               [&] { ChainedScheduler(Schedulers{}); });
  expect_error(ErrorKind::Value, "a scheduler of another at index 1",
               [&] { SequentialLR(sgd, {step, std::make_shared<StepLR>(other, 3)}, {2}); });
  expect_error(ErrorKind::Value, "got number of schedulers 1 and the number of milestones",
               [&] { SequentialLR(sgd, {step}, {2}); });
  expect_error(ErrorKind::Value, "does not support `ReduceLROnPlateau` scheduler", [&] {
    ChainedScheduler(Schedulers{step, std::make_shared<ReduceLROnPlateau>(sgd)});
  });
}

TEST(Schedules, PlateausNeedAMetric) {
  optim::SGD sgd = two_groups();
  ReduceLROnPlateau schedule(sgd);
  expect_error(ErrorKind::Type, "missing 1 required positional argument: 'metrics'",
               [&] { schedule.step(); });
}

TEST(Schedules, AnEpochGoesThereByTheClosedForm) {
  optim::SGD sgd = two_groups();
  sgd.step();
  ExponentialLR schedule(sgd, 0.5);
  schedule.step(3);
  EXPECT_EQ(schedule.get_last_lr(), (std::vector<double>{0.1 * 0.125, 0.2 * 0.125}));
  EXPECT_EQ(schedule.last_epoch(), 3);
}

}  // namespace
}  // namespace rushlight
