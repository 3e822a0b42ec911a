// interpret(): against results worked out by hand or by plain loops.
#include <gtest/gtest.h>
#include <rushlight/error.h>

#include <cmath>
#include <numeric>

#include "loop/kernel.h"
#include "loop/reduction_tree.h"

namespace rushlight::loop {
namespace {

// Runs `kernel` on buffers given as pointers with strides.
struct Call {
  std::vector<void*> buffers;
  std::vector<std::vector<int64_t>> strides;
  std::vector<int64_t> extents;
  std::vector<uint64_t> scalars;

  void run(const Kernel& kernel, int64_t begin, int64_t end) {
    std::vector<const int64_t*> pointers;
    for (auto& s : strides) {
      pointers.push_back(s.data());
    }
    interpret(kernel, {buffers.data(), pointers.data(), extents.data(), scalars.data()}, begin,
              end);
  }
  void run(const Kernel& kernel) {
    int split = split_axis(kernel);
    run(kernel, 0, split < 0 ? 0 : extents[static_cast<size_t>(split)]);
  }
};

TEST(Interpret, ElementwiseWithStridesAndSplit) {
  Kernel kernel = parse(
      "kernel \"saxpy\"\naxis 0 parallel\nbuffer 0 f32 any\nbuffer 1 f32 zero\nbuffer 2 f64 unit\n"
      "scalar 0 f32\nscalar 1 i64\n"
      "store b2(i0) = cast.f64(add(mul(s0:f32, load.f32(b0, i0)), add(load.f32(b1, i0), "
      "cast.f32(s1:i64))))");
  float x[] = {1, 9, 2, 9, 3, 9};
  float y = 0.5;
  double out[] = {-1, -1, -1};
  Call call{{x, &y, out}, {{2}, {77}, {77}}, {3}, {std::bit_cast<uint32_t>(10.0f), uint64_t(-4)}};
  call.run(kernel, 1, 3);
  EXPECT_EQ(out[0], -1);
  EXPECT_EQ(out[1], 16.5);
  EXPECT_EQ(out[2], 26.5);
}

TEST(Interpret, SoftmaxInPlace) {
  Kernel kernel = parse(
      "kernel \"softmax\"\naxis 0 parallel\naxis 1 reduce\nbuffer 0 f32 any unit\n"
      "%0 = load.f32(b0, i0, i1)\n%1 = exp(sub(%0, reduce.max(i1, %0)))\n"
      "store b0(i0, i1) = div(%1, reduce.sum(i1, %1))");
  float x[] = {1, 2, 3, 1000, 1000, -5};
  Call call{{x}, {{3, 1}}, {2, 3}, {}};
  call.run(kernel);
  EXPECT_FLOAT_EQ(x[0] + x[1] + x[2], 1);
  EXPECT_FLOAT_EQ(x[2] / x[1], std::exp(1.0f));
  EXPECT_EQ(x[3], 0.5f);
  EXPECT_EQ(x[5], 0);
}

TEST(Interpret, ReductionFollowsTheTree) {
  Kernel kernel = parse(
      "kernel \"sum\"\naxis 0 reduce\nbuffer 0 f32 unit\nbuffer 1 f32\n"
      "store b1() = reduce.sum(i0, load.f32(b0, i0))");
  std::vector<float> x(1000);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = std::sin(static_cast<float>(i) * 1000) * static_cast<float>(i % 17);
  }
  float lanes[kLanes] = {};
  for (size_t i = 0; i < x.size(); ++i) {
    lanes[i % kLanes] += x[i];
  }
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) {
      lanes[i] += lanes[i + half];
    }
  }
  float out = -1;
  Call call{{x.data(), &out}, {{1}, {}}, {1000}, {}};
  call.run(kernel);
  EXPECT_EQ(out, lanes[0]);
  EXPECT_NE(out, std::accumulate(x.begin(), x.end(), 0.0f));  // the order does matter here
}

