// The functions of AttentionEngine, for the vectors and in the namespace of RUSHLIGHT_LEVEL.

namespace rushlight::RUSHLIGHT_LEVEL {

inline constexpr float kInfinity = __builtin_inff();

// Columns of kVectors vectors side by side.
template <int kVectors>
void softmax_columns(float* scores, int64_t stride, int64_t keys, float* maximum, float* sum,
                     float* correction, const RowsAhead& ahead) {
  using R = F32::R;
  constexpr int kWidth = F32::kWidth;
  R most[kVectors];
  R base[kVectors];
  R total[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    most[v] = F32::load(maximum + v * kWidth);
  }
  for (int64_t j = 0; j < keys; ++j) {
    for (int v = 0; v < kVectors; ++v) {
      most[v] = F32::max(most[v], F32::load(scores + j * stride + v * kWidth));
    }
  }
  for (int v = 0; v < kVectors; ++v) {
    // Where no key took part yet, any finite value will do.
    base[v] = most[v] == all(-kInfinity) ? F32::zero() : most[v];
    const R factor = exp_of_difference(F32::load(maximum + v * kWidth) - base[v]);
    total[v] = F32::load(sum + v * kWidth) * factor;
    F32::store(maximum + v * kWidth, most[v]);
    F32::store(correction + v * kWidth, factor);
  }
  const char* first = ahead.data[0];
  const char* second = ahead.data[1];
  for (int64_t j = 0; j < keys; ++j) {
    if (first != nullptr) {
      __builtin_prefetch(first, 0, 2);
      __builtin_prefetch(second, 0, 2);
      first += ahead.stride[0];
      second += ahead.stride[1];
    }
    for (int v = 0; v < kVectors; ++v) {
      float* at = scores + j * stride + v * kWidth;
      const R p = exp_of_difference(F32::load(at) - base[v]);
      F32::store(at, p);
      total[v] = total[v] + p;
    }
  }
  for (int v = 0; v < kVectors; ++v) {
    F32::store(sum + v * kWidth, total[v]);
  }
}

inline void softmax_step_f32(float* scores, int64_t stride, int64_t keys, int64_t width,
                             float* maximum, float* sum, float* correction,
                             const RowsAhead& ahead) {
  int64_t i = 0;
  for (; i + 2 * F32::kWidth <= width; i += 2 * F32::kWidth) {
    softmax_columns<2>(scores + i, stride, keys, maximum + i, sum + i, correction + i, ahead);
  }
  for (; i < width; i += F32::kWidth) {
    softmax_columns<1>(scores + i, stride, keys, maximum + i, sum + i, correction + i, ahead);
  }
}

inline void softmax_step_f64(double* scores, int64_t stride, int64_t keys, int64_t width,
                             double* maximum, double* sum, double* correction, const RowsAhead&) {
  for (int64_t i = 0; i < width; ++i) {
    double most = maximum[i];
    for (int64_t j = 0; j < keys; ++j) {
      const double score = scores[j * stride + i];
      most = score > most || score != score ? score : most;
    }
    const double base = most == -__builtin_inf() ? 0 : most;
    correction[i] = __builtin_exp(maximum[i] - base);
    maximum[i] = most;
    sum[i] *= correction[i];
    for (int64_t j = 0; j < keys; ++j) {
      scores[j * stride + i] = __builtin_exp(scores[j * stride + i] - base);
      sum[i] += scores[j * stride + i];
    }
  }
}

template <typename V>
void scale_columns(typename V::T* tile, int64_t rows, int64_t width, const typename V::T* factor) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < width; i += V::kWidth) {
      V::store(tile + i, V::load(tile + i) * V::load(factor + i));
    }
    tile += width;
  }
}

inline void probabilities_f32(float* scores, int64_t stride, int64_t keys, int64_t width,
                              const float* logsumexp) {
  for (int64_t j = 0; j < keys; ++j) {
    for (int64_t i = 0; i < width; i += F32::kWidth) {
      const F32::R exponent = F32::load(scores + i) - F32::load(logsumexp + i);
      F32::store(scores + i, exp_of_difference(exponent));
    }
    scores += stride;
  }
}

inline void probabilities_f64(double* scores, int64_t stride, int64_t keys, int64_t width,
                              const double* logsumexp) {
  for (int64_t j = 0; j < keys; ++j) {
    for (int64_t i = 0; i < width; ++i) {
      scores[i] = __builtin_exp(scores[i] - logsumexp[i]);
    }
    scores += stride;
  }
}

template <typename V>
void score_gradient(typename V::T* gradient, const typename V::T* probability, int64_t stride,
                    int64_t keys, int64_t width, const typename V::T* delta) {
  for (int64_t j = 0; j < keys; ++j) {
    for (int64_t i = 0; i < width; i += V::kWidth) {
      const typename V::R above = V::load(gradient + i) - V::load(delta + i);
      V::store(gradient + i, V::load(probability + i) * above);
    }
    gradient += stride;
    probability += stride;
  }
}

extern const AttentionEngine<float> attention_f32;
extern const AttentionEngine<double> attention_f64;

constexpr AttentionEngine<float> kAttentionF32 = {softmax_step_f32, scale_columns<F32>,
                                                  probabilities_f32, score_gradient<F32>};
constexpr AttentionEngine<double> kAttentionF64 = {softmax_step_f64, scale_columns<F64>,
                                                   probabilities_f64, score_gradient<F64>};

const AttentionEngine<float> attention_f32 = kAttentionF32;
const AttentionEngine<double> attention_f64 = kAttentionF64;

}  // namespace rushlight::RUSHLIGHT_LEVEL
