// simplify(): text in, text out; and on random kernels, not one bit may change.
#include <gtest/gtest.h>

#include "random_kernel.h"

namespace rushlight::loop {
namespace {

std::string simplified(std::string_view text) {
  return print(simplify(parse_expr(text)));
}

// `x` stands for a load of f32, `h` of f16, `j` of i32, `u` of u8, `c`, `d` for bool loads.
std::string expand(std::string text) {
  const std::pair<char, const char*> kLoads[] = {
      {'x', "load.f32(b0)"}, {'y', "load.f32(b1)"}, {'h', "load.f16(b2)"}, {'j', "load.i32(b3)"},
      {'k', "load.i32(b4)"}, {'u', "load.u8(b5)"},  {'c', "load.b8(b6)"},  {'z', "load.f64(b7)"}};
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    auto is_letter = [&](size_t at) {
      return at < text.size() && (std::isalnum(text[at]) || text[at] == '.' || text[at] == ':');
    };
    bool alone = !is_letter(i + 1) && (i == 0 || !is_letter(i - 1));
    std::string piece(1, text[i]);
    for (auto [letter, load] : kLoads) {
      if (alone && text[i] == letter) {
        piece = load;
      }
    }
    out += piece;
  }
  return out;
}

void expect(const char* from, const char* to) {
  EXPECT_EQ(print(simplify(parse_expr(expand(from)))), print(parse_expr(expand(to)))) << from;
}

void expect_kept(const char* text) {
  expect(text, text);
}

TEST(Simplify, FloatIdentities) {
  expect("mul(x, 1:f32)", "x");
  expect("mul(1:f32, x)", "x");
  expect("mul(x, -1:f32)", "neg(x)");
  expect("add(x, -0:f32)", "x");
  expect("sub(x, 0:f32)", "x");
  expect("sub(-0:f32, x)", "neg(x)");
  expect("div(x, 1:f32)", "x");
  expect("div(x, 4:f32)", "mul(x, 0.25:f32)");
  expect("add(x, neg(y))", "sub(x, y)");
  expect("add(neg(x), y)", "sub(y, x)");
  expect("sub(x, neg(y))", "add(x, y)");
  expect("mul(neg(x), neg(y))", "mul(x, y)");
  expect("mul(neg(x), 3:f32)", "mul(x, -3:f32)");
  expect("neg(neg(x))", "x");
  expect("abs(neg(x))", "abs(x)");
  expect("max(x, x)", "x");
  expect("floor(round(x))", "round(x)");
  expect("pow(x, 1:f32)", "x");
  expect("pow(x, 0:f32)", "1:f32");
}

TEST(Simplify, WhatWouldChangeBitsIsKept) {
  expect_kept("add(x, 0:f32)");   // -0 + 0 is 0
  expect_kept("sub(x, -0:f32)");  // -0 - -0 is 0
  expect_kept("sub(0:f32, x)");   // 0 - 0 is 0, not -0
  expect_kept("mul(x, 0:f32)");   // NaN, infinity, -0
  expect_kept("sub(x, x)");
  expect_kept("eq(x, x)");
  expect_kept("div(x, 3:f32)");
  expect_kept("not(lt(x, y))");  // NaN
  expect_kept("max(0:f32, x)");  // which zero
  expect_kept("exp(1:f32)");     // compiled code may round it otherwise
  expect_kept("div(x, 0:f32)");
  expect_kept("add(add(x, 1:f32), 2:f32)");
  expect_kept("cast.f32(cast.f16(x))");
}

TEST(Simplify, Integers) {
  expect("add(j, 0:i32)", "j");
  expect("mul(j, 0:i32)", "0:i32");
  expect("sub(j, j)", "0:i32");
  expect("sub(j, 5:i32)", "add(j, -5:i32)");
  expect("add(add(j, 3:i32), 4:i32)", "add(j, 7:i32)");
  expect("add(sub(2147483647:i32, -1:i32), j)", "add(j, -2147483648:i32)");
  expect("div(j, 1:i32)", "j");
  expect("mod(j, 1:i32)", "0:i32");
  expect("and(j, -1:i32)", "j");
  expect("or(u, 255:u8)", "255:u8");
  expect("xor(j, j)", "0:i32");
  expect("shl(j, 0:i32)", "j");
  expect("le(j, j)", "true");
  expect("pow(j, 0:i32)", "1:i32");
  expect("div(7:i32, 0:i32)", "0:i32");
}

TEST(Simplify, Conditions) {
  expect("select(true, x, y)", "x");
  expect("select(c, x, x)", "x");
  expect("select(not(c), x, y)", "select(c, y, x)");
  expect("select(c, true, false)", "c");
  expect("select(c, false, true)", "not(c)");
  expect("select(c, select(c, x, y), 1:f32)", "select(c, x, 1:f32)");
  expect("not(not(c))", "c");
  expect("not(eq(x, y))", "ne(x, y)");
  expect("eq(c, true)", "c");
  expect("eq(c, false)", "not(c)");
  expect("and(c, true)", "c");
  expect("and(c, false)", "false");
  expect("lt(1:f32, 2:f32)", "true");
  expect("loadif.f32(b0, true, 0:f32)", "x");
  expect("loadif.f32(b0, false, 7:f32)", "7:f32");
}

TEST(Simplify, Casts) {
  expect("cast.f16(h)", "h");
  expect("cast.f16(cast.f16(x))", "cast.f16(x)");
  expect("cast.f32(cast.f64(x))", "x");
  expect("cast.i8(cast.i64(u))", "cast.i8(u)");
  expect("cast.u8(cast.f32(u))", "u");
  expect("cast.u8(cast.i16(j))", "cast.u8(j)");
  expect("cast.b8(cast.f32(c))", "c");
  expect("cast.i32(1.75:f32)", "1:i32");
  expect("cast.f16(0.1:f32)", "0.099975586:f32");
  expect_kept("cast.i32(3e+20:f32)");    // unspecified
  expect_kept("cast.i32(cast.f32(j))");  // rounds
  expect_kept("cast.f64(cast.f32(z))");  // rounds
  expect_kept("cast.i64(cast.u8(j))");   // wraps
}

TEST(Simplify, FoldsThroughFactories) {
  EXPECT_EQ(simplified("add(mul(2:f32, 3:f32), sqrt(16:f32))"), "10:f32");
  EXPECT_EQ(simplified("fma(0.1:f64, 10:f64, -1:f64)"), "5.551115123125783e-17:f64");
  EXPECT_EQ(simplified("bitcast.i32(1:f32)"), "1065353216:i32");
}

TEST(Simplify, KernelMask) {
  Kernel kernel = parse(
      "kernel \"m\"\naxis 0 parallel\nbuffer 0 f32 unit\nstore b0(add(i0, 0:i64)) = mul(1:f32, "
      "load.f32(b0, i0)) if lt(0:i64, 1:i64)");
  EXPECT_EQ(print(simplify(kernel)),
            "kernel \"m\"\naxis 0 parallel\nbuffer 0 f32 unit\nstore b0(i0) = load.f32(b0, i0)\n");
}

TEST(Simplify, RandomKernelsKeepEveryBit) {
  int changed = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    testing::RandomKernel random(seed);
    Kernel kernel = random.kernel(4);
    Kernel simple = simplify(kernel);
    ASSERT_EQ(verify(simple), "");
    ASSERT_TRUE(same(simplify(simple), simple)) << print(simple);
    changed += !same(simple, kernel);
    testing::Memory before(kernel, random);
    testing::Memory after = before;
    before.run(kernel);
    after.run(simple);
    for (const Store& store : kernel.stores) {
      size_t buffer = static_cast<size_t>(store.buffer);
      for (size_t i = 0; i < testing::kPoints; ++i) {
        ASSERT_EQ(before.at(kernel, buffer, i), after.at(kernel, buffer, i))
            << "seed " << seed << " point " << i << "\n"
            << print(store.value) << "\nbecame\n"
            << print(simplify(store.value));
      }
    }
  }
  EXPECT_GT(changed, 300);
}

}  // namespace
}  // namespace rushlight::loop
