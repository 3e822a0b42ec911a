// Three steps on sum(p^2 [1, 2, 3]) from [1, -2, 3]; values are those of PyTorch 2.13.
#include <gtest/gtest.h>
#include <rushlight/rushlight.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace rushlight {
namespace {

using optim::AdamOptions;
using optim::AdamWOptions;
using optim::Group;
using optim::SGDOptions;

Tensor start() {
  return tensor({1.0, -2.0, 3.0}).requires_grad_();
}

Tensor loss_of(const Tensor& p) {
  return (p * p * tensor({1.0, 2.0, 3.0})).sum();
}

void take_step(optim::Optimizer& optimizer, const Tensor& p) {
  optimizer.zero_grad();
  loss_of(p).backward();
  optimizer.step();
}

template <typename O, typename Options>
void expect_after_three(const Options& options, const std::vector<float>& expected) {
  const Tensor p = start();
  O optimizer({p}, options);
  for (int step = 0; step < 3; ++step) {
    take_step(optimizer, p);
  }
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(p.data_ptr<float>()[i], expected[i], 1e-6) << "element " << i;
  }
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

TEST(SGD, StepsAsPyTorch) {
  expect_after_three<optim::SGD>(SGDOptions(0.1), {0.51199996f, -0.43200001f, 0.19199996f});
  expect_after_three<optim::SGD>(SGDOptions(0.1).momentum(0.9), {0.062f, 1.08f, -2.562f});
  expect_after_three<optim::SGD>(SGDOptions(0.1).momentum(0.9).nesterov(true).weight_decay(0.1),
                                 {-0.14046837f, 0.86976862f, -0.87475759f});
  expect_after_three<optim::SGD>(SGDOptions(0.1).momentum(0.9).dampening(0.5),
                                 {0.25200003f, 0.67199999f, -2.3280001f});
  expect_after_three<optim::SGD>(SGDOptions(0.01).maximize(true),
                                 {1.061208f, -2.249728f, 3.5730481f});
}

TEST(Adam, StepsAsPyTorch) {
  expect_after_three<optim::Adam>(AdamOptions(0.1), {0.70158631f, -1.7006234f, 2.7003815f});
  expect_after_three<optim::Adam>(AdamOptions(0.1).betas({0.5, 0.9}).eps(0.1).weight_decay(0.1),
                                  {0.71970636f, -1.7063693f, 2.7034044f});
  expect_after_three<optim::Adam>(AdamOptions(0.1).amsgrad(true).maximize(true),
                                  {1.30049f, -2.3003523f, 3.300261f});
}

TEST(AdamW, StepsAsPyTorch) {
  expect_after_three<optim::AdamW>(AdamWOptions(0.1), {0.69891125f, -1.6949446f, 2.6917036f});
  expect_after_three<optim::AdamW>(AdamWOptions(0.1).weight_decay(0.5).amsgrad(true),
                                   {0.57497394f, -1.4310251f, 2.2880518f});
}

TEST(Optimizer, StateResumesToTheSameBits) {
  const auto resumed = [](auto make) {
    const Tensor a = start();
    const Tensor b = start();
    auto straight = make(a);
    take_step(straight, a);
    const nn::NamedTensors state = straight.state_dict();
    {
      NoGradGuard no_grad;
      b.copy_(a);
    }
    auto second = make(b);
    second.load_state_dict(state);
    for (int step = 0; step < 3; ++step) {
      take_step(straight, a);
      take_step(second, b);
    }
    EXPECT_TRUE(equal(a, b));
  };
  resumed([](const Tensor& p) { return optim::SGD({p}, SGDOptions(0.1).momentum(0.9)); });
  resumed([](const Tensor& p) { return optim::Adam({p}, AdamOptions(0.1).amsgrad(true)); });
  resumed([](const Tensor& p) { return optim::AdamW({p}, AdamWOptions(0.1)); });
}

TEST(Optimizer, StateIsNamedByParameterAndField) {
  const Tensor p = start();
  const Tensor idle = start();
  optim::Adam adam({idle, p}, AdamOptions(0.1).amsgrad(true));
  EXPECT_TRUE(adam.state_dict().empty());
  take_step(adam, p);
  std::vector<std::string> names;
  for (const auto& [name, tensor] : adam.state_dict()) {
    names.push_back(name);
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"1.step", "1.exp_avg", "1.exp_avg_sq", "1.max_exp_avg_sq"}));
  EXPECT_EQ(adam.state_dict()[0].second.item<double>(), 1);
}

TEST(Optimizer, GroupsHaveSettingsOfTheirOwn) {
  const Tensor fast = start();
  const Tensor still = start();
  optim::SGD sgd(
      {Group<SGDOptions>{{fast}, SGDOptions(0.1)}, Group<SGDOptions>{{still}, SGDOptions(0)}});
  (loss_of(fast) + loss_of(still)).backward();
  sgd.step();
  EXPECT_FALSE(equal(fast, start()));
  EXPECT_TRUE(equal(still, start()));
  sgd.set_lr(0.1);
  sgd.step();
  EXPECT_FALSE(equal(still, start()));
  EXPECT_EQ(sgd.param_groups().size(), 2U);
}

