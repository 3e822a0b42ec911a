// Masks of flex attention: which blocks of scores take part, and dense masks.
#include <rushlight/generated/functions.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "kernels/scratch.h"
#include "ops/flex_kernels.h"
#include "ops/operator.h"
#include "runtime/parallel.h"
#include "runtime/per_thread.h"

namespace rushlight {
namespace {

using loop::Interval;

const PerThread<Scratch> block_scratch;

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

struct Range {
  int64_t first;
  int64_t count;
  Interval interval() const {
    return {static_cast<double>(first), static_cast<double>(first + count - 1)};
  }
};

// Decides a block from the bounds of the mask over it; where they leave it open, by each element.
class BlockJudge {
 public:
  BlockJudge(const FlexFunction& mask, const FlexEvaluator& evaluator)
      : mask_(mask), evaluator_(evaluator), root_(mask.root()), bounds_({&root_, 1}) {}

  uint8_t judge(int64_t batch, int64_t head, const Range& queries, const Range& keys) {
    bounds_.evaluate([&](const loop::Node& leaf, const Interval* indices) {
      switch (leaf.op == loop::Op::Scalar ? int{leaf.slot} : -1) {
        case kFlexBatch:
          return Range{batch, 1}.interval();
        case kFlexHead:
          return Range{head, 1}.interval();
        case kFlexQuery:
          return queries.interval();
        case kFlexKey:
          return keys.interval();
        default:
          return leaf.op == loop::Op::Load ? loaded(leaf, indices) : loop::all_values(leaf.dtype);
      }
    });
    const Interval& holds = bounds_.of(root_);
    if (holds.is_point()) {
      return holds.low != 0 ? 2 : 0;
    }
    return judge_elements(batch, head, queries, keys);
  }

 private:
  // Blocks of a row or column read the same elements again: answers for ranges are kept.
  Interval loaded(const loop::Node& leaf, const Interval* indices) {
    const Tensor& tensor = mask_.captures()[leaf.slot];
    if (leaf.inputs.size() != 1) {
      return load_bounds(tensor, indices);
    }
    constexpr size_t kMost = 1 << 14;
    Known& known = known_[&leaf];
    if (known.size() > kMost) {
      known.clear();
    }
    const auto range = std::make_pair(indices[0].low, indices[0].high);
    auto found = known.find(range);
    if (found == known.end()) {
      found = known.emplace(range, load_bounds(tensor, indices)).first;
    }
    return found->second;
  }

  uint8_t judge_elements(int64_t batch, int64_t head, const Range& queries, const Range& keys) {
    const int64_t count = queries.count * keys.count;
    auto* values = block_scratch->get<uint8_t>(count);
    evaluator_.run(batch, head, queries.first, queries.count, keys.first, keys.count, values,
                   keys.count);
    const bool any = std::memchr(values, 1, static_cast<size_t>(count)) != nullptr;
    const bool all = std::memchr(values, 0, static_cast<size_t>(count)) == nullptr;
    return all ? 2 : any ? 1 : 0;
  }

  using Known = std::map<std::pair<double, double>, Interval>;
  const FlexFunction& mask_;
  const FlexEvaluator& evaluator_;
  loop::Expr root_;
  loop::Bounds bounds_;
  std::unordered_map<const loop::Node*, Known> known_;
};

Tensor block_states(std::string_view text, const TensorList& captures, int64_t batch, int64_t heads,
                    int64_t queries, int64_t keys, int64_t q_block, int64_t kv_block) {
  const FlexShape shape{batch, heads, queries, keys};
  const FlexFunction mask("mask_mod", text, captures, shape);
  const FlexEvaluator evaluator(mask, DType::Bool);
  const int64_t rows = ceil_div(queries, q_block);
  const int64_t cols = ceil_div(keys, kv_block);
  Tensor states = make_tensor({batch, heads, rows, cols}, DType::UInt8);
  auto* out = states.data_ptr<uint8_t>();
  // Planes that the mask does not tell apart are judged once.
  const int64_t own_batch = mask.reads(kFlexBatch) ? batch : 1;
  const int64_t own_heads = mask.reads(kFlexHead) ? heads : 1;
  parallel_for(0, own_batch * own_heads * rows, 4, [&](int64_t first, int64_t last) {
    BlockJudge judge(mask, evaluator);
    for (int64_t i = first; i < last; ++i) {
      const int64_t plane = i / rows;
      const int64_t b = plane / own_heads;
      const int64_t h = plane % own_heads;
      const int64_t query = i % rows * q_block;
      uint8_t* row = out + ((b * heads + h) * rows + i % rows) * cols;
      for (int64_t j = 0; j < cols; ++j) {
        const Range q{query, std::min(q_block, queries - query)};
        const Range k{j * kv_block, std::min(kv_block, keys - j * kv_block)};
        const uint8_t state = judge.judge(b, h, q, k);
        // What lies beyond the end takes no part.
        row[j] = q.count == q_block && k.count == kv_block ? state : std::min<uint8_t>(state, 1);
      }
    }
  });
  for (int64_t plane = 0; plane < batch * heads; ++plane) {
    const int64_t from = plane / heads % own_batch * heads + plane % heads % own_heads;
    if (from != plane) {
      std::memcpy(out + plane * rows * cols, out + from * rows * cols,
                  static_cast<size_t>(rows * cols));
    }
  }
  return states;
}

Tensor dense_values(std::string_view text, const TensorList& captures, int64_t batch, int64_t heads,
                    int64_t queries, int64_t keys, DType dtype) {
  const FlexFunction function(dtype == DType::Bool ? "mask_mod" : "score_mod", text, captures,
                              {batch, heads, queries, keys});
  Tensor values = make_tensor({batch, heads, queries, keys}, dtype);
  if (values.numel() == 0) {
    return values;
  }
  const FlexEvaluator evaluator(function, dtype);
  const int64_t bytes = values.element_size();
  parallel_for(0, batch * heads * queries, 1 + (1 << 14) / (keys + 1),
               [&](int64_t first, int64_t last) {
                 while (first < last) {
                   const int64_t plane = first / queries;
                   const int64_t query = first % queries;
                   const int64_t count = std::min(queries - query, last - first);
                   evaluator.run(plane / heads, plane % heads, query, count, 0, keys,
                                 static_cast<char*>(values.data()) + first * keys * bytes, keys);
                   first += count;
                 }
               });
  return values;
}

}  // namespace

RUSHLIGHT_OPERATORS(flex_mask) {
  op("_flex_block_states(str mask_mod, Tensor[] captures, int batch, int heads, int queries, "
     "int keys, int q_block, int kv_block) -> Tensor",
     kNN)
      .doc("Which blocks a traced mask lets take part: 0 none, 1 some, 2 all of each.")
      .kernel(block_states)
      .not_differentiable();
  op("_flex_values(str function, Tensor[] captures, int batch, int heads, int queries, int keys, "
     "ScalarType dtype) -> Tensor",
     kNN)
      .doc("A traced function of positions at each of them, (batch, heads, queries, keys).")
      .kernel(dense_values)
      .not_differentiable();
}

}  // namespace rushlight
