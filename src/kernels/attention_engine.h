// The element-wise part of attention for a CPU level. A tile holds scores (keys x width), one
// column for each query, so that a vector holds neighbouring queries. Width and stride are whole
// numbers of vectors of `GemmEngine::vector` elements.
#pragma once

#include <cstdint>

namespace rushlight {

// Rows of memory that will be read soon: row j of each starts at data + j * stride bytes. Without
// data there are none.
struct RowsAhead {
  const char* data[2] = {};
  int64_t stride[2] = {};
};

template <typename T>
struct AttentionEngine {
  // Brings a column's running maximum and sum of exponentials up to date with its scores, which
  // become exp(score - maximum). What was summed before has to be multiplied by `correction`. On
  // the way one cache line of row j of `ahead` is fetched for key j.
  void (*softmax_step)(T* scores, int64_t stride, int64_t keys, int64_t width, T* maximum, T* sum,
                       T* correction, const RowsAhead& ahead);
  // tile[j][i] *= factor[i]
  void (*scale_columns)(T* tile, int64_t rows, int64_t width, const T* factor);
  // scores[j][i] = exp(scores[j][i] - logsumexp[i])
  void (*probabilities)(T* scores, int64_t stride, int64_t keys, int64_t width, const T* logsumexp);
  // gradient[j][i] = probability[j][i] * (gradient[j][i] - delta[i])
  void (*score_gradient)(T* gradient, const T* probability, int64_t stride, int64_t keys,
                         int64_t width, const T* delta);
};

template <typename T>
const AttentionEngine<T>& attention_engine();
template <>
const AttentionEngine<float>& attention_engine<float>();
template <>
const AttentionEngine<double>& attention_engine<double>();

namespace base {
extern const AttentionEngine<float> attention_f32;
extern const AttentionEngine<double> attention_f64;
}  // namespace base

#if defined(__x86_64__)
namespace v3 {
extern const AttentionEngine<float> attention_f32;
extern const AttentionEngine<double> attention_f64;
}  // namespace v3

// Columns are independent, so that the bits are those of v3.
namespace v4 {
extern const AttentionEngine<float> attention_f32;
extern const AttentionEngine<double> attention_f64;
}  // namespace v4
#endif

}  // namespace rushlight
