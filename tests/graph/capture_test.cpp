#include "graph/capture.h"

#include <gtest/gtest.h>
#include <rushlight/rushlight.h>

#include <thread>

#include "graph/execute.h"
#include "ops/operator.h"

namespace rushlight::graph {
namespace {

struct Record {
  int segments = 0;
  int nodes = 0;
  std::vector<Break> reasons;
};

// Runs `function` captured by settings that record what happens.
template <typename F>
Record capture(F function, bool fullgraph = false) {
  auto record = std::make_shared<Record>();
  Settings settings;
  settings.runner = [record](Segment& segment) {
    ++record->segments;
    record->nodes += static_cast<int>(segment.graph.nodes.size());
    record->reasons.push_back(segment.reason);
    execute(segment);
  };
  settings.fullgraph = fullgraph;
  open_capture(register_settings(std::move(settings)));
  try {
    function();
  } catch (...) {
    close_capture(true);
    throw;
  }
  close_capture(false);
  return *record;
}

std::vector<float> values(const Tensor& x) {
  Tensor flat = contiguous(x.detach());
  const auto* data = flat.data_ptr<float>();
  return {data, data + flat.numel()};
}

using Floats = std::vector<float>;

TEST(Capture, ChecksWritesThatNeedNoInference) {
  Tensor x = ones({4});
  Tensor whole = ones({4}, DType::Int64);
  capture([&] {
    x.add_(x).mul_(x);
    EXPECT_THROW(narrow(x, 0, 1, 3).add_(narrow(x, 0, 0, 3)), Error);  // overlaps
    EXPECT_THROW(whole.mul_(Scalar(0.5)), Error);                      // no integer
    EXPECT_THROW(x.add_(ones({5})), Error);
    whole.add_(whole);
  });
  EXPECT_EQ(values(x), (Floats{4, 4, 4, 4}));
  EXPECT_EQ(x.version(), 2u);
  EXPECT_EQ(whole.version(), 1u);
  EXPECT_EQ(whole.sum().item<int64_t>(), 8);
}

TEST(Capture, DelaysUntilItCloses) {
  Tensor x = ones({3});
  Tensor y;
  Record record = capture([&] {
    y = add(x, Scalar(1));
    EXPECT_TRUE(y.storage()->pending.load());
    EXPECT_EQ(y.sizes(), x.sizes());
  });
  EXPECT_EQ(record.segments, 1);
  EXPECT_FALSE(y.storage()->pending.load());
  EXPECT_EQ(values(y), (Floats{2, 2, 2}));
}

TEST(Capture, EndsASegmentWhereAValueIsRead) {
  Tensor x = ones({3});
  Tensor z;
  Record record = capture([&] {
    Tensor y = add(x, Scalar(1));
    double first = y.select(0, 0).item<double>();
    z = mul(y, Scalar(first));
  });
  EXPECT_EQ(record.reasons, (std::vector<Break>{Break::Value, Break::Close}));
  EXPECT_EQ(values(z), (Floats{4, 4, 4}));
}

TEST(Capture, EndsASegmentWhereShapesDependOnData) {
  Tensor x = tensor({0.0f, 1.0f, 2.0f});
  Tensor z;
  Record record = capture([&] { z = masked_select(x, gt(mul(x, Scalar(2)), Scalar(1))); });
  ASSERT_FALSE(record.reasons.empty());
  EXPECT_EQ(record.reasons[0], Break::Operator);
  EXPECT_EQ(values(z), (Floats{1, 2}));
}

TEST(Capture, FullGraphRefusesToEndEarly) {
  Tensor x = ones({3});
  EXPECT_THROW(capture([&] { add(x, Scalar(1)).select(0, 0).item<double>(); }, true), Error);
}

TEST(Capture, WritesThroughViewsInOrder) {
  Tensor x = zeros({2, 2});
  Tensor before;
  capture([&] {
    Tensor row = x.select(0, 1);
    before = add(x, Scalar(0));
    row.add_(Scalar(5));
    x.mul_(Scalar(2));
  });
  EXPECT_EQ(values(x), (Floats{0, 0, 10, 10}));
  EXPECT_EQ(values(before), (Floats{0, 0, 0, 0}));
}

TEST(Capture, CountsVersionsOnce) {
  Tensor x = zeros({2});
  uint32_t before = x.version();
  capture([&] { x.add_(Scalar(1)); });
  EXPECT_EQ(x.version(), before + 1);
}

TEST(Capture, SeesSavedTensorsChanged) {
  Tensor x = ones({2}).requires_grad_();
  EXPECT_THROW(capture([&] {
                 Tensor y = mul(x, Scalar(2));
                 Tensor z = mul(y, y);
                 y.add_(Scalar(1));
                 sum(z).backward();
               }),
               Error);
}

TEST(Capture, KeepsErrorsOfShapesWhereTheyAreMade) {
  Tensor x = ones({2, 3});
  capture([&] { EXPECT_THROW(mm(x, x), Error); });
}

TEST(Capture, RaisesWhatFailsWhileASegmentRuns) {
  Tensor x = ones({3});
  Tensor index = tensor({7}, TensorOptions(DType::Int64));
  Tensor taken;
  EXPECT_THROW(capture([&] { taken = index_select(x, 0, index); }), Error);
  // And again by whoever reads what was never made.
  EXPECT_THROW(taken.data(), Error);
  EXPECT_EQ(values(add(x, Scalar(1))), (Floats{2, 2, 2}));
}

TEST(Capture, CapturesBackwardOfWhatItCaptured) {
  Tensor x = tensor({1.0f, 2.0f}).requires_grad_();
  Tensor loss;
  auto segments = std::make_shared<int>(0);
  Settings settings;
  settings.runner = [segments](Segment& segment) {
    ++*segments;
    execute(segment);
  };
  open_capture(register_settings(std::move(settings)));
  loss = sum(mul(x, x));
  close_capture(false);
  EXPECT_EQ(*segments, 1);
  loss.backward();
  EXPECT_EQ(*segments, 2);
  EXPECT_EQ(values(x.grad()), (Floats{2, 4}));
}

TEST(Capture, OtherThreadsMayReadPendingTensors) {
  Tensor x = ones({3});
  capture([&] {
    Tensor y = add(x, Scalar(1));
    std::thread other([&] { EXPECT_EQ(values(y), (Floats{2, 2, 2})); });
    other.join();
    EXPECT_FALSE(y.storage()->pending.load());
  });
}

TEST(Capture, RandomNumbersComeInTheSameOrder) {
  manual_seed(3);
  Tensor a = rand({4});
  Tensor b = randn({4});
  Tensor c;
  Tensor d;
  manual_seed(3);
  capture([&] {
    c = rand({4});
    d = randn({4});
  });
  EXPECT_EQ(values(a), values(c));
  EXPECT_EQ(values(b), values(d));
}

TEST(StructuralHash, IsTheSameForOtherSizes) {
  auto hash_of = [](int64_t rows, int64_t columns, double factor) {
    Hash hash;
    Settings settings;
    settings.runner = [&](Segment& segment) {
      hash = structural_hash(segment.graph, false);
      execute(segment);
    };
    Tensor x = ones({rows, columns});
    open_capture(register_settings(std::move(settings)));
    Tensor y = sum(mul(x, Scalar(factor)), {1});
    close_capture(false);
    return hash;
  };
  EXPECT_EQ(hash_of(4, 6, 2.0), hash_of(8, 16, 3.0));
  EXPECT_FALSE(hash_of(4, 6, 2.0) == hash_of(1, 6, 2.0));  // broadcasting may differ
}

}  // namespace
}  // namespace rushlight::graph
