// Math functions of f64 against the C library in long double, sampled over all f64 values: equally
// spaced bit patterns, where most results lie, and the neighbourhoods of special values.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "runtime/kernel_cache.h"

namespace rushlight::testing {
namespace {

using loop::Op;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Unary {
  Op op;
  long double (*reference)(long double);
  double bound;  // in units in the last place of the exact value
};

const Unary kUnary[] = {
    {Op::Exp, std::exp, 1.5},   {Op::Exp2, std::exp2, 2},   {Op::Expm1, std::expm1, 2},
    {Op::Log, std::log, 1.5},   {Op::Log2, std::log2, 2},   {Op::Log10, std::log10, 2},
    {Op::Log1p, std::log1p, 2}, {Op::Sin, std::sin, 1.5},   {Op::Cos, std::cos, 1.5},
    {Op::Tan, std::tan, 2},     {Op::Tanh, std::tanh, 2},   {Op::Sinh, std::sinh, 2},
    {Op::Cosh, std::cosh, 2},   {Op::Erf, std::erf, 2},     {Op::Erfc, std::erfc, 2},
    {Op::Asin, std::asin, 2},   {Op::Acos, std::acos, 2},   {Op::Atan, std::atan, 2},
    {Op::Asinh, std::asinh, 2}, {Op::Acosh, std::acosh, 2}, {Op::Atanh, std::atanh, 2},
};

struct Binary {
  Op op;
  long double (*reference)(long double, long double);
  double bound;
};

const Binary kBinary[] = {
    {Op::Pow, std::pow, 1.5},
    {Op::Atan2, std::atan2, 2},
    {Op::Hypot, std::hypot, 2},
};

double error_of(double got, long double exact) {
  const auto rounded = static_cast<double>(exact);
  if (std::isnan(exact)) {
    return std::isnan(got) ? 0 : kInfinity;
  }
  if (std::isinf(rounded) || rounded == 0) {
    bool same = got == rounded && std::signbit(got) == std::signbit(rounded);
    // Next to the thresholds either neighbour will do.
    bool largest = std::isinf(rounded) && std::isfinite(exact) &&
                   got == std::copysign(std::numeric_limits<double>::max(), rounded);
    bool least = exact != 0 && std::fabs(got) == std::numeric_limits<double>::denorm_min() &&
                 std::signbit(got) == std::signbit(rounded);
    return same ? 0 : largest || least ? 1 : kInfinity;
  }
  if (!std::isfinite(got)) {
    bool edge = std::fabs(rounded) == std::numeric_limits<double>::max() && std::isinf(got);
    return edge ? 1 : kInfinity;
  }
  if (std::signbit(got) != std::signbit(rounded)) {
    return kInfinity;
  }
  int exponent = std::max(std::ilogb(exact), -1022);
  return static_cast<double>(std::fabs(got - exact) / std::ldexp(1.0L, exponent - 52));
}

std::vector<double> samples() {
  std::vector<double> all;
  constexpr uint64_t kStep = (uint64_t{1} << 47) + 12345678901;
  for (uint64_t bits = 0; bits < ~uint64_t{0} - kStep; bits += kStep) {
    all.push_back(std::bit_cast<double>(bits));
  }
  std::mt19937_64 random(7);
  for (double size :
       {1e-9, 1e-3, 0.1, 0.3, 0.6, 1.0, 1.5, 3.0, 6.0, 10.0, 30.0, 100.0, 700.0, 1e4, 1e6, 1e9}) {
    std::uniform_real_distribution<double> spread(-size, size);
    for (int i = 0; i < 3000; ++i) {
      all.push_back(spread(random));
    }
  }
  std::uniform_real_distribution<double> near_one(0.5, 2);
  for (int i = 0; i < 20000; ++i) {
    all.push_back(near_one(random));
  }
  // Near multiples of pi / 2, where reductions cancel.
  for (int n = 1; n <= 4000; ++n) {
    double x = std::ldexp(static_cast<double>(n * 263 % 4001), n % 12) * 1.5707963267948966;
    all.push_back(x);
    all.push_back(std::nextafter(-x, 0));
  }
  const double special[] = {0.0,
                            1.0,
                            0.5,
                            0.25,
                            0.84375,
                            2.0,
                            5.95,
                            9.1,
                            19.1,
                            22.0,
                            26.54,
                            709.7827,
                            -745.133,
                            710.4758,
                            -37.5,
                            1023.999,
                            -1074.5,
                            5e-324,
                            2.3e-308,
                            1.7e308,
                            INFINITY,
                            0.6931471805599453,
                            1.4142135623730951,
                            0.7071067811865476,
                            1.5707963267948966,
                            3.141592653589793,
                            0x1.9p20,
                            0x1p28,
                            0x1p-28,
                            0x1p-54};
  for (double centre : special) {
    for (double side : {centre, -centre}) {
      auto bits = std::bit_cast<uint64_t>(side);
      for (int d = -100; d <= 100; ++d) {
        all.push_back(std::bit_cast<double>(bits + static_cast<uint64_t>(d)));
      }
    }
  }
  return all;
}

// Every pairing of the awkward, then of random numbers: of like size, of any size, and for pow a
// base near 1 with exponents that bring the result back into range.
void fill_pairs(std::vector<double>* xs, std::vector<double>* ys) {
  const double awkward[] = {0.0,
                            -0.0,
                            1.0,
                            -1.0,
                            kInfinity,
                            -kInfinity,
                            kNan,
                            0.5,
                            -0.5,
                            2.0,
                            -2.0,
                            3.0,
                            -3.0,
                            1.5,
                            -1.5,
                            1e300,
                            -1e300,
                            5e-324,
                            -5e-324,
                            1e-310,
                            0x1p53,
                            0x1p53 + 2,
                            -0x1p53,
                            0x1p52 + 1,
                            4503599627370497.5,
                            1.7976931348623157e308,
                            -1.7976931348623157e308,
                            2.2250738585072014e-308,
                            0x1.fffffffffffffp-1,
                            0x1.0000000000001p0,
                            -0x1.fffffffffffffp-1,
                            1074.0,
                            -1074.0,
                            -1075.0,
                            1023.0,
                            1024.0,
                            0.1,
                            1e-5,
                            1e10,
                            -1e10};
  for (double x : awkward) {
    for (double y : awkward) {
      xs->push_back(x);
      ys->push_back(y);
    }
  }
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> unit(-1, 1);
  for (int i = 0; i < 60000; ++i) {
    double x = unit(random);
    double y = unit(random);
    int kind = i % 4;
    if (kind == 0) {
      xs->push_back(x * 10);
      ys->push_back(y * 10);
    } else if (kind == 1) {
      xs->push_back(std::bit_cast<double>(random()));
      ys->push_back(std::bit_cast<double>(random()));
    } else if (kind == 2) {
      xs->push_back(1 + x * std::ldexp(1.0, -(i % 50)));
      ys->push_back(y * 745 / std::log(std::fabs(xs->back())));
    } else {
      xs->push_back(std::exp2(x * 1074));
      ys->push_back(y * 745 / std::log(xs->back()));
    }
  }
}

loop::KernelFunction compile(Op op) {
  loop::Kernel kernel{"math", {loop::AxisKind::Parallel}, {}, {}, {}};
  kernel.buffers.assign(3, {DType::Float64, {loop::Layout::Unit}});
  loop::Expr x = loop::load(0, DType::Float64, {loop::index(0)});
  loop::Expr y = loop::load(1, DType::Float64, {loop::index(0)});
  bool binary = loop::info(op).arity == loop::Arity::Binary;
  kernel.stores = {{2, {loop::index(0)}, binary ? loop::binary(op, x, y) : loop::unary(op, x)}};
  return get_kernel(kernel);
}

std::vector<double> results(Op op, std::vector<double>& xs, std::vector<double>& ys) {
  std::vector<double> out(xs.size());
  void* buffers[] = {xs.data(), ys.data(), out.data()};
  const int64_t* strides[] = {nullptr, nullptr, nullptr};
  auto count = static_cast<int64_t>(xs.size());
  loop::KernelArgs args{buffers, strides, &count, nullptr};
  compile(op)(&args, 0, count);
  return out;
}

struct Worst {
  double error = 0;
  size_t where = 0;

