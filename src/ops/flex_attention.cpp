// Flex attention: attention whose scores pass through functions of the caller's, by blocks.
#include <rushlight/generated/functions.h>

#include <algorithm>
#include <limits>

#include "kernels/attention.h"
#include "ops/flex_kernels.h"
#include "ops/flex_open.h"
#include "ops/gradient.h"
#include "ops/operator.h"

namespace rushlight {
namespace {

using namespace flex;  // where the operands are

// What partial gradients of captured tensors may take, and how many there may be.
constexpr int64_t kSumsBytes = 64 << 20;
constexpr int64_t kMostGroups = 16;

HeadsRef heads(const Tensor& x) {
  auto stride = [&](size_t d) { return x.sizes()[d] == 1 ? 0 : x.strides()[d]; };
  return {x.data(), stride(0), stride(1), stride(2), stride(3)};
}

MutableHeadsRef target(const Tensor& x) {
  return {x.data(), x.strides()[0], x.strides()[1], x.strides()[2], x.strides()[3]};
}

// (B, H, L, E) lying in memory as (B, L, H, E).
Tensor make_heads(int64_t batch, int64_t count, int64_t rows, int64_t size, const Tensor& like) {
  return make_strided({batch, count, rows, size}, {rows * count * size, size, count * size, 1},
                      like.dtype(), like.device());
}

// A call, with what its kernels are built of.
struct FlexCall {
  FlexShape shape;
  FlexFunction score;
  FlexFunction mask;
  FlexModifier modifier;
  AttentionBlocks blocks;
  Attention attention;

  FlexCall(const Tensor& q, const Tensor& k, const Tensor& v, std::string_view score_text,
           std::string_view mask_text, const TensorList& captures, const Tensor& states,
           int64_t q_block, int64_t kv_block, double scale)
      : shape{q.sizes()[0], q.sizes()[1], q.sizes()[2], k.sizes()[2]},
        score("score_mod", score_text, captures, shape),
        mask("mask_mod", mask_text, captures, shape),
        modifier(compute_dtype(q.dtype()), score, mask),
        blocks{},
        attention{} {
    attention.dtype = q.dtype();
    attention.batch = shape.batch;
    attention.heads = shape.heads;
    attention.kv_heads = k.sizes()[1];
    attention.queries = shape.queries;
    attention.keys = shape.keys;
    attention.head_size = q.sizes()[3];
    attention.value_size = v.sizes()[3];
    attention.scale = scale;
    attention.q = heads(q);
    attention.k = heads(k);
    attention.v = heads(v);
    attention.modifier = &modifier;
    if (states.defined()) {
      auto stride = [&](size_t d) { return states.sizes()[d] == 1 ? 0 : states.strides()[d]; };
      blocks = {states.data_ptr<uint8_t>(), stride(0), stride(1), states.sizes()[2],
                states.sizes()[3],          q_block,   kv_block};
      attention.blocks = &blocks;
    }
  }
  FlexCall(const FlexCall&) = delete;
};

std::tuple<Tensor, Tensor, Tensor> flex_kernel(const Tensor& q, const Tensor& k, const Tensor& v,
                                               std::string_view score, std::string_view mask,
                                               const TensorList& captures, const Tensor& states,
                                               int64_t q_block, int64_t kv_block, double scale) {
  const DType compute = compute_dtype(q.dtype());
  const IntList rows{q.sizes()[0], q.sizes()[1], q.sizes()[2]};
  Tensor out = make_heads(rows[0], rows[1], rows[2], v.sizes()[3], q);
  Tensor lse = make_tensor(rows, compute, q.device());
  Tensor maximum = make_tensor(rows, compute, q.device());
  if (out.is_meta()) {
    return {out, lse, maximum};
  }
  const double never = -std::numeric_limits<double>::infinity();
  if (k.sizes()[2] == 0 || q.numel() == 0 || out.numel() == 0) {
    zero_(out);
    fill_(lse, Scalar(never));
    fill_(maximum, Scalar(never));
    return {out, lse, maximum};
  }
  FlexCall call(q, k, v, score, mask, captures, states, q_block, kv_block, scale);
  attention_forward(call.attention, target(out), lse.data(), maximum.data());
  // The kernel's +inf for a row without keys keeps backward simple; callers know it as -inf.
  masked_fill_(lse, isposinf(lse), Scalar(never));
  return {out, lse, maximum};
}

// The gradients of captured tensors: sums by group, added up in the order of groups.
struct CaptureSums {
  TensorList sums;
  int64_t groups;

