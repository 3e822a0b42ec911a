// Math functions against the C library in f64, sampled over all f32 values: every 1021st bit
// pattern, and the neighbourhoods of special values.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "agreement.h"
#include "loop/special.h"
#include "runtime/kernel_cache.h"

namespace rushlight::testing {
namespace {

using loop::Op;

struct Row {
  Op op;
  double (*reference)(double);
  double bound;  // in units in the last place of the exact value
};

const Row kRows[] = {
    {Op::Exp, std::exp, 1},
    {Op::Exp2, std::exp2, 2},
    {Op::Expm1, std::expm1, 2},
    {Op::Log, std::log, 1},
    {Op::Log2, std::log2, 2},
    {Op::Log10, std::log10, 2},
    {Op::Log1p, std::log1p, 2},
    {Op::Sin, std::sin, 1},
    {Op::Cos, std::cos, 1},
    {Op::Tan, std::tan, 1},
    {Op::Tanh, std::tanh, 2},
    {Op::Erf, std::erf, 2},
    {Op::Asin, std::asin, 2},
    {Op::Acos, std::acos, 2},
    {Op::Atan, std::atan, 2},
    {Op::Sinh, std::sinh, 2},
    {Op::Cosh, std::cosh, 2},
    {Op::Asinh, std::asinh, 1},
    {Op::Acosh, std::acosh, 1},
    {Op::Atanh, std::atanh, 1},
    {Op::Erfc, std::erfc, 1},
    {Op::Erfinv, loop::erfinv_f64, 1},
    {Op::Lgamma, loop::lgamma_f64, 1},
    {Op::Digamma, loop::digamma_f64, 1},
};

// The distance between floats at the exact value.
double unit_at(double exact) {
  int exponent = std::max(std::ilogb(std::fabs(exact)), -126);
  return std::ldexp(1.0, exponent - 23);
}

double error_of(float got, double exact) {
  float rounded = static_cast<float>(exact);
  if (std::isnan(exact) || std::isinf(rounded) || exact == 0) {
    bool same = std::isnan(exact) ? std::isnan(got)
                                  : got == rounded && std::signbit(got) == std::signbit(rounded);
    // Just below the overflow threshold either neighbour will do.
    bool edge = std::isinf(rounded) && std::isfinite(exact) &&
                got == std::copysign(std::numeric_limits<float>::max(), rounded);
    return same || edge ? 0 : std::numeric_limits<double>::infinity();
  }
  if (!std::isfinite(got)) {
    bool edge = std::fabs(rounded) == std::numeric_limits<float>::max() && std::isinf(got);
    return edge ? 1 : std::numeric_limits<double>::infinity();
  }
  return std::fabs(static_cast<double>(got) - exact) / unit_at(exact);
}

std::vector<float> samples() {
  std::vector<float> all;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 1021) {
    all.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  const float special[] = {0.0f,       1.0f,        0.625f,     0.921875f, 4.0f,     10.0f,
                           88.7228f,   -103.97f,    -1.0f,      1e-45f,    2e-38f,   3.4e38f,
                           1.5707964f, 3.1415927f,  0.5f,       2.0f,      INFINITY, 0.6931472f,
                           1.4142135f, 0.70710677f, 127.99999f, -149.5f,   3.0f,     1.4616321f,
                           524288.0f,  524287.9f,   0.29f};
  for (float centre : special) {
    for (float side : {centre, -centre}) {
      auto bits = std::bit_cast<uint32_t>(side);
      for (int d = -400; d <= 400; ++d) {
        all.push_back(std::bit_cast<float>(bits + static_cast<uint32_t>(d)));
      }
    }
  }
  return all;
}

TEST(Math, StaysWithinItsBounds) {
  std::vector<float> inputs = samples();
  std::vector<float> outputs(inputs.size());
  int64_t count = static_cast<int64_t>(inputs.size());
  for (const Row& row : kRows) {
    loop::Kernel kernel{"math", {loop::AxisKind::Parallel}, {}, {}, {}};
    kernel.buffers = {{DType::Float32, {loop::Layout::Unit}},
                      {DType::Float32, {loop::Layout::Unit}}};
    loop::Expr x = loop::load(0, DType::Float32, {loop::index(0)});
    kernel.stores = {{1, {loop::index(0)}, loop::unary(row.op, x)}};
    void* buffers[] = {inputs.data(), outputs.data()};
    const int64_t* strides[] = {nullptr, nullptr};
    loop::KernelArgs args{buffers, strides, &count, nullptr};
    get_kernel(kernel)(&args, 0, count);
    double worst = 0;
    float where = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      double error = error_of(outputs[i], row.reference(inputs[i]));
      if (error > worst) {
        worst = error;
        where = inputs[i];
      }
    }
    std::string name(loop::info(row.op).text);
    EXPECT_LE(worst, row.bound) << name << " at " << where;
    RecordProperty(name, std::to_string(worst));
    std::printf("%-6s %.3f ULP at %.9g\n", name.c_str(), worst, static_cast<double>(where));
  }
}

// Pairs of all special values and of numbers of all sizes.
std::vector<std::pair<float, float>> pairs() {
  const float special[] = {0.0f,   1.0f,    2.0f,   3.0f,     0.5f,    2.5f,     1e-45f,
                           1e-38f, 3.4e38f, 1.6e7f, 1.7e7f,   3.3e7f,  0.99999f, 1.00001f,
                           127.0f, 128.0f,  149.0f, INFINITY, 9.9e15f, 1e-20f,   7.0f};
  std::vector<float> some = {std::numeric_limits<float>::quiet_NaN()};
  for (float value : special) {
    some.push_back(value);
    some.push_back(-value);
  }
  std::vector<std::pair<float, float>> all;
  for (float x : some) {
    for (float y : some) {
      all.emplace_back(x, y);
    }
  }
  std::mt19937 generator(3);
  std::uniform_int_distribution<uint32_t> bits;
  std::uniform_real_distribution<float> near(-20, 20);
  for (int i = 0; i < 400000; ++i) {
    all.emplace_back(std::bit_cast<float>(bits(generator)), std::bit_cast<float>(bits(generator)));
    all.emplace_back(near(generator), near(generator));
    all.emplace_back(std::fabs(near(generator)), 3 * near(generator));
    const float base = 1 + near(generator) * 1e-3f;
    all.emplace_back(base, 2000 * near(generator));
  }
  return all;
}

struct PairRow {
  Op op;
  double (*reference)(double, double);
  double bound;
};

TEST(Math, FunctionsOfTwoNumbersStayWithinTheirBounds) {
  const PairRow rows[] = {{Op::Pow, std::pow, 1},
                          {Op::Hypot, std::hypot, 1},
                          {Op::Atan2, std::atan2, 2},
                          {Op::Rem, std::fmod, 0}};
  const std::vector<std::pair<float, float>> inputs = pairs();
  std::vector<float> x;
  std::vector<float> y;
  for (const auto& [first, second] : inputs) {
    x.push_back(first);
    y.push_back(second);
  }
  std::vector<float> outputs(inputs.size());
  const int64_t count = static_cast<int64_t>(inputs.size());
  for (const PairRow& row : rows) {
    loop::Kernel kernel{"math", {loop::AxisKind::Parallel}, {}, {}, {}};
    const loop::Buffer buffer = {DType::Float32, {loop::Layout::Unit}};
    kernel.buffers = {buffer, buffer, buffer};
    const auto at = [](int slot) { return loop::load(slot, DType::Float32, {loop::index(0)}); };
    kernel.stores = {{2, {loop::index(0)}, loop::binary(row.op, at(0), at(1))}};
    void* buffers[] = {x.data(), y.data(), outputs.data()};
    const int64_t* strides[] = {nullptr, nullptr, nullptr};
    loop::KernelArgs args{buffers, strides, &count, nullptr};
    get_kernel(kernel)(&args, 0, count);
    double worst = 0;
    size_t where = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const double error = error_of(outputs[i], row.reference(x[i], y[i]));
      if (error > worst) {
        worst = error;
        where = i;
      }
    }
    const std::string name(loop::info(row.op).text);
    EXPECT_LE(worst, row.bound) << name << " of " << x[where] << " and " << y[where];
    std::printf("%-6s %.3f ULP at %.9g, %.9g\n", name.c_str(), worst, static_cast<double>(x[where]),
                static_cast<double>(y[where]));
  }
}

