// print() and parse().
#include <gtest/gtest.h>
#include <rushlight/error.h>

#include "random_kernel.h"

namespace rushlight::loop {
namespace {

constexpr std::string_view kSoftmax = R"(kernel "softmax"
axis 0 parallel
axis 1 reduce
buffer 0 bf16 any unit
buffer 1 f32 any unit
scalar 0 f32
%0 = mul(load.bf16(b0, i0, i1), s0:f32)
%1 = exp(sub(%0, reduce.max(i1, %0)))
store b1(i0, i1) = div(%1, reduce.sum(i1, %1))
)";

std::string round_trip(std::string_view text) {
  return print(parse_expr(text));
}

void expect_error(std::string_view text, std::string_view message) {
  try {
    parse(text);
    ADD_FAILURE() << "no error for: " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Value);
    EXPECT_EQ(error.what(), "loop.parse: " + std::string(message));
  }
}

TEST(Text, KernelRoundTrip) {
  Kernel kernel = parse(kSoftmax);
  EXPECT_EQ(print(kernel), kSoftmax);
  EXPECT_EQ(kernel.name, "softmax");
  EXPECT_EQ(kernel.axes[1], AxisKind::Reduce);
  EXPECT_EQ(verify(kernel), "");
}

TEST(Text, CommentsAndSpaceAreFree) {
  Kernel kernel = parse(
      "kernel \"a\" # a comment\n axis 0 parallel buffer 0 i8 zero store\n b0 (i0)"
      "=1:i8 if lt( i0,n0 )");
  EXPECT_EQ(print(kernel),
            "kernel \"a\"\naxis 0 parallel\nbuffer 0 i8 zero\nstore b0(i0) = 1:i8 if lt(i0, n0)\n");
}

TEST(Text, StoreModes) {
  std::string text = "kernel \"m\"\naxis 0 scan\nbuffer 0 f32 any\n";
  for (const char* mode : {"store", "store.add", "store.mul", "store.max", "store.min"}) {
    text += std::string(mode) + " b0(i0) = cast.f32(i0)\n";
  }
  // The value is shared, so it is printed once.
  std::string printed = print(parse(text));
  EXPECT_NE(printed.find("%0 = cast.f32(i0)\nstore b0(i0) = %0\nstore.add b0(i0) = %0\n"),
            std::string::npos);
  EXPECT_TRUE(same(parse(printed), parse(text)));
}

TEST(Text, NamesAreQuoted) {
  Kernel kernel = parse(kSoftmax);
  for (const char* name : {"", "a \"quoted\" name", "back\\slash", "two\nlines", "\\n", "\\\""}) {
    kernel.name = name;
    EXPECT_EQ(parse(print(kernel)).name, name);
  }
}

TEST(Text, Constants) {
  for (const char* text :
       {"1:f32", "-0:f64", "0.1:f32", "0.1:f64", "1e+30:f32", "inf:f64", "-inf:f32", "nan:f32",
        "1e-45:f32", "5e-324:f64", "-128:i8", "255:u8", "18446744073709551615:u64",
        "-9223372036854775808:i64", "true", "false", "s7:i16", "n3"}) {
    EXPECT_EQ(round_trip(text), text);
  }
}

TEST(Text, EveryOperator) {
  for (const char* text :
       {"load.u8(b3)", "loadif.f16(b1, true, 0:f32, i0, i1)", "cast.f8e5m2(1:f32)",
        "bitcast.i32(1:f32)", "fma(1:f32, 2:f32, 3:f32)", "select(true, 1:i8, 2:i8)",
        "scan.prod(i2, 1:f64)", "reduce.or(i0, true)", "isnan(1:f32)", "not(true)"}) {
    EXPECT_EQ(round_trip(text), text);
  }
}

TEST(Text, SharedNodesArePrintedOnce) {
  Expr x = exp(load(0, DType::Float32, {index(0)}));
  EXPECT_EQ(print(x * x), "%0 = exp(load.f32(b0, i0))\nmul(%0, %0)");
  EXPECT_TRUE(same(parse_expr(print(x * x)), x * x));
}

TEST(Text, DeepExpressions) {
  Expr x = scalar(0, DType::Float64);
  Expr deep = x;
  for (int i = 0; i < 20000; ++i) {
    deep = sin(deep);
  }
  EXPECT_TRUE(same(parse_expr(print(deep)), deep));
  std::string nested;
  for (int i = 0; i < 100000; ++i) {
    nested += "sin(";
  }
  EXPECT_THROW(parse_expr(nested), Error);
}

TEST(Text, RandomKernelsRoundTrip) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    testing::RandomKernel random(seed);
    Kernel kernel = random.kernel(3);
    ASSERT_EQ(verify(kernel), "");
    std::string text = print(kernel);
    Kernel again = parse(text);
    ASSERT_TRUE(same(kernel, again)) << text;
    ASSERT_EQ(print(again), text);
    ASSERT_EQ(key(again), key(kernel));
  }
}

TEST(Text, MutilatedTextNeverCrashes) {
  std::string text(kSoftmax);
  std::mt19937 random(1);
  int parsed = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string broken = text;
    for (int edits = 1 + static_cast<int>(random() % 3); edits > 0; --edits) {
      size_t at = random() % broken.size();
      switch (random() % 3) {
        case 0:
          broken.erase(at, 1 + random() % 5);
          break;
        case 1:
          broken[at] = text[random() % text.size()];
          break;
        default:
          broken.insert(at, text.substr(random() % text.size(), random() % 9));
      }
    }
    try {
      Kernel kernel = parse(broken);
      verify(kernel);
      ++parsed;
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::Value) << error.what();
    }
  }
  EXPECT_GT(parsed, 0);
}

TEST(Text, ErrorsNameThePlace) {
  expect_error("kernel softmax", "line 1, column 8: expected `\"`, got `s`");
  expect_error("kernel \"a", "line 1, column 8: the name is not closed");
  expect_error("kernel \"a\"\naxis 1 parallel", "line 2, column 6: expected number 0, got 1");
  expect_error("kernel \"a\"\naxis 0 sideways", "line 2, column 8: `sideways` is not an axis kind");
  expect_error("kernel \"a\"\nbuffer 0 f31", "line 2, column 10: `f31` is not a dtype");
  expect_error("kernel \"a\"\nstore b0() = %3", "line 2, column 14: `%3` is not defined");
  expect_error("kernel \"a\"\n%1 = 1:i8\n%1 = 2:i8\n", "line 3, column 1: `%1` is defined twice");
  expect_error("kernel \"a\"\nstore b0() = frob(1:f32)",
               "line 2, column 14: `frob` is not an operator");
  expect_error("kernel \"a\"\nstore b0() = add(1:f32)",
               "line 2, column 14: `add` does not take 1 operands");
  expect_error("kernel \"a\"\nstore b0() = add(1:f32,\n 1:f64)",
               "line 2, column 14: loop.add: operands differ in dtype: float32 and float64");
  expect_error("kernel \"a\"\nstore b0() = 300:u8",
               "line 2, column 14: `300` is out of the range of uint8");
  expect_error("kernel \"a\"\nstore b0() = 1.5:i8", "line 2, column 14: `1.5` is not a number");
  expect_error("kernel \"a\"\nstore b0() = exp.f32(1:f32)",
               "line 2, column 14: `exp` takes no `.f32`");
  expect_error("kernel \"a\"\nstore b0() = i256", "line 2, column 14: `i256`: numbers go to 255");
  expect_error("kernel \"a\"\nstore b0(i0 = 1:f32", "line 2, column 13: expected `)`, got `=`");
}

}  // namespace
}  // namespace rushlight::loop
