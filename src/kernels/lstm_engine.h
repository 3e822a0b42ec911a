// The element-wise part of an LSTM for a CPU level.
#pragma once

#include <cstdint>

namespace rushlight {

// n neighbouring units of one sequence. The four gates of a unit lie `hidden` elements apart.
template <typename T>
struct LstmEngine {
  // Sums of gates become their values, and make the next cell and hidden state.
  void (*forward)(int64_t n, int64_t hidden, T* gates, const T* before, T* cell, T* output);
  // From the gradient by the hidden state, and by the cell, which becomes that by the cell before:
  // the gradients by the sums of gates.
  void (*backward)(int64_t n, int64_t hidden, const T* gates, const T* before, const T* cell,
                   const T* output_gradient, T* cell_gradient, T* gate_gradients);
};

template <typename T>
const LstmEngine<T>& lstm_engine();
template <>
const LstmEngine<float>& lstm_engine<float>();
template <>
const LstmEngine<double>& lstm_engine<double>();

namespace base {
extern const LstmEngine<float> lstm_f32;
}
#if defined(__x86_64__)
namespace v3 {
extern const LstmEngine<float> lstm_f32;
}
namespace v4 {
extern const LstmEngine<float> lstm_f32;
}
#endif

}  // namespace rushlight
