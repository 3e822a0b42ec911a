// lower_complex(): as text, and by its results against the standard library's complex numbers.
#include "loop/complex.h"

#include <gtest/gtest.h>
#include <rushlight/error.h>

#include <complex>
#include <functional>

namespace rushlight::loop {
namespace {

using C = std::complex<double>;

// One value of a body over two complex128 loads.
C run(const std::function<Expr(Expr, Expr)>& body, C a, C b) {
  const auto at = [](int buffer) { return load(buffer, DType::Complex128, {index(0)}); };
  Kernel kernel;
  kernel.axes = {AxisKind::Parallel};
  kernel.buffers.assign(3, {DType::Complex128, {Layout::Unit}});
  kernel.stores.push_back({0, {index(0)}, body(at(1), at(2))});
  const Kernel lowered = simplify(lower_complex(kernel));
  EXPECT_EQ(verify(lowered), "");
  C out;
  void* buffers[] = {&out, &a, &b};
  const int64_t one[] = {2, 1};
  const int64_t* strides[] = {one, one, one};
  const int64_t extent = 1;
  interpret(lowered, {buffers, strides, &extent, nullptr}, 0, 1);
  return out;
}

const C kPoints[] = {{1.5, -0.5}, {-2, 3},      {0.25, 0.125}, {-0.75, -1e-3},  {3, 0},
                     {-3, -0.0},  {0, 2},       {1e-9, 1},     {40, 0.5},       {-40, 7},
                     {1, 1e-8},   {1e200, 3e9}, {0.9, -0.4},   {1e-160, 2e-160}};

double error(C got, C expected) {
  if (got == expected || (std::isnan(got.real()) && std::isnan(expected.real()))) {
    return 0;
  }
  return std::abs(got - expected) / std::abs(expected);
}

struct Function {
  Op op;
  C (*expected)(const C&);
  double reach;  // compared up to this magnitude
};

TEST(Complex, FunctionsAgreeWithTheLibrary) {
  const Function functions[] = {
      {Op::Neg, [](const C& z) { return -z; }, 1e300},
      {Op::Sqrt, [](const C& z) { return std::sqrt(z); }, 1e300},
      {Op::Exp, [](const C& z) { return std::exp(z); }, 1e3},
      {Op::Log, [](const C& z) { return std::log(z); }, 1e300},
      {Op::Log2, [](const C& z) { return std::log(z) / std::log(2.0); }, 1e300},
      {Op::Log10, [](const C& z) { return std::log10(z); }, 1e300},
      {Op::Log1p, [](const C& z) { return std::log(1.0 + z); }, 1e300},
      {Op::Expm1, [](const C& z) { return std::exp(z) - 1.0; }, 1e3},
      {Op::Sin, [](const C& z) { return std::sin(z); }, 1e3},
      {Op::Cos, [](const C& z) { return std::cos(z); }, 1e3},
      {Op::Tan, [](const C& z) { return std::tan(z); }, 1e3},
      {Op::Sinh, [](const C& z) { return std::sinh(z); }, 1e3},
      {Op::Cosh, [](const C& z) { return std::cosh(z); }, 1e3},
      {Op::Tanh, [](const C& z) { return std::tanh(z); }, 1e3},
      {Op::Asin, [](const C& z) { return std::asin(z); }, 1e3},
      {Op::Acos, [](const C& z) { return std::acos(z); }, 1e3},
      {Op::Atan, [](const C& z) { return std::atan(z); }, 1e3},
      {Op::Asinh, [](const C& z) { return std::asinh(z); }, 1e3},
      {Op::Acosh, [](const C& z) { return std::acosh(z); }, 1e3},
      {Op::Atanh, [](const C& z) { return std::atanh(z); }, 1e3}};
  for (const Function& function : functions) {
    for (C z : kPoints) {
      // Of 1 + z and the like, the reference itself keeps no more than the sum does.
      const bool tiny = std::abs(z) < 1e-100;
      if (std::abs(z) > function.reach || tiny) {
        continue;
      }
      const C got = run([&](Expr a, Expr) { return unary(function.op, a); }, z, z);
      EXPECT_LT(error(got, function.expected(z)), 1e-13)
          << info(function.op).text << z << " gives " << got << ", not " << function.expected(z);
    }
  }
}

// One part of a result where the argument is infinite or NaN; signs of zeros are left open.
bool alike(double got, double expected) {
  return std::isnan(expected)   ? std::isnan(got)
         : std::isinf(expected) ? std::isinf(got)
                                : std::abs(got - expected) < 1e-13;
}

TEST(Complex, FunctionsAgreeWithTheLibraryWhereNumbersEnd) {
  const double parts[] = {0.0, -0.0, 1.0, -0.5, INFINITY, -INFINITY, NAN};
  const Function functions[] = {{Op::Sqrt, [](const C& z) { return std::sqrt(z); }, 0},
                                {Op::Exp, [](const C& z) { return std::exp(z); }, 0},
                                {Op::Log, [](const C& z) { return std::log(z); }, 0},
                                {Op::Sin, [](const C& z) { return std::sin(z); }, 0},
                                {Op::Cos, [](const C& z) { return std::cos(z); }, 0},
                                {Op::Tan, [](const C& z) { return std::tan(z); }, 0},
                                {Op::Sinh, [](const C& z) { return std::sinh(z); }, 0},
                                {Op::Cosh, [](const C& z) { return std::cosh(z); }, 0},
                                {Op::Tanh, [](const C& z) { return std::tanh(z); }, 0},
                                {Op::Asin, [](const C& z) { return std::asin(z); }, 0},
                                {Op::Acos, [](const C& z) { return std::acos(z); }, 0},
                                {Op::Atan, [](const C& z) { return std::atan(z); }, 0},
                                {Op::Asinh, [](const C& z) { return std::asinh(z); }, 0},
                                {Op::Acosh, [](const C& z) { return std::acosh(z); }, 0},
                                {Op::Atanh, [](const C& z) { return std::atanh(z); }, 0}};
  for (const Function& function : functions) {
    for (double x : parts) {
      for (double y : parts) {
        if (std::isfinite(x) && std::isfinite(y)) {
          continue;
        }
        const C z(x, y);
        const C got = run([&](Expr a, Expr) { return unary(function.op, a); }, z, z);
        const C expected = function.expected(z);
        EXPECT_TRUE(alike(got.real(), expected.real()) && alike(got.imag(), expected.imag()))
            << info(function.op).text << z << " gives " << got << ", not " << expected;
      }
    }
  }
}

TEST(Complex, AreaTangentOfLargeNumbers) {
  const auto atanh = [](C z) {
    return run([](Expr a, Expr) { return unary(Op::Atanh, a); }, z, z);
  };
  EXPECT_NEAR(atanh({1e300, 1}).real() * 1e300, 1, 1e-12);
  EXPECT_NEAR(atanh({1e300, 1e300}).real() * 2e300, 1, 1e-12);
  EXPECT_EQ(atanh({1, 1e200}).real(), 0);
}

TEST(Complex, ArithmeticAgreesWithTheLibrary) {
  for (C a : kPoints) {
    for (C b : kPoints) {
      const auto check = [&](const char* name, C got, C expected) {
        if (std::isfinite(std::abs(expected)) && expected != 0.0) {
          EXPECT_LT(error(got, expected), 1e-13) << name << a << b << got << expected;
        }
      };
      check("add", run([](Expr x, Expr y) { return x + y; }, a, b), a + b);
      check("mul", run([](Expr x, Expr y) { return x * y; }, a, b), a * b);
      check("div", run([](Expr x, Expr y) { return x / y; }, a, b), a / b);
      if (std::abs(a) < 1e3 && std::abs(b) < 10) {
        check("pow", run([](Expr x, Expr y) { return pow(x, y); }, a, b), std::pow(a, b));
      }
    }
  }
}

TEST(Complex, DivisionDoesNotOverflowOnTheWay) {
  const auto quotient = [](C a, C b) { return run([](Expr x, Expr y) { return x / y; }, a, b); };
  EXPECT_EQ(quotient({1e300, 1e300}, {1e300, 1e300}), C(1, 0));
  EXPECT_EQ(quotient({1e-300, 0}, {0, 2e-300}), C(0, -0.5));
}

TEST(Complex, PowersOfZero) {
  const auto power = [](C a, C b) { return run([](Expr x, Expr y) { return pow(x, y); }, a, b); };
  EXPECT_EQ(power(0, 0), C(1, 0));
  EXPECT_EQ(power(0, {2, 1}), C(0, 0));
}

// A real factor multiplies the parts: no infinity times the 0 that its imaginary part would be.
TEST(Complex, RealFactorsKeepInfinities) {
  const C infinite(INFINITY, 1);
  const C got = run([](Expr x, Expr) { return x * 2.0; }, infinite, 0);
  EXPECT_EQ(got, C(INFINITY, 2));
}

// PyTorch's convention: the gradient of x + iy is dL/dx + i dL/dy.
TEST(Complex, GradientsAreConjugated) {
  const C z(0.5, -1.25);
  const C g(2, 3);
  const auto gradient = [&](const std::function<Expr(Expr)>& body) {
    return run([&](Expr x, Expr grad) { return differentiate(body(x), {x}, grad)[0]; }, z, g);
  };
  EXPECT_LT(error(gradient([](Expr x) { return exp(x); }), g * std::conj(std::exp(z))), 1e-14);
  EXPECT_LT(error(gradient([](Expr x) { return x * x * x; }), g * std::conj(3.0 * z * z)), 1e-14);
  EXPECT_LT(error(gradient([](Expr x) { return conj(x); }), std::conj(g)), 1e-14);
  EXPECT_LT(error(gradient([](Expr x) { return sigmoid(x); }), g * std::conj([&] {
                                                                 const C s =
                                                                     1.0 / (1.0 + std::exp(-z));
                                                                 return s * (1.0 - s);
                                                               }())),
            1e-14);
  // |z|: of the real part of the gradient alone.
  EXPECT_LT(error(gradient([](Expr x) { return cast(abs(x), DType::Complex128); }),
                  2.0 * z / std::abs(z)),
            1e-14);
}

TEST(Complex, Text) {
  Kernel kernel = parse(
      "kernel \"scale\"\naxis 0 parallel\nbuffer 0 c64 unit\nbuffer 1 c64 zero\nscalar 0 c64\n"
      "scalar 1 f32\nstore b0(i0) = mul(load.c64(b1, i0), complex(s1:f32, imag(s0:c64)))\n");
  EXPECT_EQ(verify(kernel),
            "buffer 0 is complex: declare it as its real type, with one more "
            "dimension");
  EXPECT_EQ(print(lower_complex(kernel)),
            "kernel \"scale\"\naxis 0 parallel\nbuffer 0 f32 unit\nbuffer 1 f32 zero unit\n"
            "scalar 0 f32\nscalar 1 f32\nscalar 2 f32\n"
            "%0 = mul(i0, 2:i64)\n%1 = load.f32(b1, i0, 0:i64)\n%2 = load.f32(b1, i0, 1:i64)\n"
            "store b0(add(%0, 0:i64)) = sub(mul(%1, s2:f32), mul(%2, s1:f32))\n"
            "store b0(add(%0, 1:i64)) = add(mul(%1, s1:f32), mul(%2, s2:f32))\n");
}

TEST(Complex, RealKernelsStayAsTheyAre) {
  const Kernel kernel = parse(
      "kernel \"k\"\naxis 0 parallel\nbuffer 0 f32 unit\nscalar 0 i64\n"
      "store b0(i0) = add(load.f32(b0, i0), cast.f32(s0:i64))\n");
  EXPECT_TRUE(same(lower_complex(kernel), kernel));
}

TEST(Complex, WhatHasNoMeaning) {
  const Expr z = load(0, DType::Complex64, {index(0)});
  EXPECT_THROW(z < z, Error);
  EXPECT_THROW(max(z, z), Error);
}

}  // namespace
}  // namespace rushlight::loop