TEST(Optimizer, GroupsMayComeLater) {
  const Tensor first = start();
  const Tensor later = start();
  optim::AdamW optimizer({first}, AdamWOptions(0.1));
  optimizer.add_param_group({{later}, AdamWOptions(0.1)});
  (loss_of(first) + loss_of(later)).backward();
  optimizer.step();
  EXPECT_TRUE(equal(first, later));
  EXPECT_EQ(optimizer.parameters().size(), 2U);
  expect_error(ErrorKind::Value, "more than one parameter group",
               [&] { optimizer.add_param_group({{first}, AdamWOptions(0.1)}); });
  EXPECT_EQ(optimizer.param_groups().size(), 2U);
}

TEST(Optimizer, StepTakesAClosure) {
  const Tensor p = start();
  optim::SGD sgd({p}, SGDOptions(0.1));
  NoGradGuard no_grad;
  const Tensor loss = sgd.step([&] {
    sgd.zero_grad();
    Tensor value = loss_of(p);
    value.backward();
    return value;
  });
  EXPECT_EQ(loss.item<double>(), 36);
  EXPECT_FALSE(equal(p, start()));
}

TEST(Optimizer, ParametersWithoutGradientStay) {
  const Tensor p = start();
  optim::AdamW optimizer({p}, AdamWOptions(0.1));
  optimizer.step();
  EXPECT_TRUE(equal(p, start()));
}

TEST(Optimizer, ZeroGradForgetsOrClears) {
  const Tensor p = start();
  optim::SGD sgd({p}, SGDOptions(0.1));
  loss_of(p).backward();
  sgd.zero_grad(false);
  EXPECT_TRUE(equal(p.grad(), zeros({3})));
  sgd.zero_grad();
  EXPECT_FALSE(p.grad().defined());
}

TEST(Optimizer, HalfPrecisionParametersAreStepped) {
  const Tensor p = start().detach().to(DType::BFloat16).requires_grad_();
  optim::AdamW optimizer({p}, AdamWOptions(0.1));
  p.square().sum().backward();
  optimizer.step();
  EXPECT_NEAR(p[0].item<double>(), 0.9, 0.01);
}

TEST(Optimizer, RefusesSettingsThatCannotBe) {
  const Tensor p = start();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  expect_error(ErrorKind::Value, "Invalid learning rate: -1",
               [&] { optim::SGD({p}, SGDOptions(-1)); });
  expect_error(ErrorKind::Value, "Invalid learning rate",
               [&] { optim::Adam({p}, AdamOptions(nan)); });
  expect_error(ErrorKind::Value, "Invalid momentum value",
               [&] { optim::SGD({p}, SGDOptions(0.1).momentum(-0.5)); });
  expect_error(ErrorKind::Value, "Invalid weight_decay value",
               [&] { optim::AdamW({p}, AdamWOptions(0.1).weight_decay(-1)); });
  expect_error(ErrorKind::Value, "Invalid epsilon value",
               [&] { optim::Adam({p}, AdamOptions(0.1).eps(-1)); });
  expect_error(ErrorKind::Value, "Invalid beta parameter at index 1: 1",
               [&] { optim::Adam({p}, AdamOptions(0.1).betas({0.9, 1.0})); });
  expect_error(ErrorKind::Value, "Nesterov momentum requires a momentum and zero dampening",
               [&] { optim::SGD({p}, SGDOptions(0.1).nesterov(true)); });
}

TEST(Optimizer, RefusesParametersThatCannotBe) {
  const Tensor p = start();
  expect_error(ErrorKind::Value, "empty parameter list",
               [] { optim::SGD(std::vector<Tensor>{}, SGDOptions(0.1)); });
  expect_error(ErrorKind::Value, "non-leaf", [&] { optim::SGD({p * 2}, SGDOptions(0.1)); });
  expect_error(ErrorKind::Value, "twice", [&] { optim::SGD({p, p}, SGDOptions(0.1)); });
  expect_error(ErrorKind::Type, "can only optimize Tensors",
               [&] { optim::SGD({Tensor()}, SGDOptions(0.1)); });
}

TEST(Optimizer, RefusesStateThatDoesNotFit) {
  const Tensor p = start();
  optim::Adam adam({p}, AdamOptions(0.1));
  optim::SGD sgd({p}, SGDOptions(0.1).momentum(0.9));
  const auto load = [](optim::Optimizer& optimizer, const char* name, const Tensor& value) {
    return [&optimizer, name, value] { optimizer.load_state_dict({{name, value}}); };
  };
  expect_error(ErrorKind::Value, "names like '0.exp_avg'", load(adam, "exp_avg", zeros({3})));
  expect_error(ErrorKind::Value, "names like '0.exp_avg'",
               load(adam, "99999999999999999999999.step", zeros({})));
  expect_error(ErrorKind::Value, "is no state of this optimizer",
               load(adam, "0.momentum_buffer", zeros({3})));
  expect_error(ErrorKind::Value, "is no state of this optimizer",
               load(sgd, "0.exp_avg", zeros({3})));
  expect_error(ErrorKind::Value, "the optimizer has 1", load(adam, "1.exp_avg", zeros({3})));
  expect_error(ErrorKind::Value, "of shape [3], got [1]", load(adam, "0.exp_avg", zeros({1})));
  expect_error(ErrorKind::Value, "got nothing", load(sgd, "0.momentum_buffer", Tensor()));
}

}  // namespace
}  // namespace rushlight
