#include <gtest/gtest.h>
#include <rushlight/memory.h>
#include <rushlight/rushlight.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "compile/compile.h"
#include "compile/passes.h"
#include "graph/recipe.h"

namespace rushlight::compiler {
namespace {

bool same_bits(const Tensor& a, const Tensor& b) {
  Tensor x = contiguous(a.detach());
  Tensor y = contiguous(b.detach());
  return x.dtype() == y.dtype() && x.sizes() == y.sizes() &&
         std::memcmp(x.data(), y.data(), static_cast<size_t>(x.nbytes())) == 0;
}

Tensor chain(const Tensor& x) {
  return sum(mul(exp(cos(sin(x))), x));
}

Tensor input() {
  manual_seed(0);
  return randn({128, 256}).requires_grad_();
}

const CompileOptions kNothingKept{.activation_memory_budget = 0};

// The gradient of chain, its budget, and what happens before backward.
template <typename F>
Tensor gradient(const CompileOptions& options, F between) {
  Tensor x = input();
  Tensor out = compile(chain, options)(x);
  between(x);
  out.backward();
  return x.grad();
}

Tensor gradient(const CompileOptions& options) {
  return gradient(options, [](const Tensor&) {});
}

TEST(Recomputation, GivesEagersGradients) {
  int64_t before = statistics().remade;
  Tensor kept = gradient({});
  EXPECT_EQ(statistics().remade, before);
  Tensor made = gradient(kNothingKept);
  EXPECT_EQ(statistics().remade, before + 2);  // sin's and exp's
  EXPECT_TRUE(same_bits(kept, made));
}

TEST(Recomputation, KeepsLess) {
  auto held = [](double budget) {
    Tensor x = input();
    int64_t before = memory::statistics().live_bytes;
    Tensor out = compile(chain, {.activation_memory_budget = budget})(x);
    return memory::statistics().live_bytes - before;
  };
  held(1);  // what is made once
  held(0);
  int64_t all = held(1);
  constexpr int64_t kTwo = 2 * 128 * 256 * 4;
  EXPECT_GE(all, kTwo);
  EXPECT_LT(held(0), all - kTwo + 4096);  // what recipes take
}

// A write that no version counts: gradients of what was saved see it, but no result made again
// does.
TEST(Recomputation, SeesInputsAsTheyWere) {
  auto write = [](const Tensor& x) {
    x.detach().data_ptr<float>()[3] = 2;
    EXPECT_FALSE(x.storage()->pending.load());
  };
  EXPECT_TRUE(same_bits(gradient({}, write), gradient(kNothingKept, write)));
}

TEST(Recomputation, EndsALoanWithItsReader) {
  Tensor x = input();
  Tensor out = compile(chain, kNothingKept)(x);
  EXPECT_TRUE(graph::is_lent(x.storage()));
  out = Tensor();
  EXPECT_FALSE(graph::is_lent(x.storage()));
  EXPECT_FALSE(x.storage()->pending.load());
}

TEST(Recomputation, MakesResultsForSeveralThreads) {
  Tensor expected = gradient({});
  for (int round = 0; round < 20; ++round) {
    Tensor x = input();
    Tensor out = compile(chain, kNothingKept)(x);
    TensorList found(4);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < found.size(); ++i) {
      threads.emplace_back([&, i] { found[i] = autograd::grad({out}, {x}, {}, true)[0]; });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    for (const Tensor& one : found) {
      EXPECT_TRUE(same_bits(one, expected));
    }
  }
}

// Reading what is lent has the results of other threads made while they take them up themselves.
TEST(Recomputation, SharesWeightsBetweenThreads) {
  manual_seed(1);
  Tensor weight = randn({64}).requires_grad_();
  auto layer = [&](const Tensor& x) { return sum(mul(sin(mul(x, weight)), cos(add(x, weight)))); };
  Tensor x = randn({32, 64});
  auto derive = [&](auto function, bool reads) {
    Tensor own = x.detach().requires_grad_();
    Tensor out = function(own);
    if (reads) {
      EXPECT_EQ(weight.detach().sum().item<float>(), sum(weight.detach()).item<float>());
    }
    return autograd::grad({out}, {own})[0];
  };
  Tensor expected = derive(layer, false);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 25; ++round) {
        Tensor found = derive(compile(layer, kNothingKept), round % 4 == i);
        wrong += same_bits(found, expected) ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_FALSE(graph::is_lent(weight.storage()));
}

TEST(Recomputation, EndsTheSegmentWhereBackwardBegins) {
  Tensor x = input();
  auto step = [&] {
    Tensor out = chain(x);
    out.backward();
    return out;
  };
  int64_t before = statistics().segments;
  compile(step)();
  EXPECT_EQ(statistics().segments, before + 1);
  Tensor first = x.grad();
  x.set_grad(Tensor());
  compile(step, kNothingKept)();
  EXPECT_EQ(statistics().segments, before + 3);
  EXPECT_TRUE(same_bits(first, x.grad()));
}

TEST(Recomputation, ChecksTheBudget) {
  EXPECT_THROW(Capture({.activation_memory_budget = 1.5}), Error);
  EXPECT_THROW(Capture({.activation_memory_budget = -0.1}), Error);
}

}  // namespace
}  // namespace rushlight::compiler
