// The optimizers beside SGD, Adam and AdamW: state, settings, parameters. That they step as
// Python's do is tested by tests/python/binding/test_optim_in_both.py.
#include <gtest/gtest.h>
#include <rushlight/rushlight.h>

#include <functional>
#include <string>
#include <vector>

namespace rushlight {
namespace {

Tensor start() {
  return tensor({{1.0, -2.0}, {3.0, 0.5}}).requires_grad_();
}

void take_step(optim::Optimizer& optimizer, const Tensor& p) {
  optimizer.step([&] {
    optimizer.zero_grad();
    const Tensor loss = (p * p * p * p + p * p).sum();
    loss.backward();
    return loss;
  });
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

// Two steps, the state, two steps more: as with the state in another optimizer.
template <typename O, typename Options>
void expect_resumed(const Options& options) {
  const Tensor a = start();
  const Tensor b = start();
  O straight({a}, options);
  take_step(straight, a);
  take_step(straight, a);
  {
    NoGradGuard no_grad;
    b.copy_(a);
  }
  O second({b}, options);
  const nn::NamedTensors state = straight.state_dict();
  EXPECT_FALSE(state.empty());
  second.load_state_dict(state);
  for (int step = 0; step < 2; ++step) {
    take_step(straight, a);
    take_step(second, b);
  }
  EXPECT_TRUE(equal(a, b)) << a.to_string() << b.to_string();
  EXPECT_FALSE(equal(a, start()));
}

TEST(Optimizers, ResumeToTheSameBits) {
  expect_resumed<optim::Adamax>(optim::AdamaxOptions(0.1));
  expect_resumed<optim::NAdam>(optim::NAdamOptions(0.1));
  expect_resumed<optim::RAdam>(optim::RAdamOptions(0.1));
  expect_resumed<optim::RMSprop>(optim::RMSpropOptions(0.1).momentum(0.9).centered(true));
  expect_resumed<optim::Adagrad>(optim::AdagradOptions(0.1));
  expect_resumed<optim::Adadelta>(optim::AdadeltaOptions());
  expect_resumed<optim::Adafactor>(optim::AdafactorOptions());
  expect_resumed<optim::ASGD>(optim::ASGDOptions().t0(1));
  expect_resumed<optim::Rprop>(optim::RpropOptions());
  expect_resumed<optim::Muon>(optim::MuonOptions());
  expect_resumed<optim::LBFGS>(optim::LBFGSOptions(0.1).max_iter(3));
  expect_resumed<optim::LBFGS>(optim::LBFGSOptions().max_iter(2).line_search_fn("strong_wolfe"));
}

TEST(Optimizers, StateOfBrokenLoadsStays) {
  const Tensor p = start();
  optim::RMSprop optimizer({p}, optim::RMSpropOptions(0.1));
  expect_error(ErrorKind::Value, "of shape [2, 2], got [3]",
               [&] { optimizer.load_state_dict({{"0.square_avg", zeros({3})}}); });
  EXPECT_TRUE(optimizer.state_dict().empty());
  take_step(optimizer, p);
  EXPECT_EQ(optimizer.state_dict().size(), 2U);
}

TEST(Optimizers, AdagradBeginsAtOnce) {
  const Tensor p = start();
  optim::Adagrad optimizer({p}, optim::AdagradOptions(0.1).initial_accumulator_value(2));
  EXPECT_EQ(optimizer.state_dict().size(), 2U);
  EXPECT_TRUE(equal(optimizer.state_dict()[1].second, full({2, 2}, 2.0)));
  const Tensor later = start();
  optimizer.add_param_group({{later}, optim::AdagradOptions(0.1)});
  EXPECT_EQ(optimizer.state_dict().size(), 4U);
}

TEST(Optimizers, AdafactorKeepsRowsAndColumns) {
  const Tensor p = start();
  optim::Adafactor optimizer({p});
  take_step(optimizer, p);
  EXPECT_EQ(optimizer.state_dict()[1].first, "0.row_var");
  EXPECT_EQ(optimizer.state_dict()[1].second.sizes(), IntArrayRef({2, 1}));
  EXPECT_EQ(optimizer.state_dict()[2].second.sizes(), IntArrayRef({1, 2}));
}

TEST(Optimizers, ASingleNumberIsTheRate) {
  const Tensor p = start();
  optim::SGD sgd({p}, 0.25);
  EXPECT_EQ(sgd.group_lr(0), 0.25);
  EXPECT_EQ(*sgd.group_momentum(0), 0);
  optim::Adamax adamax({p}, 0.5);
  EXPECT_EQ(*adamax.group_momentum(0), 0.9);
  EXPECT_FALSE(optim::Rprop({p}).group_momentum(0).has_value());
}

TEST(Optimizers, ComplexParametersAreSteppedByTheirParts) {
  const Tensor p = complex(start().detach(), start().detach() * 2).requires_grad_();
  optim::SGD sgd({p}, optim::SGDOptions(0.1).momentum(0.9));
  optim::Adam adam({p}, optim::AdamOptions(0.1));
  view_as_real(p).square().sum().backward();
  sgd.step();
  EXPECT_TRUE(allclose(view_as_real(p.detach())[0][1], tensor({-2.0, -4.0}) * 0.8));
  adam.step();
  EXPECT_TRUE(allclose(view_as_real(p.detach())[0][1], tensor({-2.0, -4.0}) * 0.8 + 0.1));
}

TEST(Optimizers, RefuseSettingsThatCannotBe) {
  const Tensor p = start();
  expect_error(ErrorKind::Value, "Invalid alpha value: -1",
               [&] { optim::RMSprop({p}, optim::RMSpropOptions().alpha(-1)); });
  expect_error(ErrorKind::Value, "Invalid rho value: 2",
               [&] { optim::Adadelta({p}, optim::AdadeltaOptions().rho(2)); });
  expect_error(ErrorKind::Value, "Invalid lr_decay value: -1",
               [&] { optim::Adagrad({p}, optim::AdagradOptions().lr_decay(-1)); });
  expect_error(ErrorKind::Value, "Invalid beta parameter at index 0: 1",
               [&] { optim::RAdam({p}, optim::RAdamOptions().betas({1, 0.9})); });
  expect_error(ErrorKind::Value, "Invalid momentum_decay value: -1",
               [&] { optim::NAdam({p}, optim::NAdamOptions().momentum_decay(-1)); });
  expect_error(ErrorKind::Value, "Invalid eta values: 2, 3",
               [&] { optim::Rprop({p}, optim::RpropOptions().etas({2, 3})); });
  expect_error(ErrorKind::Value, "Clipping threshold d should be >= 1 but is: 0.5",
               [&] { optim::Adafactor({p}, optim::AdafactorOptions().d(0.5)); });
  expect_error(ErrorKind::Value, "Adjust learning rate function best is not supported",
               [&] { optim::Muon({p}, optim::MuonOptions().adjust_lr_fn("best")); });
  expect_error(ErrorKind::Value, "Muon only supports 2D parameters",
               [&] { optim::Muon({tensor({1.0}).requires_grad_()}); });
  expect_error(ErrorKind::Value, "Invalid learning rate: -1",
               [&] { optim::LBFGS({p}, optim::LBFGSOptions(-1)); });
}

TEST(LBFGS, NeedsAClosureAndAKnownSearch) {
  const Tensor p = start();
  optim::LBFGS plain({p});
  expect_error(ErrorKind::Type, "missing 1 required positional argument: 'closure'",
               [&] { plain.step(); });
  optim::LBFGS odd({p}, optim::LBFGSOptions().line_search_fn("golden"));
  expect_error(ErrorKind::Runtime, "only 'strong_wolfe' is supported", [&] { take_step(odd, p); });
  expect_error(ErrorKind::Value, "keeps it for the first parameter only",
               [&] { plain.load_state_dict({{"1.d", zeros({4})}}); });
}

TEST(LBFGS, FindsTheLeastSquares) {
  const Tensor x = tensor({{1.0, 2.0}, {3.0, -1.0}, {0.5, 1.0}});
  const Tensor wanted = tensor({2.0, -3.0});
  const Tensor w = zeros({2}).requires_grad_();
  optim::LBFGS optimizer({w}, optim::LBFGSOptions().line_search_fn("strong_wolfe"));
  optimizer.step([&] {
    optimizer.zero_grad();
    const Tensor loss = (matmul(x, w) - matmul(x, wanted)).square().sum();
    loss.backward();
    return loss;
  });
  EXPECT_TRUE(allclose(w, wanted, 1e-4, 1e-4)) << w.to_string();
}

}  // namespace
}  // namespace rushlight
