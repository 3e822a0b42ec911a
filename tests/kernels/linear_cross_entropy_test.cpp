#include "kernels/linear_cross_entropy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "matrix_fixture.h"
#include "runtime/parallel.h"

namespace rushlight {
namespace {

using testing::PrecisionGuard;

struct Sizes {
  int64_t rows;
  int64_t features;
  int64_t classes;
};

// Operands in f32, and what the kernels give of them.
struct Problem {
  Sizes size;
  std::vector<float> input;
  std::vector<float> weight;
  std::vector<float> bias;
  std::vector<int64_t> target;
  std::vector<float> loss;
  std::vector<float> logsumexp;
  std::vector<float> input_gradient;
  std::vector<float> weight_gradient;
  std::vector<float> bias_gradient;

  explicit Problem(const Sizes& sizes) : size(sizes) {
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    auto fill = [&](std::vector<float>& x, int64_t count) {
      x.resize(static_cast<size_t>(count));
      for (float& value : x) {
        value = normal(random);
      }
    };
    fill(input, size.rows * size.features);
    fill(weight, size.classes * size.features);
    fill(bias, size.classes);
    for (int64_t i = 0; i < size.rows; ++i) {
      target.push_back(i % 5 == 4 ? -100 : static_cast<int64_t>(random() % size.classes));
    }
    loss.resize(static_cast<size_t>(size.rows));
    logsumexp = loss;
    input_gradient.resize(input.size());
    weight_gradient.resize(weight.size());
    bias_gradient.resize(bias.size());
  }

  LinearCrossEntropy problem() const {
    LinearCrossEntropy made{};
    made.dtype = DType::Float32;
    made.rows = size.rows;
    made.features = size.features;
    made.classes = size.classes;
    made.input = {input.data(), DType::Float32, size.features, 1};
    made.weight = {weight.data(), DType::Float32, size.features, 1};
    made.bias = bias.data();
    made.target = target.data();
    made.smoothing = 0.1;
    return made;
  }

  LinearCrossEntropyGradients gradients() {
    std::fill(input_gradient.begin(), input_gradient.end(), 0.0F);
    LinearCrossEntropyGradients made;
    made.loss_scale = 0.5;
    made.square_scale = 0.01;
    made.input = input_gradient.data();
    made.weight = {weight_gradient.data(), DType::Float32, size.features, 1};
    made.bias = bias_gradient.data();
    return made;
  }
};

// The definition, in f64.
struct Expected {
  std::vector<double> loss;
  std::vector<double> logsumexp;
  std::vector<double> input;
  std::vector<double> weight;
  std::vector<double> bias;

