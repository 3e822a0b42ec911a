// The functions of LstmEngine, for the vectors and in the namespace of RUSHLIGHT_LEVEL.

namespace rushlight::RUSHLIGHT_LEVEL {

[[gnu::always_inline]] inline F32::R load_some(const float* p, int64_t n) {
  return n >= F32::kWidth ? F32::load(p) : F32::load_first(p, n);
}
[[gnu::always_inline]] inline void store_some(float* p, F32::R x, int64_t n) {
  if (n >= F32::kWidth) {
    F32::store(p, x);
  } else {
    F32::store_first(p, x, n);
  }
}

inline void lstm_forward(int64_t n, int64_t hidden, float* gates, const float* before, float* cell,
                         float* output) {
  using R = F32::R;
  for (int64_t j = 0; j < n; j += F32::kWidth) {
    const int64_t left = n - j;
    float* at = gates + j;
    const R input = sigmoid(load_some(at, left));
    const R forget = sigmoid(load_some(at + hidden, left));
    const R value = tanh(load_some(at + 2 * hidden, left));
    const R out = sigmoid(load_some(at + 3 * hidden, left));
    const R next = forget * load_some(before + j, left) + input * value;
    store_some(at, input, left);
    store_some(at + hidden, forget, left);
    store_some(at + 2 * hidden, value, left);
    store_some(at + 3 * hidden, out, left);
    store_some(cell + j, next, left);
    store_some(output + j, out * tanh(next), left);
  }
}

inline void lstm_backward(int64_t n, int64_t hidden, const float* gates, const float* before,
                          const float* cell, const float* output_gradient, float* cell_gradient,
                          float* gate_gradients) {
  using R = F32::R;
  const R one = F32::set1(1.0f);
  for (int64_t j = 0; j < n; j += F32::kWidth) {
    const int64_t left = n - j;
    const R input = load_some(gates + j, left);
    const R forget = load_some(gates + hidden + j, left);
    const R value = load_some(gates + 2 * hidden + j, left);
    const R out = load_some(gates + 3 * hidden + j, left);
    const R squashed = tanh(load_some(cell + j, left));
    const R above = load_some(output_gradient + j, left);
    const R inner = load_some(cell_gradient + j, left) + above * out * (one - squashed * squashed);
    float* to = gate_gradients + j;
    store_some(to, inner * value * input * (one - input), left);
    store_some(to + hidden, inner * load_some(before + j, left) * forget * (one - forget), left);
    store_some(to + 2 * hidden, inner * input * (one - value * value), left);
    store_some(to + 3 * hidden, above * squashed * out * (one - out), left);
    store_some(cell_gradient + j, inner * forget, left);
  }
}

extern const LstmEngine<float> lstm_f32;
const LstmEngine<float> lstm_f32 = {lstm_forward, lstm_backward};

}  // namespace rushlight::RUSHLIGHT_LEVEL
