// Scaled dot-product attention without a matrix of scores: softmax(scale q k^T + mask) v in tiles,
// with the softmax kept up to date from tile to tile.
//
// Results have the same bits for any number of threads. Half types are computed in f32 and rounded
// once; where the CPU has matrix tiles, probabilities of bf16 are rounded to bf16 before they
// multiply the values. Operands are borrowed pointers; outputs must not overlap inputs or each
// other.
#pragma once

#include <rushlight/dtype.h>

#include <cstdint>

namespace rushlight {

// A tensor (B, H, L, E); strides in elements, zero where an axis is broadcast.
struct HeadsRef {
  const void* data = nullptr;
  int64_t batch_stride = 0;
  int64_t head_stride = 0;
  int64_t row_stride = 0;
  int64_t col_stride = 0;
};

struct MutableHeadsRef {
  void* data = nullptr;
  int64_t batch_stride = 0;
  int64_t head_stride = 0;
  int64_t row_stride = 0;
  int64_t col_stride = 0;
};

// Some scores of one head: keys from `key` on by queries from `query` on.
struct AttentionPlace {
  int64_t batch;
  int64_t head;
  int64_t key;
  int64_t keys;
  int64_t query;
  int64_t queries;
};

// A function of the scaled scores, applied a tile at a time. Tiles are of the compute type, a row
// for each key and a column for each query; columns beyond those, up to the stride, may be changed.
// Called from many threads.
class AttentionModifier {
 public:
  virtual ~AttentionModifier() = default;
  // Changes the scores of a tile; of a `partial` one it also hides (-inf) what takes no part.
  virtual void scores(const AttentionPlace& at, bool partial, void* tile, int64_t stride) const = 0;
  // Whether `gradients` reads the scores that `scores` was given.
  virtual bool reads_scores() const = 0;
  // From the gradients of changed scores to those of the scores; `scores` is null unless read.
  // Gradients of what else the function reads are added to sums, those of `group`.
  virtual void gradients(const AttentionPlace& at, bool partial, const void* scores,
                         void* gradients, int64_t stride, int64_t group) const = 0;
  // Number of groups that sums are kept for; 0: there are none. Planes (batch, key head) of a group
  // come one after another, in their order.
  virtual int64_t groups() const = 0;
};

// Which blocks of scores take part: 0 none of a block, 1 some, 2 all. Blocks have q_size queries
// and kv_size keys, fewer at the end.
struct AttentionBlocks {
  const uint8_t* states;  // (batch, heads, q_blocks, kv_blocks), strides 0 where broadcast
  int64_t batch_stride;
  int64_t head_stride;
  int64_t q_blocks;
  int64_t kv_blocks;
  int64_t q_size;
  int64_t kv_size;
};

struct Attention {
  DType dtype;  // of q, k, v, out and their gradients: f32, f64, f16, bf16
  int64_t batch;
  int64_t heads;     // of q and out
  int64_t kv_heads;  // of k and v; divides `heads`: q head h reads k head h / (heads / kv_heads)
  int64_t queries;
  int64_t keys;
  int64_t head_size;   // of q and k
  int64_t value_size;  // of v and out
  double scale;
  HeadsRef q;
  HeadsRef k;
  HeadsRef v;
  // Optional, (B, H, queries, keys): bool (true takes part), or added to the scaled scores: f32,
  // f16, bf16 (f64 with f64 inputs).
  HeadsRef mask = {};
  DType mask_dtype = DType::Bool;
  bool causal = false;  // key j takes part for query i where j <= i
  // Optional dropout of the probabilities: u8 or bool (B, H, queries, keys), nonzero where kept;
  // what is kept is multiplied by keep_scale, 1 / (1 - p).
  HeadsRef keep = {};
  double keep_scale = 1;
  const AttentionModifier* modifier = nullptr;  // not with a mask, causal or keep
  const AttentionBlocks* blocks = nullptr;      // only with a modifier
};

// A query without any key that takes part gives a row of zeros. `logsumexp` is contiguous
// (batch, heads, queries) of the compute type (f64 for f64, else f32): the logarithm of the sum of
// exponentials of the query's scores, +inf for a query without keys. `maximum` is the same of the
// largest scores, -inf for a query without keys. Either may be null.
void attention_forward(const Attention& attention, const MutableHeadsRef& out, void* logsumexp,
                       void* maximum = nullptr);

struct AttentionGradients {
  MutableHeadsRef q;  // (batch, heads, queries, head_size)
  MutableHeadsRef k;  // (batch, kv_heads, keys, head_size)
  MutableHeadsRef v;  // (batch, kv_heads, keys, value_size)
};

// The gradients of q, k and v from that of `out` and from what `attention_forward` gave, where a
// logsumexp may also be -inf for a query without keys. `logsumexp_gradient` is like `logsumexp`, or
// null.
void attention_backward(const Attention& attention, const HeadsRef& out, const void* logsumexp,
                        const HeadsRef& out_gradient, const AttentionGradients& gradients,
                        const void* logsumexp_gradient = nullptr);

}  // namespace rushlight
