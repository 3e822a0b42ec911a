#include <rushlight/generated/functions.h>
#include <rushlight/nn/flex_attention.h>

#include <cmath>

#include "loop/kernel.h"
#include "ops/elementwise_trace.h"

namespace rushlight::nn {
namespace {

struct Traced {
  std::string text;
  TensorList captures;
};

// Traces a function of the score and the four positions.
template <typename F>
Traced trace(const char* what, DType score, int first, bool mask, F&& function) {
  ElementTrace trace(first);
  Tensor symbols[5];
  for (int i = 0; i < 5; ++i) {
    const DType dtype = i == 0 ? score : DType::Int32;
    symbols[i] = trace.symbol(loop::scalar(i, dtype), dtype);
  }
  const Tensor result = function(symbols);
  if (!result.defined() || result.dim() != 0) {
    fail(ErrorKind::Runtime, what, "must return a scalar for scalar arguments, got ",
         result.defined() ? cat("a tensor of shape ", result.sizes()) : "no tensor");
  }
  const TracedValue value = trace.value(result);
  if (mask != (value.dtype == DType::Bool)) {
    fail(ErrorKind::Type, what,
         mask ? "mask.dtype must be bool, got " : "must return a score, got ", value.dtype);
  }
  return {loop::print(value.expr), trace.captures()};
}

Traced trace_mask(const MaskMod& mask, int first) {
  return trace("mask_mod", DType::Float32, first, true,
               [&](const Tensor* s) { return mask(s[1], s[2], s[3], s[4]); });
}

void check(const Tensor& q, const Tensor& k, const Tensor& v, const FlexOptions& options) {
  constexpr const char* kName = "flex_attention";
  if (q.dim() != 4 || k.dim() != 4 || v.dim() != 4) {
    fail(ErrorKind::NotImplemented, kName, "query, key, and value must be 4D tensors");
  }
  if (q.dtype() != k.dtype() || q.dtype() != v.dtype() || !q.is_floating_point() ||
      is_float8(q.dtype())) {
    fail(ErrorKind::Value, kName,
         "expected query, key, and value of one floating-point dtype, got ", q.dtype(), ", ",
         k.dtype(), " and ", v.dtype());
  }
  if (q.size(-1) != k.size(-1) || k.size(0) != v.size(0) || k.size(1) != v.size(1) ||
      k.size(2) != v.size(2)) {
    fail(ErrorKind::Value, kName, "expected query (B, Hq, L, E), key (B, Hkv, S, E) and value ",
         "(B, Hkv, S, Ev), got ", q.sizes(), ", ", k.sizes(), " and ", v.sizes());
  }
  const bool heads =
      q.size(1) == k.size(1) || (options.enable_gqa && k.size(1) > 0 && q.size(1) % k.size(1) == 0);
  if (!heads) {
    fail(ErrorKind::Value, kName, "expected the same number of heads, or with enable_gqa a ",
         "multiple, but got Hq=", q.size(1), " and Hkv=", k.size(1));
  }
  if (q.size(0) != k.size(0) && !(k.size(0) == 1 && options.block_mask != nullptr)) {
    fail(ErrorKind::Value, kName, "expected the same batch size, or one batch of keys and a block ",
         "mask, but got Bq=", q.size(0), " and Bkv=", k.size(0));
  }
  if (options.block_mask == nullptr) {
    return;
  }
  const BlockMask& mask = *options.block_mask;
  const Tensor& states = mask.states;
  const bool fits = mask.lengths.first == q.size(2) && mask.lengths.second == k.size(2) &&
                    (states.size(0) == 1 || states.size(0) == q.size(0)) &&
                    (states.size(1) == 1 || states.size(1) == q.size(1));
  if (!fits) {
    fail(ErrorKind::Value, kName, "block_mask was created for shape [", states.size(0), ", ",
         states.size(1), ", ", mask.lengths.first, ", ", mask.lengths.second,
         "], but query and key have ", q.sizes(), " and ", k.sizes());
  }
}

void check_lengths(int64_t B, int64_t H, int64_t q_len, int64_t kv_len) {
  if (B <= 0 || H <= 0 || q_len <= 0 || kv_len <= 0) {
    fail(ErrorKind::Value, "create_block_mask", "needs positive sizes, got ", B, ", ", H, ", ",
         q_len, " and ", kv_len);
  }
}

}  // namespace

double BlockMask::sparsity() const {
  const auto computed = static_cast<double>(sum(ne(states, Scalar(0))).item().to_int());
  const auto all = static_cast<double>(states.size(0) * states.size(1)) *
                   static_cast<double>(lengths.first) * static_cast<double>(lengths.second);
  return 100 * (1 - computed * static_cast<double>(block_size.first * block_size.second) / all);
}

BlockMask create_block_mask(MaskMod mask_mod, int64_t B, int64_t H, int64_t q_len, int64_t kv_len,
                            std::pair<int64_t, int64_t> block_size) {
  check_lengths(B, H, q_len, kv_len);
  check_lengths(1, 1, block_size.first, block_size.second);
  const Traced traced = trace_mask(mask_mod, 0);
  Tensor states = _flex_block_states(traced.text, traced.captures, B, H, q_len, kv_len,
                                     block_size.first, block_size.second);
  return {std::move(mask_mod), states, {q_len, kv_len}, block_size};
}

MaskMod and_masks(std::vector<MaskMod> masks) {
  return [masks = std::move(masks)](const Tensor& b, const Tensor& h, const Tensor& q,
                                    const Tensor& k) {
    Tensor all = noop_mask(b, h, q, k);
    for (const MaskMod& mask : masks) {
      all = bitwise_and(all, mask(b, h, q, k));
    }
    return all;
  };
}

MaskMod or_masks(std::vector<MaskMod> masks) {
  return [masks = std::move(masks)](const Tensor& b, const Tensor& h, const Tensor& q,
                                    const Tensor& k) {
    Tensor any = lt(b, Scalar(0));
    for (const MaskMod& mask : masks) {
      any = bitwise_or(any, mask(b, h, q, k));
    }
    return any;
  };
}

Tensor noop_mask(const Tensor& batch, const Tensor&, const Tensor&, const Tensor&) {
  return ge(batch, Scalar(0));
}

Tensor create_mask(const MaskMod& mask_mod, int64_t B, int64_t H, int64_t q_len, int64_t kv_len) {
  check_lengths(B, H, q_len, kv_len);
  const Traced traced = trace_mask(mask_mod, 0);
  return _flex_values(traced.text, traced.captures, B, H, q_len, kv_len, DType::Bool);
}

FlexResult flex_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                          const FlexOptions& options) {
  check(query, key, value, options);
  Traced score;
  if (options.score_mod) {
    score = trace("score_mod", compute_dtype(query.dtype()), 0, false,
                  [&](const Tensor* s) { return options.score_mod(s[0], s[1], s[2], s[3], s[4]); });
  }
  Traced mask;
  Tensor states;
  std::pair<int64_t, int64_t> block_size{1, 1};
  if (options.block_mask != nullptr) {
    mask = trace_mask(options.block_mask->mask_mod, static_cast<int>(score.captures.size()));
    states = options.block_mask->states;
    block_size = options.block_mask->block_size;
  }
  TensorList captures = score.captures;
  captures.insert(captures.end(), mask.captures.begin(), mask.captures.end());
  const auto size = static_cast<double>(std::max<int64_t>(query.size(-1), 1));
  auto [out, lse, most] =
      _flex_attention(query, key, value, score.text, mask.text, captures, states, block_size.first,
                      block_size.second, options.scale.value_or(1 / std::sqrt(size)));
  return {out, lse, most.detach()};
}

}  // namespace rushlight::nn
