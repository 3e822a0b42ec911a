// One step of a recurrent network, of each kind.
#pragma once

#include <rushlight/tensor.h>

namespace rushlight::recurrent {

enum class Cell : uint8_t { Tanh, Relu, Gru, Lstm };

// One layer's, in one direction. Biases may both be undefined; the projection belongs to an LSTM
// whose hidden state is narrower than its cell state.
struct Weights {
  Tensor w_ih;
  Tensor w_hh;
  Tensor b_ih;
  Tensor b_hh;
  Tensor projection;
};

struct State {
  Tensor hidden;
  Tensor cell;  // of an LSTM
};

// How many times the hidden size the rows of a weight are.
int64_t gates_of(Cell kind);

// What the input contributes to all steps at once: (..., features) to (..., gates * hidden).
Tensor input_product(Cell kind, const Tensor& input, const Weights& weights);

// The state after one step, from its row of the above.
State step(Cell kind, const Tensor& product, const State& state, const Weights& weights);

}  // namespace rushlight::recurrent
