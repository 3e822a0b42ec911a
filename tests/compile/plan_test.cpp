#include <gtest/gtest.h>
#include <rushlight/rushlight.h>

#include <cstdlib>
#include <cstring>

#include "compile/compile.h"
#include "compile/passes.h"
#include "graph/capture.h"
#include "graph/execute.h"
#include "runtime/kernel_cache.h"

namespace rushlight::compiler {
namespace {

bool same_bits(const Tensor& a, const Tensor& b) {
  Tensor x = contiguous(a.detach());
  Tensor y = contiguous(b.detach());
  return x.dtype() == y.dtype() && x.sizes() == y.sizes() &&
         (x.numel() == 0 || std::memcmp(x.data(), y.data(), static_cast<size_t>(x.nbytes())) == 0);
}

// The draft of what a function captures; results of the function are live.
template <typename F>
Draft draft_of(F function) {
  Draft draft;
  graph::Settings settings;
  settings.runner = [&](graph::Segment& segment) {
    std::vector<bool> live(segment.storages.size());
    for (size_t i = 0; i < live.size(); ++i) {
      live[i] = segment.graph.storages[i].input || segment.is_live(static_cast<int>(i));
    }
    draft = plan_graph(segment.graph, live);
    graph::execute(segment);
  };
  graph::open_capture(graph::register_settings(std::move(settings)));
  auto kept = function();
  graph::close_capture(false);
  return draft;
}

int kernels(const Draft& draft) {
  int count = 0;
  for (const Group& group : draft.groups) {
    count += group.fuses ? 1 : 0;
  }
  return count;
}

TEST(Fusion, JoinsAChainIntoOneKernel) {
  Tensor x = randn({64, 32});
  Draft draft = draft_of([&] { return relu(add(mul(sin(x), Scalar(2)), x)); });
  EXPECT_EQ(draft.groups.size(), 1u);
  EXPECT_EQ(kernels(draft), 1);
}

TEST(Fusion, JoinsReductionsWithWhatTheyReadAndFeed) {
  Tensor x = randn({64, 32});
  Draft draft = draft_of([&] {
    Tensor y = mul(x, Scalar(3));
    return sub(y, mean(y, {1}, true));
  });
  EXPECT_EQ(draft.groups.size(), 1u);
}

TEST(Fusion, JoinsConversionsAndCopies) {
  Tensor x = to(randn({64, 32}), DType::BFloat16);
  Draft draft = draft_of([&] {
    Tensor y = clone(to(silu(to(x, DType::Float32)), DType::Float64));
    return y.copy_(x) * 2;
  });
  EXPECT_EQ(draft.groups.size(), 1u);
  EXPECT_EQ(kernels(draft), 1);
}

TEST(Fusion, LeavesTranspositionsToTheirKernel) {
  Tensor x = randn({64, 32});
  Draft draft = draft_of([&] { return clone(transpose(x, 0, 1), MemoryFormat::Contiguous) * 2; });
  EXPECT_EQ(draft.groups.size(), 2u);
}

TEST(Fusion, LeavesATransposedReadOfWhatItWroteAlone) {
  Tensor x = randn({16, 16});
  Draft draft = draft_of([&] {
    Tensor y = mul(x, Scalar(3));
    return add(y, transpose(y, 0, 1));
  });
  EXPECT_EQ(draft.groups.size(), 2u);
}

TEST(Fusion, DoesNotJoinAcrossWhatLiesBetween) {
  Tensor x = randn({16, 16});
  Draft draft = draft_of([&] {
    Tensor y = mul(x, Scalar(3));
    return add(y, mm(y, x));
  });
  // The sum runs on blocks of the product, which reads all of what the first kernel makes.
  ASSERT_EQ(draft.groups.size(), 2u);
  EXPECT_EQ(draft.groups[0].nodes.size(), 1u);
  EXPECT_EQ(draft.groups[0].product, -1);
  EXPECT_EQ(draft.groups[1].nodes.size(), 1u);
  EXPECT_GE(draft.groups[1].product, 0);
}

TEST(Passes, JoinNoProductWithAKernelThatSeesItTurned) {
  Tensor x = randn({16, 16});
  Draft draft = draft_of([&] {
    Tensor y = mm(x, x);
    return add(y, transpose(y, 0, 1));
  });
  ASSERT_EQ(draft.groups.size(), 2u);
  EXPECT_EQ(draft.groups[1].product, -1);
}

TEST(Passes, JoinNoProductThatIsNeededEarlier) {
  Tensor x = randn({16, 16});
  Draft draft = draft_of([&] {
    Tensor y = mm(x, x);
    Tensor z = mm(y, x);
    return add(relu(y), sum(z));
  });
  for (const Group& group : draft.groups) {
    EXPECT_EQ(group.product, -1);
  }
}

TEST(Passes, LeaveOutWhatNobodySees) {
  Tensor x = randn({16});
  Draft draft = draft_of([&] {
    exp(x);
    return add(x, Scalar(1));
  });
  EXPECT_EQ(draft.groups.size(), 1u);
}

TEST(Passes, KeepRandomNumbersThatNobodySees) {
  Tensor x = randn({16});
  Draft draft = draft_of([&] {
    rand({3});
    return add(x, Scalar(1));
  });
  EXPECT_EQ(draft.groups.size(), 2u);
}

TEST(Passes, RunEqualCallsOnce) {
  Tensor x = randn({16, 16});
  Draft draft = draft_of([&] { return add(mm(x, x), mm(x, x)); });
  ASSERT_EQ(draft.groups.size(), 1u);
  EXPECT_GE(draft.groups[0].product, 0);
  EXPECT_EQ(draft.rewrites.size(), 1u);
}

TEST(Passes, DoNotMergeAcrossAWrite) {
  Tensor x = randn({16, 16});
  Draft draft = draft_of([&] {
    Tensor a = mm(x, x);
    x.add_(Scalar(1));
    return add(a, mm(x, x));
  });
  EXPECT_TRUE(draft.rewrites.empty());
}

TEST(Passes, ReuseMemoryThatIsReadForTheLastTime) {
  Tensor x = randn({16, 16});
  Draft draft = draft_of([&] { return tanh(add(mm(x, x), Scalar(1))); });
  EXPECT_EQ(draft.reuses.size(), 1u);
}

TEST(Passes, ReuseOneMemoryForWhatIsWrittenTwice) {
  Tensor x = randn({16, 16});
  Tensor w = randn({16, 16});
  Draft draft = draft_of([&] {
    Tensor y = add(mm(x, x), mm(x, w));
    y.tanh_();
    return y;
  });
  EXPECT_EQ(draft.reuses.size(), 1u);
}

Tensor program(const Tensor& x, const Tensor& w) {
  Tensor h = gelu(matmul(x, w), "none");
  Tensor n = div(sub(h, mean(h, {-1}, true)), sqrt(add(var(h, {-1}, 1, true), Scalar(1e-5))));
  n.mul_(Scalar(0.5));
  return softmax(add(n, h), -1);
}

TEST(Compile, HasEagersBits) {
  Tensor x = randn({24, 16});
  Tensor w = randn({16, 40});
  auto fast = compile(program);
  Tensor expected = program(x, w);
  EXPECT_TRUE(same_bits(fast(x, w), expected));
  EXPECT_TRUE(same_bits(fast(x, w), expected));
}

TEST(Compile, HasEagersGradients) {
  Tensor x = randn({24, 16});
  Tensor w = randn({16, 40}).requires_grad_();
  sum(program(x, w)).backward();
  Tensor expected = w.grad();
  w.set_grad(Tensor());
  auto fast = compile(program);
  sum(fast(x, w)).backward();
  EXPECT_TRUE(same_bits(w.grad(), expected));
}

TEST(Compile, OtherSizesNeedNoNewKernelAndNoNewPlan) {
  Tensor w = randn({16, 40});
  auto fast = compile(program);
  fast(randn({24, 16}), w);
  Statistics before = statistics();
  KernelCacheStats kernels = kernel_cache_stats();
  for (int64_t rows : {48, 7, 100}) {
    Tensor x = randn({rows, 16});
    EXPECT_TRUE(same_bits(fast(x, w), program(x, w)));
  }
  EXPECT_EQ(kernel_cache_stats().compiled, kernels.compiled);
  EXPECT_EQ(statistics().plans, before.plans);
  EXPECT_EQ(statistics().plan_hits, before.plan_hits + 3);
}

TEST(Compile, WorksOnEveryDType) {
  for (DType dtype : {DType::Float64, DType::BFloat16, DType::Float16, DType::Int32}) {
    Tensor x = to(mul(randn({8, 24}), Scalar(4)), dtype);
    auto function = [](const Tensor& x) {
      Tensor y = add(mul(x, Scalar(3)), x);
      return sub(mul(y, y), sum(y, {1}, true));
    };
    EXPECT_TRUE(same_bits(compile(function)(x), function(x))) << dtype_name(dtype);
  }
}

// Values that do not fit, too: what is fused converts as what runs alone.
TEST(Compile, ConvertsAsEagerDoes) {
  DType dtypes[] = {DType::Float64, DType::Float32, DType::BFloat16, DType::Float16, DType::Int64,
                    DType::Int32,   DType::Int16,   DType::Int8,     DType::UInt8,   DType::Bool};
  Tensor base = mul(randn({8, 24}), Scalar(300));
  for (DType from : dtypes) {
    Tensor x = to(base, from);
    for (DType target : dtypes) {
      auto function = [&](const Tensor& x) {
        Tensor y = to(to(x, target), DType::Float64);
        return zeros({8, 24}, TensorOptions(target)).copy_(sub(y, Scalar(1)));
      };
      EXPECT_TRUE(same_bits(compile(function)(x), function(x)))
          << dtype_name(from) << " to " << dtype_name(target);
    }
  }
}

TEST(Compile, EmptyAndScalarTensorsWork) {
  auto function = [](const Tensor& x) { return sum(add(mul(x, Scalar(2)), Scalar(1))); };
  for (const Tensor& x : {ones({}), ones({0}), ones({3, 0}), ones({1})}) {
    EXPECT_TRUE(same_bits(compile(function)(x), function(x)));
  }
}

// Random streams and the default dtype are not arguments: what was called before they change is
// computed before.
TEST(Compile, SeedsAndDefaultsChangeAfterWhatCameBefore) {
  auto function = [] {
    Generator generator(3);
    Tensor first = rand({4}, TensorOptions(), generator);
    generator.manual_seed(5);
    Tensor second = rand({4}, TensorOptions(), generator);
    manual_seed(7);
    Tensor third = randn({4});
    set_default_dtype(DType::Float64);
    Tensor fourth = ones({4});
    set_default_dtype(DType::Float32);
    return cat({first, second, third, to(fourth, DType::Float32)}).mul_(Scalar(2));
  };
  EXPECT_TRUE(same_bits(compile(function)(), function()));
}

TEST(Compile, FullgraphRefusesToEndEarly) {
  auto function = [](const Tensor& x) {
    Tensor y = mul(x, Scalar(2));
    return sum(y).item().to_double() > 0 ? y : x;
  };
  auto fast = compile(function, {.fullgraph = true});
  EXPECT_THROW(fast(ones({3})), Error);
  EXPECT_FALSE(graph::is_capturing());
  EXPECT_TRUE(same_bits(compile(program, {.fullgraph = true})(ones({3, 4}), ones({4, 2})),
                        program(ones({3, 4}), ones({4, 2}))));
}

TEST(Compile, AnErrorInsideLeavesCaptureClosed) {
  Tensor x = ones({2, 3});
  auto fast = compile([](const Tensor& x) { return mm(x, x); });
  EXPECT_THROW(fast(x), Error);
  EXPECT_FALSE(graph::is_capturing());
}

}  // namespace
}  // namespace rushlight::compiler
