// Multi-head attention with its projections (Vaswani et al., 2017).
#pragma once

#include <rushlight/nn/layers.h>

#include <optional>
#include <tuple>

namespace rushlight::nn {

struct MultiheadAttentionOptions {
  MultiheadAttentionOptions(int64_t embed_dim, int64_t num_heads)
      : embed_dim_(embed_dim), num_heads_(num_heads) {}
  RUSHLIGHT_ARG(int64_t, embed_dim);
  RUSHLIGHT_ARG(int64_t, num_heads);
  RUSHLIGHT_ARG(double, dropout) = 0.0;  // of the weights
  RUSHLIGHT_ARG(bool, bias) = true;
  RUSHLIGHT_ARG(bool, add_bias_kv) = false;
  RUSHLIGHT_ARG(bool, add_zero_attn) = false;
  RUSHLIGHT_ARG(std::optional<int64_t>, kdim) = std::nullopt;  // embed_dim
  RUSHLIGHT_ARG(std::optional<int64_t>, vdim) = std::nullopt;  // embed_dim
  RUSHLIGHT_ARG(bool, batch_first) = false;
};

class RUSHLIGHT_API MultiheadAttentionImpl : public Module {
 public:
  explicit MultiheadAttentionImpl(const MultiheadAttentionOptions& options);
  MultiheadAttentionImpl(int64_t embed_dim, int64_t num_heads)
      : MultiheadAttentionImpl(MultiheadAttentionOptions(embed_dim, num_heads)) {}

  // query (L, B, E), key and value (S, B, ...), or batch first where the options say so, or without
  // a batch. key_padding_mask (B, S) and attn_mask (L, S) or (B heads, L, S) hide where they are
  // true, or are added to the scores. Gives the result, and the weights (B, L, S), averaged over
  // the heads or (B, heads, L, S); without need_weights these are undefined, and attention is
  // fused. Error(Value) for shapes that do not go together; Error(Runtime) for is_causal without
  // its mask.
  std::tuple<Tensor, Tensor> forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                     const Tensor& key_padding_mask = {}, bool need_weights = true,
                                     const Tensor& attn_mask = {}, bool average_attn_weights = true,
                                     bool is_causal = false);

  MultiheadAttentionOptions options;
  Tensor in_proj_weight;  // (3 E, E), where keys and values are as wide as queries, or undefined
  Tensor q_proj_weight;   // (E, E), or undefined
  Tensor k_proj_weight;   // (E, kdim), or undefined
  Tensor v_proj_weight;   // (E, vdim), or undefined
  Tensor in_proj_bias;    // (3 E), or undefined
  Linear out_proj;
  Tensor bias_k;  // (1, 1, E), or undefined
  Tensor bias_v;  // (1, 1, E), or undefined

 private:
  void reset_parameters();
  std::tuple<Tensor, Tensor, Tensor> project(const Tensor& query, const Tensor& key,
                                             const Tensor& value) const;
};
RUSHLIGHT_MODULE(MultiheadAttention);

}  // namespace rushlight::nn
