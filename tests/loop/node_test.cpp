#include "loop/node.h"

#include <gtest/gtest.h>
#include <rushlight/error.h>

#include <atomic>
#include <thread>

#include "loop/kernel.h"

namespace rushlight::loop {
namespace {

Expr f32(int slot) {
  return scalar(slot, DType::Float32);
}

template <typename F>
void expect_misuse(F make, std::string_view message) {
  try {
    make();
    ADD_FAILURE() << "no error; wanted: " << message;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Internal);
    EXPECT_EQ(error.what(), message);
  }
}

TEST(Node, EqualMeansIdentical) {
  EXPECT_TRUE(same(f32(0) + f32(1), f32(0) + f32(1)));
  EXPECT_FALSE(same(f32(0) + f32(1), f32(1) + f32(0)));
  EXPECT_FALSE(same(constant(0.0, DType::Float32), constant(-0.0, DType::Float32)));
  EXPECT_TRUE(same(constant(NAN, DType::Float32), constant(-NAN, DType::Float32)));
  EXPECT_FALSE(same(load(0, DType::Float16, {}), load(0, DType::BFloat16, {})));
}

TEST(Node, ConstantsAreNormalised) {
  EXPECT_EQ(constant(0.1, DType::Float32)->constant(), static_cast<double>(0.1f));
  EXPECT_EQ(constant_int(300, DType::UInt8)->bits, 44u);
  EXPECT_EQ(constant_int(200, DType::Int8)->bits, static_cast<uint64_t>(-56));
  EXPECT_EQ(constant_int(7, DType::Bool)->bits, 1u);
  EXPECT_TRUE(same(constant(255, DType::UInt8), constant_int(-1, DType::UInt8)));
}

// The hash names objects on disk: it may only change together with the version in key().
TEST(Node, HashIsStable) {
  Expr x = load(0, DType::Float16, {index(0)});
  EXPECT_EQ((exp(x) * 0.5)->hash, 384101597480939461ull);
}

TEST(Node, CastsAndHalfTypes) {
  Expr x = load(0, DType::Float16, {index(0)});
  EXPECT_EQ(x.dtype(), DType::Float32);
  EXPECT_TRUE(same(cast(x, DType::Float32), x));
  Expr rounded = cast(x * 2, DType::BFloat16);
  EXPECT_EQ(rounded.dtype(), DType::Float32);
  EXPECT_EQ(rounded->buffer, DType::BFloat16);
}

TEST(Node, WithInputsKeepsThePayload) {
  Expr x = f32(0);
  Expr y = f32(1);
  Expr z = load(3, DType::BFloat16, {index(0)});
  EXPECT_TRUE(same(with_inputs(x + y, {x, y}), x + y));
  EXPECT_TRUE(same(with_inputs(x + y, {y, y}), y + y));
  EXPECT_TRUE(same(with_inputs(z, {index(1)}), load(3, DType::BFloat16, {index(1)})));
  EXPECT_TRUE(same(with_inputs(reduce(Combine::Max, 2, x), {y}), reduce(Combine::Max, 2, y)));
  EXPECT_TRUE(same(with_inputs(cast(x, DType::Float16), {y}), cast(y, DType::Float16)));
  Expr guarded = load_if(x < y, x, 1, DType::Float32, {index(0)});
  EXPECT_TRUE(same(with_inputs(guarded, {x > y, y, index(2)}),
                   load_if(x > y, y, 1, DType::Float32, {index(2)})));
}

TEST(Node, PostOrderAndRewrite) {
  Expr x = f32(0);
  Expr e = exp(x) * exp(x) + x;
  std::vector<Expr> order = post_order({&e, 1});
  ASSERT_EQ(order.size(), 4u);
  EXPECT_TRUE(same(order[0], x));
  EXPECT_TRUE(same(order[3], e));
  int visits = 0;
  Expr result = rewrite(e, [&](Expr n) {
    ++visits;
    return n->op == Op::Exp ? sin(n->inputs[0]) : n;
  });
  EXPECT_EQ(visits, 4);
  EXPECT_TRUE(same(result, sin(x) * sin(x) + x));
}

TEST(Node, DeepExpressionsDoNotRecurse) {
  Expr x = f32(0);
  Expr deep = x;
  for (int i = 0; i < 20000; ++i) {
    deep = deep * x + 1;
  }
  EXPECT_EQ(post_order({&deep, 1}).size(), 40002u);
  EXPECT_TRUE(same(rewrite(deep, [](Expr e) { return e; }), deep));
  EXPECT_TRUE(simplify(deep));
  EXPECT_TRUE(differentiate(deep, {x}, constant(1, DType::Float32))[0]);
}

TEST(Node, ThreadsAgree) {
  std::vector<std::vector<Expr>> made(4);
  std::vector<std::thread> threads;
  for (auto& mine : made) {
    threads.emplace_back([&mine] {
      Expr e = scalar(9, DType::Float64);
      for (int i = 0; i < 2000; ++i) {
        e = sin(e) + i;
        mine.push_back(e);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (size_t i = 0; i < made[0].size(); ++i) {
    for (const auto& other : made) {
      ASSERT_TRUE(same(other[i], made[0][i]));
    }
  }
}

TEST(NodeMisuse, Operands) {
  Expr i = index(0);
  Expr x = f32(0);
  Expr flag = x < 1;
  expect_misuse([&] { return x + i; }, "loop.add: operands differ in dtype: float32 and int64");
  expect_misuse([&] { return exp(i); }, "loop.exp: not defined on int64");
  expect_misuse([&] { return flag + flag; }, "loop.add: not defined on bool");
  expect_misuse([&] { return x & x; }, "loop.and: not defined on float32");
  expect_misuse([&] { return x + Expr{}; }, "loop.add: an operand is null");
  expect_misuse([&] { return i * 0.5; }, "loop.const: 0.5 is no value of int64");
  expect_misuse([&] { return constant(-1, DType::UInt8); }, "loop.const: -1 is no value of uint8");
  expect_misuse([&] { return select(x, x, x); },
                "loop.select: the condition must be bool, got float32");
  expect_misuse([&] { return select(flag, x, i); },
                "loop.select: operands differ in dtype: float32 and int64");
  expect_misuse([&] { return unary(Op::Add, x); }, "loop.add: cannot be made by unary()");
  expect_misuse([&] { return binary(Op::Cast, x, x); }, "loop.cast: cannot be made by binary()");
  expect_misuse([&] { return with_inputs(x + x, {x}); }, "loop.add: takes 2 operands, got 1");
}

TEST(NodeMisuse, Types) {
  Expr x = f32(0);
  expect_misuse([&] { return scalar(0, DType::Float16); },
                "loop.scalar: a value cannot be float16: half and float8 types occur in memory "
                "only, compute in float32");
  expect_misuse([&] { return imag(x); }, "loop.imag: not defined on float32");
  expect_misuse([&] { return floor(constant(1, DType::Complex64)); },
                "loop.floor: not defined on complex64");
  expect_misuse([&] { return load(0, DType::Float32, {x}); },
                "loop.load: an index must be int64, got float32");
  expect_misuse([&] { return load_if(x < 1, index(0), 0, DType::Float16, {}); },
                "loop.loadif: `other` must be float32, got int64");
  expect_misuse([&] { return bitcast(x, DType::Int64); },
                "loop.bitcast: sizes differ: float32 to int64");
  expect_misuse([&] { return reduce(Combine::And, 0, x); },
                "loop.reduce: and is not defined on float32");
  expect_misuse([&] { return scan(Combine::Sum, 0, x < 1); },
                "loop.scan: sum is not defined on bool");
  expect_misuse([&] { return index(256); }, "loop.index: number 256 is outside 0..255");
  expect_misuse([&] { return constant_int(1, DType::Float32); },
                "loop.const: expected an integer or bool dtype, got float32");
}

}  // namespace
}  // namespace rushlight::loop