TEST(Math, GivesTheSameBitsInEveryLane) {
  for (Op op : {Op::Exp, Op::Log, Op::Tanh, Op::Erf, Op::Sin, Op::Cos, Op::Log1p, Op::Expm1}) {
    std::vector<float> inputs;
    for (int i = 0; i < 77; ++i) {
      inputs.push_back(std::ldexp(static_cast<float>(i) - 30.3f, i % 50 - 10));
    }
    loop::Kernel kernel{"math", {loop::AxisKind::Parallel}, {}, {}, {}};
    kernel.buffers = {{DType::Float32, {loop::Layout::Unit}},
                      {DType::Float32, {loop::Layout::Unit}}};
    loop::Expr x = loop::load(0, DType::Float32, {loop::index(0)});
    kernel.stores = {{1, {loop::index(0)}, loop::unary(op, x)}};
    std::vector<float> whole(inputs.size());
    std::vector<float> single(inputs.size());
    const int64_t* strides[] = {nullptr, nullptr};
    int64_t count = static_cast<int64_t>(inputs.size());
    void* buffers[] = {inputs.data(), whole.data()};
    loop::KernelArgs args{buffers, strides, &count, nullptr};
    loop::KernelFunction function = get_kernel(kernel);
    function(&args, 0, count);
    buffers[1] = single.data();
    for (int64_t i = 0; i < count; ++i) {
      function(&args, i, i + 1);
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      EXPECT_EQ(std::bit_cast<uint32_t>(whole[i]), std::bit_cast<uint32_t>(single[i]))
          << loop::info(op).text << " at " << inputs[i];
    }
  }
}

}  // namespace
}  // namespace rushlight::testing