  CaptureSums(const TensorList& captures, int64_t wanted, int64_t planes, DType compute)
      : groups(std::min(planes, kMostGroups)) {
    int64_t bytes = 1;
    for (size_t i = 0; i < captures.size(); ++i) {
      bytes += wanted >> i & 1 ? captures[i].numel() * element_size(compute) : 0;
    }
    groups = std::clamp<int64_t>(kSumsBytes / bytes, 1, std::max<int64_t>(groups, 1));
    for (size_t i = 0; i < captures.size(); ++i) {
      Tensor made;
      if (wanted >> i & 1) {
        IntList shape(captures[i].sizes());
        shape.insert(0, groups);
        made = zeros(shape, TensorOptions(compute));
      }
      sums.push_back(made);
    }
  }

  TensorList take(const TensorList& captures) const {
    TensorList made;
    for (size_t i = 0; i < sums.size(); ++i) {
      made.push_back(sums[i].defined() ? to(groups == 1 ? select(sums[i], 0, 0)
                                                        : sum(sums[i], {0}, false, std::nullopt),
                                            captures[i].dtype())
                                       : make_tensor({0}, captures[i].dtype()));
    }
    return made;
  }
};

std::tuple<Tensor, Tensor, Tensor, TensorList> flex_backward_kernel(
    const Tensor& q, const Tensor& k, const Tensor& v, std::string_view score,
    std::string_view mask, const TensorList& captures, const Tensor& states, int64_t q_block,
    int64_t kv_block, double scale, const Tensor& out, const Tensor& lse, const Tensor& grad,
    const Tensor& lse_grad, int64_t wanted) {
  // Keys and values may be shared by all batches.
  const int64_t batch = q.sizes()[0];
  Tensor q_grad = make_heads(batch, q.sizes()[1], q.sizes()[2], q.sizes()[3], q);
  Tensor k_grad = make_heads(batch, k.sizes()[1], k.sizes()[2], k.sizes()[3], k);
  Tensor v_grad = make_heads(batch, v.sizes()[1], v.sizes()[2], v.sizes()[3], v);
  CaptureSums sums(captures, wanted, batch * k.sizes()[1], compute_dtype(q.dtype()));
  if (!q.is_meta()) {
    if (out.numel() == 0 || k.numel() == 0) {
      zero_(q_grad);
      zero_(k_grad);
      zero_(v_grad);
    } else {
      FlexCall call(q, k, v, score, mask, captures, states, q_block, kv_block, scale);
      call.modifier.prepare_gradients(sums.sums, sums.groups);
      attention_backward(call.attention, heads(out), lse.data(), heads(grad),
                         {target(q_grad), target(k_grad), target(v_grad)},
                         lse_grad.defined() ? lse_grad.data() : nullptr);
    }
  }
  return {q_grad, k_grad, v_grad, sums.take(captures)};
}

void flex_gradient(Gradient& g) {
  if (!g.has_grad(0) && !g.has_grad(1)) {
    return;
  }
  if (thread_state.grad_mode) {
    flex_gradient_open(g);
    return;
  }
  Tensor q = g.tensor(kQuery);
  const TensorList captures = g.tensors(kCaptures);
  int64_t wanted = 0;
  for (size_t i = 0; i < captures.size(); ++i) {
    const bool floats = captures[i].is_floating_point() && captures[i].requires_grad();
    wanted |= int64_t{floats} << i;
  }
  Tensor grad = g.has_grad(0) ? g.grad(0) : zeros_like(g.result(0));
  Tensor lse_grad = g.has_grad(1) ? contiguous(g.grad(1)) : Tensor();
  std::vector<Value> results(4);
  auto [q_grad, k_grad, v_grad, capture_grads] = _flex_attention_backward(
      q, g.tensor(kKey), g.tensor(kValue), g.text(kScore), g.text(kMask), captures,
      g.is_none(kStates) ? Tensor() : g.tensor(kStates), g.integer(kQBlock), g.integer(kKvBlock),
      g.real(kScale), g.result(0), g.result(1), grad, lse_grad, wanted);
  g.set(kQuery, q_grad);
  g.set(kKey, k_grad);
  g.set(kValue, v_grad);
  TensorList list;
  for (size_t i = 0; i < captures.size(); ++i) {
    list.push_back(wanted >> i & 1 ? capture_grads[i] : Tensor());
  }
  g.set_list(kCaptures, std::move(list));
}

// One list of blocks for each count, and no more counts than `counts` has.
void check_lists(const char* name, const Tensor& counts, const Tensor& count_list,
                 const Tensor& index_list) {
  IntArrayRef sizes = index_list.sizes();
  bool fits = index_list.dim() == counts.dim() + 1 && count_list.sizes() == counts.sizes();
  for (size_t i = 0; fits && i < counts.sizes().size(); ++i) {
    fits = sizes[i] == counts.sizes()[i];
  }
  if (!fits) {
    fail(ErrorKind::Runtime, "BlockMask", "the numbers of ", name, " blocks have shape ",
         count_list.sizes(), " and their indices ", sizes, ": expected ", counts.sizes(),
         " and the same with the length of the lists at the end");
  }
  for (const Tensor& list : {count_list, index_list}) {
    if (!is_integral(list.dtype(), false)) {
      fail(ErrorKind::Type, "BlockMask", "numbers and indices of blocks are integers, but got ",
           list.dtype());
    }
  }
}

// (B, H, q blocks, kv blocks): 0 none, 1 some, 2 all of a block takes part. Lists name the blocks.
Tensor states_of(const Tensor& counts, const Tensor& indices, const Tensor& full_counts,
                 const Tensor& full_indices, int64_t kv_blocks) {
  check_lists("partial", counts, counts, indices);
  if (full_counts.defined()) {
    if (!full_indices.defined()) {
      fail(ErrorKind::Type, "BlockMask", "full_counts are given, but no full_indices");
    }
    check_lists("full", counts, full_counts, full_indices);
  }
  IntList shape(counts.sizes());
  shape.push_back(kv_blocks);
  Tensor states = zeros(shape, TensorOptions(DType::UInt8));
  auto* out = states.data_ptr<uint8_t>();
  auto mark = [&](const Tensor& count_list, const Tensor& index_list, uint8_t state) {
    Tensor count_values = contiguous(to(count_list, DType::Int32));
    Tensor index_values = contiguous(to(index_list, DType::Int32));
    const auto* number = count_values.data_ptr<int32_t>();
    const auto* index = index_values.data_ptr<int32_t>();
    const int64_t width = index_list.size(-1);
    for (int64_t row = 0; row < count_values.numel(); ++row) {
      if (number[row] < 0 || number[row] > width) {
        fail(ErrorKind::Runtime, "BlockMask", "a number of blocks is ", int64_t{number[row]},
             ", but its list has ", width);
      }
      for (int64_t i = 0; i < number[row]; ++i) {
        const int64_t block = index[row * width + i];
        if (block < 0 || block >= kv_blocks) {
          fail(ErrorKind::Index, "BlockMask", "block ", block, " is out of bounds: there are ",
               kv_blocks, " blocks of keys");
        }
        out[row * kv_blocks + block] = state;
      }
    }
  };
  mark(counts, indices, 1);
  if (full_counts.defined()) {
    mark(full_counts, full_indices, 2);
  }
  return states;
}

}  // namespace

RUSHLIGHT_OPERATORS(flex_attention) {
  op("_flex_attention(Tensor query, Tensor key, Tensor value, str score_mod, str mask_mod, "
     "Tensor[] captures, Tensor? states, int q_block, int kv_block, float scale) "
     "-> (Tensor, Tensor, Tensor)",
     kNN)
      .doc("Attention with traced functions of scores; its logsumexp and largest scores.")
      .kernel(flex_kernel)
      .gradient("query key value captures states result0 result1", flex_gradient);
  op("_flex_attention_backward(Tensor query, Tensor key, Tensor value, str score_mod, "
     "str mask_mod, Tensor[] captures, Tensor? states, int q_block, int kv_block, float scale, "
     "Tensor out, Tensor logsumexp, Tensor grad, Tensor? logsumexp_grad, int wanted) "
     "-> (Tensor, Tensor, Tensor, Tensor[])",
     kInternal)
      .doc("Gradients of flex attention by query, key, value and captured tensors.")
      .kernel(flex_backward_kernel)
      .not_differentiable();
  op("_flex_states(Tensor kv_counts, Tensor kv_indices, Tensor? full_counts, "
     "Tensor? full_indices, int kv_blocks) -> Tensor",
     kNN)
      .doc("Which blocks take part (0 none, 1 some, 2 all of each), from lists of them.")
      .kernel(states_of)
      .not_differentiable();
}

}  // namespace rushlight