TEST(Interpret, ColumnsReduceInPlainOrder) {
  Kernel kernel = parse(
      "kernel \"columns\"\naxis 0 reduce\naxis 1 parallel\nbuffer 0 f32 any unit\nbuffer 1 f32 "
      "unit\nstore b1(i1) = reduce.sum(i0, load.f32(b0, i0, i1))");
  std::vector<float> x(200 * 3);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = std::sin(static_cast<float>(i) * 77);
  }
  float out[3] = {};
  Call call{{x.data(), out}, {{3, 1}, {1}}, {200, 3}, {}};
  call.run(kernel, 1, 3);
  EXPECT_EQ(out[0], 0);
  for (size_t column = 1; column < 3; ++column) {
    float sum = 0;
    for (size_t row = 0; row < 200; ++row) {
      sum += x[row * 3 + column];
    }
    EXPECT_EQ(out[column], sum);
  }
}

TEST(Interpret, EmptyReductionIsTheIdentity) {
  Kernel kernel = parse(
      "kernel \"empty\"\naxis 0 reduce\nbuffer 0 f32 unit\nbuffer 1 f32\nbuffer 2 f32\n"
      "%0 = load.f32(b0, i0)\nstore b1() = reduce.max(i0, %0)\nstore b2() = reduce.prod(i0, %0)");
  float max = 0;
  float prod = 0;
  Call call{{nullptr, &max, &prod}, {{1}, {}, {}}, {0}, {}};
  call.run(kernel);
  EXPECT_EQ(max, -INFINITY);
  EXPECT_EQ(prod, 1);
}

TEST(Interpret, ArgmaxIsAComposition) {
  Kernel kernel = parse(
      "kernel \"argmax\"\naxis 0 parallel\naxis 1 reduce\nbuffer 0 i8 any unit\nbuffer 1 i64 unit\n"
      "%0 = load.i8(b0, i0, i1)\n"
      "store b1(i0) = reduce.min(i1, select(eq(%0, reduce.max(i1, %0)), i1, n1))");
  int8_t x[] = {3, 7, 7, -1, -9, -9, -1, -1};
  int64_t out[2] = {};
  Call call{{x, out}, {{4, 1}, {1}}, {2, 4}, {}};
  call.run(kernel);
  EXPECT_EQ(out[0], 1);
  EXPECT_EQ(out[1], 2);
}

TEST(Interpret, ScanAndReduceOfScan) {
  Kernel kernel = parse(
      "kernel \"scan\"\naxis 0 parallel\naxis 1 scan\naxis 2 reduce\nbuffer 0 i32 any unit\n"
      "buffer 1 i32 any unit\nbuffer 2 i32 unit\n"
      "store b1(i0, i1) = add(scan.sum(i1, load.i32(b0, i0, i1)), scan.max(i1, load.i32(b0, i0, "
      "i1)))\nstore b2(i0) = reduce.sum(i2, load.i32(b0, i0, i2))");
  int32_t x[] = {1, -2, 5, 10, 20, 3};
  int32_t out[6] = {};
  int32_t sums[2] = {};
  Call call{{x, out, sums}, {{3, 1}, {3, 1}, {1}}, {2, 3, 3}, {}};
  call.run(kernel);
  int32_t wanted[] = {2, 0, 9, 20, 50, 53};
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(out[i], wanted[i]);
  }
  EXPECT_EQ(sums[0], 4);
  EXPECT_EQ(sums[1], 33);
}

TEST(Interpret, ReductionInsideReductionOverOneAxis) {
  // Variance in two passes, with the mean inside the body, and a use of the plain load after.
  Kernel kernel = parse(
      "kernel \"var\"\naxis 0 reduce\nbuffer 0 f64 unit\nbuffer 1 f64 unit\n"
      "%0 = load.f64(b0, i0)\n%1 = div(reduce.sum(i0, %0), cast.f64(n0))\n%2 = sub(%0, %1)\n"
      "store b1(i0) = add(%2, reduce.sum(i0, mul(%2, %2)))");
  double x[] = {1, 2, 3, 6};
  double out[4] = {};
  Call call{{x, out}, {{1}, {1}}, {4}, {}};
  call.run(kernel);
  EXPECT_EQ(out[0], -2 + 14);
  EXPECT_EQ(out[1], -1 + 14);
  EXPECT_EQ(out[3], 3 + 14);
}

