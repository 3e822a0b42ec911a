// Values are those of PyTorch 2.13 on linspace(-2, 2, 5).
#include <gtest/gtest.h>
#include <rushlight/rushlight.h>

#include <string>
#include <vector>

namespace rushlight {
namespace {

using Floats = std::vector<float>;

void expect_near(const Tensor& got, const Floats& expected) {
  ASSERT_EQ(got.numel(), static_cast<int64_t>(expected.size()));
  const Tensor row = got.contiguous();
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(row.data_ptr<float>()[i], expected[i], 1e-6) << "element " << i;
  }
}

struct Case {
  std::shared_ptr<nn::TensorModule> module;
  const char* repr;
  Floats expected;
};

template <typename Holder>
Case make(const Holder& holder, const char* repr, Floats expected) {
  return {holder.ptr(), repr, std::move(expected)};
}

std::vector<Case> cases() {
  return {
      make(nn::ReLU(), "ReLU()", {0, 0, 0, 1, 2}),
      make(nn::ReLU6(), "ReLU6()", {0, 0, 0, 1, 2}),
      make(nn::SiLU(), "SiLU()", {-0.23840584f, -0.26894143f, 0, 0.7310586f, 1.7615941f}),
      make(nn::Mish(), "Mish()", {-0.25250146f, -0.30340144f, 0, 0.86509836f, 1.943959f}),
      make(nn::SELU(), "SELU()", {-1.5201665f, -1.1113307f, 0, 1.050701f, 2.101402f}),
      make(nn::Hardsigmoid(), "Hardsigmoid()",
           {0.16666667f, 0.33333334f, 0.5f, 0.66666669f, 0.83333331f}),
      make(nn::Hardswish(), "Hardswish()",
           {-0.33333334f, -0.33333334f, 0, 0.66666669f, 1.6666666f}),
      make(nn::ELU(0.5), "ELU(alpha=0.5)", {-0.43233237f, -0.31606027f, 0, 1, 2}),
      make(nn::CELU(0.5), "CELU(alpha=0.5)", {-0.49084219f, -0.43233237f, 0, 1, 2}),
      make(nn::LeakyReLU(0.1), "LeakyReLU(negative_slope=0.1)", {-0.2f, -0.1f, 0, 1, 2}),
      make(nn::Sigmoid(), "Sigmoid()", {0.11920292f, 0.26894143f, 0.5f, 0.7310586f, 0.88079703f}),
      make(nn::Tanh(), "Tanh()", {-0.96402758f, -0.76159418f, 0, 0.76159418f, 0.96402758f}),
      make(nn::LogSigmoid(), "LogSigmoid()",
           {-2.1269281f, -1.3132617f, -0.69314718f, -0.31326169f, -0.12692802f}),
      make(nn::Softsign(), "Softsign()", {-0.66666669f, -0.5f, 0, 0.5f, 0.66666669f}),
      make(nn::Tanhshrink(), "Tanhshrink()",
           {-1.0359724f, -0.23840582f, 0, 0.23840582f, 1.0359724f}),
      make(nn::GELU(), "GELU(approximate='none')",
           {-0.0455001f, -0.15865529f, 0, 0.84134471f, 1.9545f}),
      make(nn::GELU("tanh"), "GELU(approximate='tanh')",
           {-0.04540229f, -0.15880799f, 0, 0.84119201f, 1.9545977f}),
      make(nn::Hardshrink(), "Hardshrink(0.5)", {-2, -1, 0, 1, 2}),
      make(nn::Softshrink(), "Softshrink(0.5)", {-1.5f, -0.5f, 0, 0.5f, 1.5f}),
      make(nn::Softplus(2.0, 3.0), "Softplus(beta=2.0, threshold=3.0)",
           {0.0090749646f, 0.063464001f, 0.34657359f, 1.063464f, 2}),
      make(nn::Softmax(0), "Softmax(dim=0)",
           {0.011656231f, 0.03168492f, 0.08612854f, 0.23412165f, 0.63640863f}),
      make(nn::LogSoftmax(0), "LogSoftmax(dim=0)",
           {-4.4519143f, -3.4519143f, -2.4519143f, -1.4519144f, -0.4519144f}),
      make(nn::Softmin(0), "Softmin(dim=0)",
           {0.63640863f, 0.23412165f, 0.08612854f, 0.03168492f, 0.011656231f}),
      make(nn::Hardtanh(-1, 0.5), "Hardtanh(min_val=-1.0, max_val=0.5)", {-1, -1, 0, 0.5f, 0.5f}),
      make(nn::Threshold(0.5, 9), "Threshold(threshold=0.5, value=9.0)", {9, 9, 9, 1, 2}),
      make(nn::PReLU(), "PReLU(num_parameters=1)", {-0.5f, -0.25f, 0, 1, 2}),
      make(nn::Identity(), "Identity()", {-2, -1, 0, 1, 2}),
  };
}

TEST(Activations, HavePyTorchsValuesAndReprs) {
  const Tensor x = linspace(-2, 2, 5);
  for (const Case& item : cases()) {
    SCOPED_TRACE(item.repr);
    EXPECT_EQ(item.module->to_string(), item.repr);
    expect_near(item.module->forward(x), item.expected);
  }
}

TEST(Activations, GluHalvesADimension) {
  expect_near(nn::GLU()(arange(0, 4, TensorOptions(DType::Float32))), {0, 0.95257413f});
  EXPECT_EQ(nn::GLU()->to_string(), "GLU(dim=-1)");
}

TEST(Activations, InplaceOverwritesTheInput) {
  const std::vector<std::shared_ptr<nn::TensorModule>> modules = {
      nn::ReLU(true).ptr(),
      nn::ReLU6(true).ptr(),
      nn::SiLU(true).ptr(),
      nn::Mish(true).ptr(),
      nn::SELU(true).ptr(),
      nn::Hardsigmoid(true).ptr(),
      nn::Hardswish(true).ptr(),
      nn::ELU(nn::ELUOptions().inplace(true)).ptr(),
      nn::CELU(nn::CELUOptions().inplace(true)).ptr(),
      nn::LeakyReLU(0.1, true).ptr(),
      nn::Hardtanh(nn::HardtanhOptions().inplace(true)).ptr(),
      nn::Threshold(0.5, 9, true).ptr(),
  };
  for (const std::shared_ptr<nn::TensorModule>& module : modules) {
    SCOPED_TRACE(module->name());
    const Tensor x = linspace(-2, 2, 5);
    const Tensor before = x.clone();
    const Tensor y = module->forward(x);
    EXPECT_TRUE(y.is_same(x));
    EXPECT_FALSE(equal(x, before));
  }
  EXPECT_EQ(nn::ReLU(true)->to_string(), "ReLU(inplace=True)");
  EXPECT_EQ(nn::ELU(1.0, true)->to_string(), "ELU(alpha=1.0, inplace=True)");
}

TEST(Activations, SoftmaxWithoutDimChoosesByRank) {
  const Tensor x = arange(0, 24, TensorOptions(DType::Float32)).reshape({2, 3, 4}) * 0.1;
  EXPECT_TRUE(equal(nn::Softmax()(x), softmax(x, 0)));
  EXPECT_TRUE(equal(nn::Softmax()(x[0]), softmax(x[0], 1)));
  EXPECT_EQ(nn::Softmax()->to_string(), "Softmax(dim=None)");
}

TEST(Activations, GradientsFlow) {
  for (const Case& item : cases()) {
    SCOPED_TRACE(item.repr);
    const Tensor x = linspace(-1.9, 1.8, 5).requires_grad_();
    const Tensor step = full({5}, 1e-3);
    item.module->forward(x).sum().backward();
    NoGradGuard no_grad;
    const Tensor up = item.module->forward(x.detach() + step);
    const Tensor down = item.module->forward(x.detach() - step);
    const Tensor numeric = (up.sum() - down.sum()) / 2e-3;
    EXPECT_NEAR(x.grad().sum().item<double>(), numeric.item<double>(), 5e-3);
  }
}

TEST(Activations, HardtanhRefusesAnEmptyRange) {
  EXPECT_THROW(nn::Hardtanh(1.0, 1.0), Error);
}

}  // namespace
}  // namespace rushlight
