// differentiate(): every operator against finite differences, twice over, and the conventions.
#include <gtest/gtest.h>
#include <rushlight/error.h>

#include <cmath>
#include <map>

#include "loop/kernel.h"

namespace rushlight::loop {
namespace {

Expr input(int i) {
  return load(i, DType::Float64, {index(0)});
}
Expr one() {
  return constant(1, DType::Float64);
}

double value(Expr body, std::vector<double> x) {
  Kernel kernel;
  kernel.axes = {AxisKind::Parallel};
  kernel.buffers.assign(
      4, {body.dtype() == DType::Float32 ? DType::Float32 : DType::Float64, {Layout::Unit}});
  kernel.buffers[3].dtype = DType::Float64;
  kernel.stores = {{3, {index(0)}, body}};
  x.resize(3);
  std::vector<float> narrow(x.begin(), x.end());
  bool f32 = kernel.buffers[0].dtype == DType::Float32;
  double out = 0;
  void* buffers[4];
  for (size_t i = 0; i < 3; ++i) {
    buffers[i] = f32 ? static_cast<void*>(&narrow[i]) : &x[i];
  }
  buffers[3] = &out;
  int64_t unit = 1;
  const int64_t* strides[] = {&unit, &unit, &unit, &unit};
  interpret(kernel, {buffers, strides, &unit, nullptr}, 0, 1);
  return out;
}

// Central difference of fourth order.
double slope(Expr body, std::vector<double> x, size_t i) {
  double h = 1e-3 * std::max(1e-2, std::fabs(x[i]));
  auto at = [&](double step) {
    std::vector<double> moved = x;
    moved[i] += step * h;
    return value(body, moved);
  };
  return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h);
}

void check(Expr body, const std::vector<double>& x, size_t count, int order) {
  std::vector<Expr> inputs;
  for (size_t i = 0; i < count; ++i) {
    inputs.push_back(input(static_cast<int>(i)));
  }
  std::vector<Expr> grads = differentiate(body, inputs, one());
  for (size_t i = 0; i < count; ++i) {
    double wanted = slope(body, x, i);
    double got = grads[i] ? value(grads[i], x) : 0;
    EXPECT_NEAR(got, wanted, 1e-6 * std::max(1.0, std::fabs(wanted)))
        << print(body) << "\nby input " << i << " at " << x[0] << ", " << x[1];
    if (grads[i] && order > 1) {
      check(grads[i], x, count, order - 1);
    }
  }
}

// Points of (0.1, 3) by default; where an operator needs others, they are here.
std::vector<std::vector<double>> points(Op op) {
  switch (op) {
    case Op::Asin:
    case Op::Acos:
    case Op::Atanh:
    case Op::Erfinv:
      return {{-0.7, 0, 0}, {0.1, 0, 0}, {0.8, 0, 0}};
    case Op::Acosh:
      return {{1.2, 0, 0}, {4, 0, 0}};
    case Op::Sqrt:
    case Op::Log:
    case Op::Log2:
    case Op::Log10:
      return {{0.3, 0, 0}, {5, 0, 0}};
    case Op::Log1p:
      return {{-0.5, 0, 0}, {4, 0, 0}};
    case Op::Pow:
      return {{0.4, 1.7, 0}, {2.5, -1.3, 0}};
    case Op::Lgamma:
    case Op::Digamma:
      return {{0.3, 0, 0}, {2.7, 0, 0}, {9.1, 0, 0}, {-1.4, 0, 0}};
    case Op::Rem:
    case Op::Mod:
      return {{7.3, 2.2, 0}, {-7.3, 2.2, 0}, {7.3, -2.2, 0}};
    default:
      return {{0.3, 1.1, -0.4}, {-1.2, 0.7, 2.1}, {2.3, -1.6, 0.9}};
  }
}

bool is_step(Op op) {
  switch (op) {
    case Op::Floor:
    case Op::Ceil:
    case Op::Trunc:
    case Op::Round:
    case Op::FloorDiv:
      return true;
    default:
      return false;
  }
}

Expr apply(Op op) {
  switch (info(op).arity) {
    case Arity::Unary:
      return unary(op, input(0));
    case Arity::Binary:
      return binary(op, input(0), input(1));
    default:
      return op == Op::Fma ? fma(input(0), input(1), input(2))
                           : select(input(0) < 0, input(1) * input(0), input(2));
  }
}

TEST(Differentiate, EveryOperator) {
  int checked = 0;
  for (int i = 0; i < kOpCount; ++i) {
    Op op = static_cast<Op>(i);
    const OpInfo& row = info(op);
    bool plain = row.typing == Typing::Same || op == Op::Select;
    if (!plain || row.kinds.find('f') == std::string_view::npos) {
      continue;
    }
    Expr body = apply(op);
    ++checked;
    if (op == Op::NextAfter) {  // no difference quotient shows it: PyTorch passes the gradient on
      EXPECT_TRUE(same(differentiate(body, {input(0)}, one())[0], one()));
      continue;
    }
    if (is_step(op)) {
      EXPECT_FALSE(differentiate(body, {input(0)}, one())[0]) << row.text;
      continue;
    }
    EXPECT_TRUE(differentiate(body, {input(0)}, one())[0]) << row.text << " has no rule";
    for (const std::vector<double>& x : points(op)) {
      check(body, x, 3, 2);
    }
  }
  EXPECT_EQ(checked, 49);
}

TEST(Differentiate, Compositions) {
  Expr x = input(0);
  Expr y = input(1);
  for (Expr body :
       {sigmoid(x), x * sigmoid(x * y), log1p(exp(x)), log(1 + exp(x * y)), rsqrt(x * x + 1),
        x * 0.5 * (1 + erf(x * 0.70710678)), tanh(x * y) * exp(-x * x), pow(x * x + 1, y),
        pow(x, constant(3, DType::Float64)), pow(x, constant(2, DType::Float64)),
        pow(x * x, constant(-0.5, DType::Float64)), where(x > y, sin(x) * y, cos(y) / x),
        max(x, y) * min(x, y), binary(Op::Hypot, x, y), 1 / (1 + exp(x)), abs(x) * y}) {
    for (const std::vector<double>& at :
         {std::vector<double>{0.7, 1.9, 0}, {-1.3, 0.6, 0}, {2.2, -0.8, 0}}) {
      check(body, at, 2, 2);
    }
  }
}

// The derivative of `body` by input 0, where input 1 is there too.
double grad_at(Expr body, double x, double y = 0, size_t by = 0) {
  Expr grad = differentiate(body, {input(0), input(1)}, one())[by];
  return grad ? value(grad, {x, y, 0}) : 0;
}

TEST(Differentiate, Conventions) {
  Expr x = input(0);
  Expr y = input(1);
  EXPECT_EQ(grad_at(abs(x), 0), 0);
  EXPECT_EQ(grad_at(sqrt(x), 0), INFINITY);
  EXPECT_EQ(grad_at(max(x, y), 2, 2, 0), 0.5);
  EXPECT_EQ(grad_at(max(x, y), 2, 2, 1), 0.5);
  EXPECT_EQ(grad_at(min(x, y), 1, 2, 0), 1);
  EXPECT_EQ(grad_at(min(x, y), 1, 2, 1), 0);
  EXPECT_EQ(grad_at(max(x, y), NAN, 2, 0), 1);
  EXPECT_EQ(grad_at(max(x, y), NAN, 2, 1), 1);
  EXPECT_EQ(grad_at(binary(Op::FMax, x, y), 2, 2, 0), 1);
  EXPECT_EQ(grad_at(binary(Op::FMax, x, y), 2, 2, 1), 0);
  EXPECT_EQ(grad_at(binary(Op::FMin, x, y), NAN, 2, 0), 0);
  EXPECT_EQ(grad_at(binary(Op::FMin, x, y), NAN, 2, 1), 1);
  Expr clamped = min(max(x, constant(-1, DType::Float64)), scalar(0, DType::Float64));
  EXPECT_EQ(print(differentiate(clamped, {x}, one())[0]).find("0.5"), std::string::npos);
  Expr clamped_below = max(x, constant(-1, DType::Float64));
  EXPECT_EQ(grad_at(clamped_below, -1), 1);
  EXPECT_EQ(grad_at(clamped_below, -1.5), 0);
  EXPECT_EQ(grad_at(clamped_below, NAN), 0);
  EXPECT_EQ(grad_at(binary(Op::Atan2, x, y), 0, 0), 0);
  EXPECT_EQ(grad_at(pow(x, y), 0, 2, 1), 0);
  EXPECT_EQ(grad_at(pow(x, y), 0, 0, 0), 0);
  EXPECT_EQ(grad_at(binary(Op::CopySign, x, y), 0, -1), 0);
  EXPECT_EQ(grad_at(binary(Op::CopySign, x, y), INFINITY, -1), -1);
}

TEST(Differentiate, StableForms) {
  Expr x = input(0);
  EXPECT_EQ(grad_at(sigmoid(x), -1000), 0);
  EXPECT_EQ(grad_at(sigmoid(x), 1000), 0);
  EXPECT_EQ(grad_at(log1p(exp(x)), 1000), 1);
  EXPECT_EQ(grad_at(x * sigmoid(x), -1000), 0);
  EXPECT_NEAR(grad_at(expm1(x), -50), std::exp(-50.0), 1e-30);
  EXPECT_NEAR(grad_at(tanh(x), 18) / 9.27808738e-16, 1, 0.1);
  // The arm that is not taken is 0, though its derivative is not finite.
  EXPECT_EQ(grad_at(where(x > 0, log(x), x), 0), 1);
  EXPECT_EQ(grad_at(where(x > 0, sqrt(x), x * 2), 0), 2);
  EXPECT_EQ(grad_at(where(x > 20, x, log(1 + exp(x)) * exp(x)), 1000), 1);
}

TEST(Differentiate, IntegersAndStepsPassNothing) {
  Expr x = input(0);
  Expr flag = x > 0;
  EXPECT_FALSE(differentiate(floor(x), {x}, one())[0]);
  EXPECT_FALSE(differentiate(where(flag, one(), one() * 2), {x}, one())[0]);
  EXPECT_FALSE(differentiate(cast(cast(x, DType::Int32), DType::Float64), {x}, one())[0]);
  EXPECT_FALSE(differentiate(input(1), {x}, one())[0]);
  EXPECT_EQ(print(differentiate(x - floor(x), {x}, one())[0]), "1:f64");
}

TEST(Differentiate, Casts) {
  Expr h = load(0, DType::Float16, {index(0)});
  Expr g = scalar(0, DType::Float64);
  Expr grad = differentiate(cast(h, DType::Float64), {h}, g)[0];
  EXPECT_EQ(print(grad), "cast.f32(s0:f64)");
  Expr rounded = cast(h * h, DType::BFloat16);
  EXPECT_EQ(print(differentiate(rounded, {h}, scalar(1, DType::Float32))[0]),
            "%0 = mul(s1:f32, load.f16(b0, i0))\nadd(%0, %0)");
}

TEST(Differentiate, AnyNodeMayBeAnInput) {
  Expr x = input(0);
  Expr e = exp(-x);
  Expr y = 1 / (1 + e);
  std::vector<Expr> grads = differentiate(y, {e, x}, one());
  EXPECT_NEAR(value(grads[0], {0.3, 0, 0}), -std::pow(1 + std::exp(-0.3), -2), 1e-12);
  EXPECT_NEAR(value(grads[1], {0.3, 0, 0}), value(y * (1 - y), {0.3, 0, 0}), 1e-12);
}

TEST(Differentiate, GuardedLoad) {
  Expr x = input(0);
  Expr guarded = load_if(x > 0, x * 3, 1, DType::Float64, {index(0)});
  std::vector<Expr> grads = differentiate(guarded * 2, {guarded, x}, one());
  EXPECT_EQ(print(grads[0]), "2:f64");
  EXPECT_EQ(value(grads[1], {1, 0, 0}), 0);
  EXPECT_EQ(value(grads[1], {-1, 0, 0}), 6);
}

TEST(Differentiate, Misuse) {
  Expr x = input(0);
  auto text = [](auto make) -> std::string {
    try {
      make();
      return "no error";
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_EQ(text([&] { differentiate(reduce(Combine::Sum, 0, x), {x}, one()); }),
            "loop.differentiate: cannot differentiate through `reduce`: only element-wise bodies "
            "have derived gradients");
  EXPECT_EQ(text([&] { differentiate(x, {index(0)}, one()); }),
            "loop.differentiate: an input is int64, not a float: i0");
  EXPECT_EQ(text([&] { differentiate(x, {x}, constant(1, DType::Float32)); }),
            "loop.differentiate: the gradient is float32 and the body float64");
}

}  // namespace
}  // namespace rushlight::loop
