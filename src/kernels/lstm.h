// A layer of long short-term memory over a sequence, in one direction.
#pragma once

#include <cstdint>

#include "kernels/gemm.h"

namespace rushlight {

// Sequences are (steps, batch, ...) and dense. Gates of a step are (batch, 4 * hidden): input,
// forget, value, output.
struct LstmLayer {
  int64_t steps;
  int64_t batch;
  int64_t hidden;
  bool reverse;  // from the last step to the first

  // The n-th step that is taken.
  int64_t step(int64_t n) const { return reverse ? steps - 1 - n : n; }
  int64_t state_size() const { return batch * hidden; }
};

// The state before the first step: (batch, hidden) each, dense.
template <typename T>
struct LstmState {
  const T* hidden;
  const T* cell;
};

// Takes all steps. `products`: what the input and the biases contribute to the gates. `weight`:
// (4 * hidden, hidden). `gates` receives their values, after sigmoid and tanh; `cells` and `output`
// (steps, batch, hidden) the states. Results do not depend on the number of threads.
template <typename T>
void lstm_layer(const LstmLayer& layer, const T* products, const LstmState<T>& before,
                const MatrixRef& weight, T* output, T* cells, T* gates);

// The gradients that come from above: (steps, batch, hidden), none where null.
template <typename T>
struct LstmAbove {
  const T* output;
  const T* cells;
};

// The gradients by the products (like `gates`) and by the state before the first step. `gates` and
// `cells` are those of the forward pass. The gradient by the weight is left to a product of the
// former with the states.
template <typename T>
void lstm_layer_gradient(const LstmLayer& layer, const LstmAbove<T>& above, const T* cell_before,
                         const MatrixRef& weight, const T* cells, const T* gates, T* products,
                         T* hidden_before, T* cell_before_gradient);

}  // namespace rushlight
