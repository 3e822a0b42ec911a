// Attention whose scores pass through functions of the caller's, as nn.attention.flex_attention.
#pragma once

#include <rushlight/tensor.h>

#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace rushlight::nn {

// Functions of 0-dim tensors: the score (f32, or f64 for f64 inputs), and batch, head, query and
// key (int32). They are called once, with symbols: every element-wise operator may be used, and
// captured tensors may be indexed by `rushlight::index`. A mask's result is bool, true where a pair
// takes part.
using ScoreMod = std::function<Tensor(const Tensor& score, const Tensor& batch, const Tensor& head,
                                      const Tensor& query, const Tensor& key)>;
using MaskMod = std::function<Tensor(const Tensor& batch, const Tensor& head, const Tensor& query,
                                     const Tensor& key)>;

// Of pairs that all of these, or that any of these, let take part; noop_mask lets all of them.
RUSHLIGHT_API MaskMod and_masks(std::vector<MaskMod> masks);
RUSHLIGHT_API MaskMod or_masks(std::vector<MaskMod> masks);
RUSHLIGHT_API Tensor noop_mask(const Tensor& batch, const Tensor& head, const Tensor& query,
                               const Tensor& key);

// Which blocks of scores take part: (B, H, query blocks, key blocks), u8, 0 none, 1 some, 2 all.
struct BlockMask {
  MaskMod mask_mod;
  Tensor states;
  std::pair<int64_t, int64_t> lengths;
  std::pair<int64_t, int64_t> block_size;
  // Percent of scores in blocks that are left out.
  RUSHLIGHT_API double sparsity() const;
};

// B or H may be 1: the mask is the same for all. Error(Type) where the mask is not bool,
// Error(Index) where a captured tensor would be read outside its bounds.
RUSHLIGHT_API BlockMask create_block_mask(MaskMod mask_mod, int64_t B, int64_t H, int64_t q_len,
                                          int64_t kv_len,
                                          std::pair<int64_t, int64_t> block_size = {128, 128});

// The dense mask (B, H, q_len, kv_len), bool.
RUSHLIGHT_API Tensor create_mask(const MaskMod& mask_mod, int64_t B, int64_t H, int64_t q_len,
                                 int64_t kv_len);

struct FlexOptions {
  ScoreMod score_mod = {};
  const BlockMask* block_mask = nullptr;
  std::optional<double> scale = {};  // 1 / sqrt(E)
  bool enable_gqa = false;
};
struct FlexResult {
  Tensor out;         // (B, Hq, L, Ev)
  Tensor lse;         // (B, Hq, L): the logsumexp of each query's scores, -inf without keys
  Tensor max_scores;  // (B, Hq, L), without gradient
};

// query (B, Hq, L, E), key (B, Hkv, S, E), value (B, Hkv, S, Ev). Gradients reach captured tensors
// of score_mod as well.
RUSHLIGHT_API FlexResult flex_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                        const FlexOptions& options = {});

}  // namespace rushlight::nn
