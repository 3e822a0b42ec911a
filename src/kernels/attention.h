// Scaled dot-product attention without a matrix of scores: softmax(scale q k^T + mask) v in tiles,
// with the softmax kept up to date from tile to tile.
//
// Results have the same bits for any number of threads. Half types are computed in f32 and rounded
// once. Operands are borrowed pointers; outputs must not overlap inputs or each other.
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
};

// A query without any key that takes part gives a row of zeros. `logsumexp` is contiguous
// (batch, heads, queries) of the compute type (f64 for f64, else f32): the logarithm of the sum of
// exponentials of the query's scores, +inf for a query without keys. It may be null.
void attention_forward(const Attention& attention, const MutableHeadsRef& out, void* logsumexp);

struct AttentionGradients {
  MutableHeadsRef q;  // (batch, heads, queries, head_size)
  MutableHeadsRef k;  // (batch, kv_heads, keys, head_size)
  MutableHeadsRef v;  // (batch, kv_heads, keys, value_size)
};

// The gradients of q, k and v from that of `out` and from what `attention_forward` gave.
void attention_backward(const Attention& attention, const HeadsRef& out, const void* logsumexp,
                        const HeadsRef& out_gradient, const AttentionGradients& gradients);

}  // namespace rushlight
