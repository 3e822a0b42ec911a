// The functions of AttentionEngine, for the vectors and in the namespace of RUSHLIGHT_LEVEL.

namespace rushlight::RUSHLIGHT_LEVEL {

inline constexpr float kInfinity = __builtin_inff();

inline void softmax_step_f32(float* scores, int64_t stride, int64_t keys, int64_t width,
                             float* maximum, float* sum, float* correction) {
  using R = F32::R;
  for (int64_t i = 0; i < width; i += F32::kWidth) {
    const R old = F32::load(maximum + i);
    R most = old;
    for (int64_t j = 0; j < keys; ++j) {
      most = F32::max(most, F32::load(scores + j * stride + i));
    }
    F32::store(maximum + i, most);
    // Where no key took part yet, any finite value will do.
    const R base = most == all(-kInfinity) ? F32::zero() : most;
    const R factor = RUSHLIGHT_LEVEL::exp(old - base);
    R total = F32::load(sum + i) * factor;
    for (int64_t j = 0; j < keys; ++j) {
      const R p = RUSHLIGHT_LEVEL::exp(F32::load(scores + j * stride + i) - base);
      F32::store(scores + j * stride + i, p);
      total = total + p;
    }
    F32::store(sum + i, total);
    F32::store(correction + i, factor);
  }
}

inline void softmax_step_f64(double* scores, int64_t stride, int64_t keys, int64_t width,
                             double* maximum, double* sum, double* correction) {
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
      F32::store(scores + i, RUSHLIGHT_LEVEL::exp(exponent));
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