  explicit Expected(const Problem& p) {
    const auto [rows, features, classes] = p.size;
    input.resize(p.input.size());
    weight.resize(p.weight.size());
    bias.resize(p.bias.size());
    for (int64_t i = 0; i < rows; ++i) {
      const float* x = p.input.data() + i * features;
      std::vector<double> scores;
      double most = -1e300;
      for (int64_t c = 0; c < classes; ++c) {
        double score = p.bias[static_cast<size_t>(c)];
        for (int64_t f = 0; f < features; ++f) {
          score += double{x[f]} * double{p.weight[static_cast<size_t>(c * features + f)]};
        }
        scores.push_back(score);
        most = std::max(most, score);
      }
      double total = 0;
      double sum = 0;
      for (double score : scores) {
        total += std::exp(score - most);
        sum += score;
      }
      const double lse = most + std::log(total);
      const int64_t t = p.target[static_cast<size_t>(i)];
      const bool counts = t >= 0;
      const auto n = static_cast<double>(classes);
      logsumexp.push_back(lse);
      loss.push_back(counts ? 0.9 * (lse - scores[static_cast<size_t>(t)]) + 0.1 * (lse - sum / n)
                            : 0);
      for (int64_t c = 0; counts && c < classes; ++c) {
        const double q = std::exp(scores[static_cast<size_t>(c)] - lse);
        const double change = 0.5 * (q - (c == t ? 0.9 : 0) - 0.1 / n) + 0.01 * 2 * lse * q;
        bias[static_cast<size_t>(c)] += change;
        for (int64_t f = 0; f < features; ++f) {
          const auto at = static_cast<size_t>(c * features + f);
          input[static_cast<size_t>(i * features + f)] += change * double{p.weight[at]};
          weight[at] += change * double{x[f]};
        }
      }
    }
  }
};

void expect_near(const std::vector<float>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_NEAR(found[i], expected[i], 2e-4 * (1 + std::abs(expected[i]))) << "element " << i;
  }
}

class LinearCrossEntropyTest : public ::testing::TestWithParam<Sizes> {};

void expect_definition(const Sizes& sizes) {
  Problem p(sizes);
  const Expected expected(p);
  linear_cross_entropy_forward(p.problem(), p.loss.data(), p.logsumexp.data());
  expect_near(p.loss, expected.loss);
  expect_near(p.logsumexp, expected.logsumexp);
  linear_cross_entropy_backward(p.problem(), p.logsumexp.data(), p.gradients());
  expect_near(p.input_gradient, expected.input);
  expect_near(p.weight_gradient, expected.weight);
  expect_near(p.bias_gradient, expected.bias);
  linear_cross_entropy_fused(p.problem(), p.loss.data(), p.logsumexp.data(), p.gradients());
  expect_near(p.loss, expected.loss);
  expect_near(p.input_gradient, expected.input);
  expect_near(p.weight_gradient, expected.weight);
  expect_near(p.bias_gradient, expected.bias);
}

TEST_P(LinearCrossEntropyTest, AgreesWithItsDefinition) {
  expect_definition(GetParam());
}

TEST_P(LinearCrossEntropyTest, AgreesWithItsDefinitionInThreeParts) {
  const PrecisionGuard guard(MatmulPrecision::split);
  expect_definition(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Sizes, LinearCrossEntropyTest,
                         ::testing::Values(Sizes{1, 1, 1}, Sizes{7, 5, 3}, Sizes{40, 33, 129},
                                           Sizes{200, 20, 260}, Sizes{400, 3, 128},
                                           Sizes{17, 300, 50}, Sizes{210, 150, 300},
                                           Sizes{130, 1100, 140}));

TEST(LinearCrossEntropy, HasTheSameBitsForAnyNumberOfThreads) {
  const int threads = num_threads();
  for (const MatmulPrecision precision : {MatmulPrecision::highest, MatmulPrecision::split}) {
    const PrecisionGuard guard(precision);
    Problem p({150, 140, 3000});
    std::vector<std::vector<float>> results;
    for (int count : {1, 3}) {
      set_num_threads(count);
      linear_cross_entropy_fused(p.problem(), p.loss.data(), p.logsumexp.data(), p.gradients());
      results.push_back(p.loss);
      results.back().insert(results.back().end(), p.weight_gradient.begin(),
                            p.weight_gradient.end());
      results.back().insert(results.back().end(), p.input_gradient.begin(), p.input_gradient.end());
    }
    EXPECT_EQ(results[0], results[1]);
  }
  set_num_threads(threads);
}

// Infinities have no parts: such tiles of classes are chains.
TEST(LinearCrossEntropy, ThreePartsLeaveInfinitiesToChains) {
  Problem p({140, 160, 300});
  p.weight[5] = std::numeric_limits<float>::infinity();
  Problem q = p;
  linear_cross_entropy_forward(p.problem(), p.loss.data(), p.logsumexp.data());
  const PrecisionGuard guard(MatmulPrecision::split);
  linear_cross_entropy_forward(q.problem(), q.loss.data(), q.logsumexp.data());
  for (size_t i = 0; i < p.loss.size(); ++i) {
    EXPECT_EQ(std::isfinite(p.loss[i]), std::isfinite(q.loss[i])) << i;
  }
}

}  // namespace
}  // namespace rushlight