TEST(Interpret, GatherAndGuardedLoads) {
  Kernel kernel = parse(
      "kernel \"gather\"\naxis 0 parallel\nbuffer 0 f16 unit\nbuffer 1 i64 unit\nbuffer 2 f32 "
      "unit\n%0 = load.i64(b1, i0)\n"
      "store b2(i0) = loadif.f16(b0, and(ge(%0, 0:i64), lt(%0, 3:i64)), -1:f32, %0)");
  uint16_t table[] = {to_half(1.5f).bits, to_half(2.5f).bits, to_half(-3.25f).bits};
  int64_t indices[] = {2, 0, INT64_MAX, -1, 1};
  float out[5] = {};
  Call call{{table, indices, out}, {{1}, {1}, {1}}, {5}, {}};
  call.run(kernel);
  float wanted[] = {-3.25f, 1.5f, -1, -1, 2.5f};
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(out[i], wanted[i]);
  }
}

TEST(Interpret, ScatterWithModesAndMask) {
  for (auto [mode, wanted] :
       {std::pair{"store.add", 5 + 1 + 3}, std::pair{"store.mul", 5 * 3}, std::pair{"store.max", 5},
        std::pair{"store.min", 1}, std::pair{"store", 3}}) {
    Kernel kernel = parse(std::string("kernel \"scatter\"\naxis 0 scan\nbuffer 0 f32 unit\n"
                                      "buffer 1 i32 unit\nbuffer 2 bf16 unit\n") +
                          mode +
                          " b2(cast.i64(load.i32(b1, i0))) = load.f32(b0, i0) if "
                          "lt(load.f32(b0, i0), 100:f32)");
    float x[] = {1, 2, 3, 1000};
    int32_t targets[] = {1, 0, 1, 1};
    uint16_t out[] = {to_bfloat16(7.0f).bits, to_bfloat16(5.0f).bits};
    Call call{{x, targets, out}, {{1}, {1}, {1}}, {4}, {}};
    call.run(kernel);
    EXPECT_EQ(to_float(BFloat16{out[1]}), wanted) << mode;
  }
}

TEST(Interpret, CombiningStoresRoundAtEachStep) {
  // 256 + 1 is 256 in bf16: eight additions of 1 go nowhere.
  Kernel kernel = parse(
      "kernel \"round\"\naxis 0 scan\nbuffer 0 bf16 zero\nstore.add b0(i0) = add(1:f32, "
      "mul(0:f32, cast.f32(i0)))");
  uint16_t out = to_bfloat16(256.0f).bits;
  Call call{{&out}, {{0}}, {8}, {}};
  call.run(kernel);
  EXPECT_EQ(to_float(BFloat16{out}), 256);
}

TEST(Interpret, LoadsSeeMemoryAsItWas) {
  Kernel kernel = parse(
      "kernel \"shift\"\naxis 0 parallel\nbuffer 0 u8 unit\nbuffer 1 u8 unit\n"
      "store b1(i0) = load.u8(b0, i0)");
  unsigned char bytes[] = {1, 2, 3, 4, 5};
  Call call{{bytes, bytes + 1}, {{1}, {1}}, {4}, {}};
  call.run(kernel);
  unsigned char wanted[] = {1, 1, 2, 3, 4};
  EXPECT_TRUE(std::equal(bytes, bytes + 5, wanted));
}

TEST(Interpret, RefusesAMalformedKernel) {
  Kernel kernel = parse("kernel \"bad\"\naxis 0 parallel\nstore b0(i0) = 1:f32");
  Call call{{}, {}, {1}, {}};
  EXPECT_THROW(call.run(kernel), Error);
}

}  // namespace
}  // namespace rushlight::loop
