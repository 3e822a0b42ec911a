// scaled_dot_product_attention over the tiled kernels: the matrix of scores is never whole.
#include "kernels/attention.h"

#include <rushlight/generated/functions.h>

#include <cmath>

#include "ops/gradient.h"
#include "ops/operator.h"
#include "ops/wide_gradient.h"

namespace rushlight {
namespace {

// A 4-D tensor (B, H, L, E), size-1 dimensions broadcast.
HeadsRef heads(const Tensor& x) {
  auto stride = [&](size_t d) { return x.sizes()[d] == 1 ? 0 : x.strides()[d]; };
  return {x.data(), stride(0), stride(1), stride(2), stride(3)};
}

MutableHeadsRef target(const Tensor& x) {
  return {x.data(), x.strides()[0], x.strides()[1], x.strides()[2], x.strides()[3]};
}

// (B, H, L, E) with the heads inside of the rows where `like` has them so, as a view that split
// them: joining them again is then a view. Else row-major, so that they can be viewed otherwise.
Tensor make_heads(int64_t batch, int64_t count, int64_t rows, int64_t size, const Tensor& like) {
  const bool inside = like.strides()[1] < like.strides()[2] && like.strides()[1] != 0;
  if (!inside) {
    return make_tensor({batch, count, rows, size}, like.dtype(), like.device());
  }
  return make_strided({batch, count, rows, size}, {rows * count * size, size, count * size, 1},
                      like.dtype(), like.device());
}

Attention problem(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                  const Tensor& keep, bool causal, double scale, double keep_scale) {
  Attention made{};
  made.dtype = q.dtype();
  made.batch = q.sizes()[0];
  made.heads = q.sizes()[1];
  made.kv_heads = k.sizes()[1];
  made.queries = q.sizes()[2];
  made.keys = k.sizes()[2];
  made.head_size = q.sizes()[3];
  made.value_size = v.sizes()[3];
  made.scale = scale;
  made.q = heads(q);
  made.k = heads(k);
  made.v = heads(v);
  made.causal = causal;
  made.keep_scale = keep_scale;
  if (mask.defined()) {
    made.mask = heads(mask);
    made.mask_dtype = mask.dtype();
  }
  if (keep.defined()) {
    made.keep = heads(keep);
  }
  return made;
}

std::tuple<Tensor, Tensor> attention_kernel(const Tensor& q, const Tensor& k, const Tensor& v,
                                            const Tensor& mask, const Tensor& keep, bool causal,
                                            double scale, double keep_scale) {
  // Dropout's weights are whole in PyTorch, and their products row-major.
  Tensor out = keep.defined()
                   ? make_tensor({q.sizes()[0], q.sizes()[1], q.sizes()[2], v.sizes()[3]},
                                 q.dtype(), q.device())
                   : make_heads(q.sizes()[0], q.sizes()[1], q.sizes()[2], v.sizes()[3], q);
  DType compute = q.dtype() == DType::Float64 ? DType::Float64 : DType::Float32;
  Tensor lse = make_tensor({q.sizes()[0], q.sizes()[1], q.sizes()[2]}, compute, q.device());
  if (!out.is_meta() && out.numel() != 0) {
    Attention made = problem(q, k, v, mask, keep, causal, scale, keep_scale);
    attention_forward(made, target(out), lse.data());
  }
  return {out, lse};
}

std::tuple<Tensor, Tensor, Tensor> attention_backward_kernel(const Tensor& q, const Tensor& k,
                                                             const Tensor& v, const Tensor& mask,
                                                             const Tensor& keep, bool causal,
                                                             double scale, double keep_scale,
                                                             const Tensor& out, const Tensor& lse,
                                                             const Tensor& grad) {
  int64_t batch = q.sizes()[0];
  Tensor q_grad = make_heads(batch, q.sizes()[1], q.sizes()[2], q.sizes()[3], q);
  Tensor k_grad = make_heads(batch, k.sizes()[1], k.sizes()[2], k.sizes()[3], k);
  Tensor v_grad = make_heads(batch, v.sizes()[1], v.sizes()[2], v.sizes()[3], v);
  if (!q.is_meta()) {
    Attention made = problem(q, k, v, mask, keep, causal, scale, keep_scale);
    attention_backward(made, heads(out), lse.data(), heads(grad),
                       {target(q_grad), target(k_grad), target(v_grad)});
  }
  return {q_grad, k_grad, v_grad};
}

// Repeats key or value heads so that each query head has its own.
Tensor repeat_heads(const Tensor& x, const Tensor& query) {
  if (x.dim() < 3 || query.dim() < 3) {
    return x;
  }
  int64_t mine = x.size(-3);
  int64_t count = query.size(-3);
  return mine == count || mine <= 1 ? x : repeat_interleave(x, count / mine, -3);
}

// softmax(scale q k^T + mask); a query without keys gives zeros, not NaN.
Tensor attention_weights(const Tensor& q, const Tensor& k, const Tensor& mask, bool causal,
                         double scale) {
  Tensor scores = mul(matmul(q, transpose(k, -2, -1)), Scalar(scale));
  Scalar never(-HUGE_VAL);
  if (causal) {
    Tensor seen = tril(ones({q.size(-2), k.size(-2)}, TensorOptions(DType::Bool)));
    scores = masked_fill(scores, logical_not(seen), never);
  }
  if (mask.defined()) {
    scores = mask.dtype() == DType::Bool ? masked_fill(scores, logical_not(mask), never)
                                         : add(scores, mask);
  }
  // Softmax of such a query would be NaN, in the gradients of gradients too.
  Tensor blind = all(isneginf(scores), {-1}, true);
  return masked_fill(softmax(masked_fill(scores, blind, Scalar(0)), -1), blind, Scalar(0));
}

// The same in public operators, for masks that require grad and for dtypes without a kernel. Halves
// are rounded at the end alone: gradients of scores cancel.
Tensor attention_open(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                      const Tensor& keep, bool causal, double scale, double keep_scale) {
  Tensor weights =
      attention_weights(widened(q), widened(repeat_heads(k, q)), widened(mask), causal, scale);
  if (keep.defined()) {
    weights = mul(mul(weights, keep), Scalar(keep_scale));
  }
  return rounded(matmul(weights, widened(repeat_heads(v, q))), q.dtype());
}

// Gradients that differentiate again: those of softmax(S) v, written out.
void gradient_open(Gradient& g) {
  Tensor q = g.tensor(0);
  Tensor k = repeat_heads(g.tensor(1), q);
  Tensor v = repeat_heads(g.tensor(2), q);
  Tensor keep = g.tensor(4);
  Scalar scale(g.real(6));
  Tensor weights = attention_weights(q, k, g.tensor(3), g.flag(5), g.real(6));
  Tensor used = keep.defined() ? mul(mul(weights, keep), Scalar(g.real(7))) : weights;
  Tensor grad = g.grad(0);
  Tensor used_grad = matmul(grad, transpose(v, -2, -1));
  if (keep.defined()) {
    used_grad = mul(mul(used_grad, keep), Scalar(g.real(7)));
  }
  Tensor total = sum(mul(used_grad, weights), {-1}, true, std::nullopt);
  Tensor score_grad = mul(weights, sub(used_grad, total));
  auto joined = [&](const Tensor& x, int argument) {
    int64_t own = g.sizes(argument)[1];
    if (own == x.size(1)) {
      return x;
    }
    return sum(unflatten(x, 1, {own, x.size(1) / own}), {2}, false, std::nullopt);
  };
  g.set(0, mul(matmul(score_grad, k), scale));
  g.set(1, joined(mul(matmul(transpose(score_grad, -2, -1), q), scale), 1));
  g.set(2, joined(matmul(transpose(used, -2, -1), grad), 2));
}

void attention_gradient(Gradient& g) {
  if (!g.has_grad(0)) {
    return;
  }
  Tensor q = g.tensor(0);
  Tensor k = g.tensor(1);
  Tensor v = g.tensor(2);
  if (thread_state.grad_mode) {
    gradient_open(g);
    return;
  }
  auto [q_grad, k_grad, v_grad] =
      _attention_backward(q, k, v, g.tensor(3), g.tensor(4), g.flag(5), g.real(6), g.real(7),
                          g.result(0), g.result(1), g.grad(0));
  g.set(0, q_grad);
  g.set(1, k_grad);
  g.set(2, v_grad);
}

constexpr std::string_view kName = "scaled_dot_product_attention";

// Whether a mask may come with is_causal: a key then takes part where both say so. PyTorch takes
// the two together in its fused form alone, (B, H, L, E) of one batch shape and head size, without
// dropout, with a mask of 2 or 4 dimensions that asks for no gradient.
bool joins_masks(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                 double dropout) {
  const bool fused = q.dim() == 4 && k.dim() == 4 && v.dim() == 4 && dropout == 0;
  return fused && !mask.requires_grad() && (mask.dim() == 2 || mask.dim() == 4) &&
         q.size(0) == k.size(0) && q.size(0) == v.size(0) && q.size(-1) == v.size(-1);
}

void check_operands(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                    double dropout, bool causal) {
  if (q.dtype() != k.dtype() || q.dtype() != v.dtype()) {
    fail(ErrorKind::Runtime, kName,
         "Expected query, key, and value to have the same dtype, but "
         "got query.dtype: ",
         q.dtype(), " key.dtype: ", k.dtype(), " and value.dtype: ", v.dtype(), " instead.");
  }
  if (q.dim() < 2 || k.dim() < 2 || v.dim() < 2) {
    fail(ErrorKind::Runtime, kName,
         "Expected query, key, and value to all be  at least 2 "
         "dimensional, but got query.dim: ",
         q.dim(), " key.dim: ", k.dim(), " and value.dim: ", v.dim(), " instead.");
  }
  if (q.size(-1) != k.size(-1) || k.size(-2) != v.size(-2)) {
    fail(ErrorKind::Runtime, kName,
         "expected query (..., L, E), key (..., S, E), value "
         "(..., S, Ev), got ",
         q.sizes(), ", ", k.sizes(), ", ", v.sizes());
  }
  if (dropout < 0 || dropout > 1) {
    fail(ErrorKind::Runtime, kName, "dropout probability has to be between 0 and 1, but got ",
         dropout);
  }
  if (!mask.defined()) {
    return;
  }
  if (causal && !joins_masks(q, k, v, mask, dropout)) {
    fail(ErrorKind::Runtime, kName,
         "Explicit attn_mask should not be set when is_causal=True, save "
         "for query, key and value (B, H, L, E) of one batch and head size without dropout and a "
         "2-D or 4-D mask that requires no grad");
  }
  if (mask.dtype() != DType::Bool && mask.dtype() != q.dtype() && mask.dtype() != DType::Float32) {
    fail(ErrorKind::Runtime, kName,
         "Expected attn_mask dtype to be bool or float or to match "
         "query dtype, but got attn_mask.dtype: ",
         mask.dtype(), " and  query.dtype: ", q.dtype(), " instead.");
  }
}

// (..., L, E) as (B, H, L, E) with this batch shape (..., H).
Tensor to_heads(const Tensor& x, IntArrayRef batch, int64_t own_heads) {
  IntList shape(batch);
  if (!shape.empty()) {
    shape.back() = own_heads;
  }
  shape.push_back(x.size(-2));
  shape.push_back(x.size(-1));
  Tensor full = expand(x, shape);
  if (full.dim() == 4) {
    return full;
  }
  return reshape(full, {-1, batch.empty() ? 1 : own_heads, x.size(-2), x.size(-1)});
}

// 1 for the weights that dropout keeps, 0 for the others: drawn in the order and the dtype of the
// weights. An operator of its own, for capture has to keep the order in which numbers are drawn.
Tensor draw_kept(const Tensor& q, const Tensor& k, const IntList& batch, double dropout) {
  IntList shape(batch);
  shape.push_back(q.size(-2));
  shape.push_back(k.size(-2));
  return _dropout_noise(make_tensor(shape, q.dtype(), q.device()), 1 - dropout, 1, false);
}

Tensor attention_wide(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                      double dropout, bool causal, std::optional<double> scale, bool grouped) {
  double factor = scale.value_or(1.0 / std::sqrt(static_cast<double>(q.size(-1))));
  IntArrayRef q_batch(q.sizes().data(), static_cast<size_t>(q.dim() - 2));
  IntArrayRef k_batch(k.sizes().data(), static_cast<size_t>(k.dim() - 2));
  bool shares = grouped && q.dim() >= 3 && k.dim() >= 3 && q.size(-3) != k.size(-3);
  if (shares && (k.size(-3) == 0 || q.size(-3) % k.size(-3) != 0 || k.size(-3) != v.size(-3))) {
    fail(ErrorKind::Runtime, kName,
         "Number of heads in key and value must divide the number of "
         "heads in query, got ",
         q.size(-3), ", ", k.size(-3), " and ", v.size(-3));
  }
  IntList batch = shares ? IntList(q_batch) : broadcast_shapes(q_batch, k_batch, kName);
  Tensor keep;
  double keep_scale = 1;
  if (dropout > 0) {
    keep = draw_kept(q, k, batch, dropout);
    keep_scale = dropout == 1 ? 0 : 1 / (1 - dropout);
  }
  bool fused = (q.is_floating_point() && !is_float8(q.dtype())) && q.size(-1) > 0 &&
               !(mask.defined() && mask.requires_grad()) && q.numel() != 0 && k.numel() != 0;
  if (!fused || (q.dim() != 4 && shares)) {
    return attention_open(q, k, v, mask, keep, causal, factor, keep_scale);
  }
  int64_t count = batch.empty() ? 1 : batch.back();
  Tensor mask4;
  if (mask.defined()) {
    IntList shape(batch);
    shape.push_back(q.size(-2));
    shape.push_back(k.size(-2));
    Tensor expanded = expand(mask, shape);
    mask4 = expanded.dim() == 4 ? expanded : reshape(expanded, {-1, count, q.size(-2), k.size(-2)});
  }
  Tensor keep4;
  if (keep.defined()) {
    keep4 = to(reshape(keep, {-1, count, q.size(-2), k.size(-2)}), DType::Bool);
  }
  Tensor out = std::get<0>(_attention(
      to_heads(q, batch, count), to_heads(k, batch, shares ? k.size(-3) : count),
      to_heads(v, batch, shares ? v.size(-3) : count), mask4, keep4, causal, factor, keep_scale));
  if (q.dim() == 4) {
    return out;
  }
  IntList shape(batch);
  shape.push_back(q.size(-2));
  shape.push_back(v.size(-1));
  return reshape(out, shape);
}

// Halves stay narrow between the steps in the common form alone, (B, H, L, E) without dropout; all
// others are computed in float throughout.
Tensor attention_of(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                    double dropout, bool causal, std::optional<double> scale, bool grouped) {
  check_operands(q, k, v, mask, dropout, causal);
  const bool common = q.dim() == 4 && k.dim() == 4 && v.dim() == 4 && dropout == 0;
  if (common || !is_reduced_floating(q.dtype())) {
    return attention_wide(q, k, v, mask, dropout, causal, scale, grouped);
  }
  const auto widened = [](const Tensor& x) {
    return x.defined() && x.is_floating_point() ? to(x, DType::Float32) : x;
  };
  const Tensor made = attention_wide(widened(q), widened(k), widened(v), widened(mask), dropout,
                                     causal, scale, grouped);
  return to(made, q.dtype());
}

}  // namespace

RUSHLIGHT_OPERATORS(attention) {
  op("_attention(Tensor query, Tensor key, Tensor value, Tensor? mask, Tensor? keep, bool causal, "
     "float scale, float keep_scale) -> (Tensor, Tensor)",
     kInternal)
      .doc("Attention of (B, H, L, E), and the logsumexp of its scores.")
      .kernel(attention_kernel)
      .gradient("query key value mask keep result0 result1", attention_gradient);
  op("_attention_backward(Tensor query, Tensor key, Tensor value, Tensor? mask, Tensor? keep, "
     "bool causal, float scale, float keep_scale, Tensor out, Tensor logsumexp, Tensor grad) "
     "-> (Tensor, Tensor, Tensor)",
     kInternal)
      .doc("Gradients of attention by query, key and value.")
      .kernel(attention_backward_kernel)
      .not_differentiable();
  op("scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, "
     "Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, *, float? scale=None, "
     "bool enable_gqa=False) -> Tensor",
     kNN)
      .doc("softmax(scale query key^T + mask) value, (B, H, L, E); no matrix of scores is held.")
      .composition(attention_of)
      .node([](const Invocation& inv) {
        return inv.arguments[0].tensor().dim() == 4 && inv.arguments[4].to_scalar().to_double() == 0
                   ? "ScaledDotProductFlashAttentionForCpuBackward0"
                   : "UnsafeViewBackward0";
      });
}

}  // namespace rushlight