  void see(double other, size_t i) {
    if (!(other <= error)) {
      error = other;
      where = i;
    }
  }
};

void report(Op op, double bound, const Worst& worst, const std::vector<double>& xs,
            const std::vector<double>& ys) {
  std::string name(loop::info(op).text);
  EXPECT_LE(worst.error, bound) << name << " at " << xs[worst.where] << ", " << ys[worst.where];
  std::printf("%-6s %.3f ULP at %.17g, %.17g\n", name.c_str(), worst.error, xs[worst.where],
              ys[worst.where]);
}

TEST(MathF64, StaysWithinItsBounds) {
  std::vector<double> inputs = samples();
  for (const Unary& row : kUnary) {
    std::vector<double> outputs = results(row.op, inputs, inputs);
    Worst worst;
    for (size_t i = 0; i < inputs.size(); ++i) {
      worst.see(error_of(outputs[i], row.reference(inputs[i])), i);
    }
    report(row.op, row.bound, worst, inputs, inputs);
  }
}

TEST(MathF64, StaysWithinItsBoundsForPairs) {
  std::vector<double> xs;
  std::vector<double> ys;
  fill_pairs(&xs, &ys);
  for (const Binary& row : kBinary) {
    std::vector<double> outputs = results(row.op, xs, ys);
    Worst worst;
    for (size_t i = 0; i < xs.size(); ++i) {
      worst.see(error_of(outputs[i], row.reference(xs[i], ys[i])), i);
    }
    report(row.op, row.bound, worst, xs, ys);
  }
}

TEST(MathF64, GivesTheSameBitsInEveryLane) {
  std::vector<double> inputs;
  for (int i = 0; i < 77; ++i) {
    inputs.push_back(std::ldexp(static_cast<double>(i) - 30.3, i % 50 - 10));
  }
  auto count = static_cast<int64_t>(inputs.size());
  std::vector<double> others(inputs.rbegin(), inputs.rend());
  std::vector<Op> ops;
  for (const Unary& row : kUnary) {
    ops.push_back(row.op);
  }
  for (const Binary& row : kBinary) {
    ops.push_back(row.op);
  }
  for (Op op : ops) {
    std::vector<double> whole = results(op, inputs, others);
    std::vector<double> single(inputs.size());
    void* buffers[] = {inputs.data(), others.data(), single.data()};
    const int64_t* strides[] = {nullptr, nullptr, nullptr};
    loop::KernelArgs args{buffers, strides, &count, nullptr};
    loop::KernelFunction function = compile(op);
    for (int64_t i = 0; i < count; ++i) {
      function(&args, i, i + 1);
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (std::isnan(whole[i])) {
        EXPECT_TRUE(std::isnan(single[i])) << loop::info(op).text << " at " << inputs[i];
        continue;
      }
      EXPECT_EQ(std::bit_cast<uint64_t>(whole[i]), std::bit_cast<uint64_t>(single[i]))
          << loop::info(op).text << " at " << inputs[i];
    }
  }
}

}  // namespace
}  // namespace rushlight::testing
