// Cells of recurrent networks: the products are matmuls, the rest of a step is one or two
// element-wise kernels.
#include "ops/recurrent_cell.h"

#include <rushlight/generated/functions.h>

#include "ops/elementwise.h"
#include "ops/operator.h"

namespace rushlight {
namespace recurrent {

int64_t gates_of(Cell kind) {
  return kind == Cell::Lstm ? 4 : kind == Cell::Gru ? 3 : 1;
}

namespace {

// Both biases are added at once where nothing comes between them. A GRU's hidden product is scaled
// before it meets the input's.
Tensor joint_bias(Cell kind, const Weights& weights) {
  if (kind == Cell::Gru || !weights.b_hh.defined()) {
    return weights.b_ih;
  }
  return weights.b_ih.defined() ? add(weights.b_ih, weights.b_hh) : weights.b_hh;
}

}  // namespace

Tensor input_product(Cell kind, const Tensor& input, const Weights& weights) {
  return linear(input, weights.w_ih, joint_bias(kind, weights));
}

State step(Cell kind, const Tensor& product, const State& state, const Weights& weights) {
  if (kind == Cell::Gru) {
    const TensorList given = chunk(product, 3, 1);
    const TensorList own = chunk(linear(state.hidden, weights.w_hh, weights.b_hh), 3, 1);
    return {_gru_output(given[0], given[1], given[2], own[0], own[1], own[2], state.hidden), {}};
  }
  const Tensor gates = addmm(product, state.hidden, t(weights.w_hh));
  if (kind != Cell::Lstm) {
    return {kind == Cell::Tanh ? tanh(gates) : relu(gates), {}};
  }
  const TensorList parts = chunk(gates, 4, 1);
  State made;
  made.cell = _lstm_cell_state(parts[0], parts[1], parts[2], state.cell);
  made.hidden = _lstm_output(parts[3], made.cell);
  if (weights.projection.defined()) {
    made.hidden = matmul(made.hidden, t(weights.projection));
  }
  return made;
}

namespace {

void check_cell(std::string_view op, int64_t gates, const Tensor& input, const Tensor& hidden,
                std::string_view label, const Tensor& w_ih, const Tensor& w_hh) {
  if (input.dim() != 2 || hidden.dim() != 2 || w_ih.dim() != 2 || w_hh.dim() != 2) {
    fail(ErrorKind::Runtime, op, "expected 2-D input, hidden", label, " and weights, got shapes ",
         input.sizes(), ", ", hidden.sizes(), ", ", w_ih.sizes(), " and ", w_hh.sizes());
  }
  if (input.sizes()[1] != w_ih.sizes()[1]) {
    fail(ErrorKind::Runtime, op, "input has inconsistent input_size: got ", input.sizes()[1],
         " expected ", w_ih.sizes()[1]);
  }
  const int64_t size = w_hh.sizes()[1];
  if (input.sizes()[0] != hidden.sizes()[0]) {
    fail(ErrorKind::Runtime, op, "Input batch size ", input.sizes()[0], " doesn't match hidden",
         label, " batch size ", hidden.sizes()[0]);
  }
  if (hidden.sizes()[1] != size) {
    fail(ErrorKind::Runtime, op, "hidden", label, " has inconsistent hidden_size: got ",
         hidden.sizes()[1], ", expected ", size);
  }
  const auto check_rows = [&](std::string_view name, const Tensor& weight) {
    if (weight.sizes()[0] != gates * size) {
      fail(ErrorKind::Runtime, op, name, " first dim must be ", gates,
           " * hidden_size = ", gates * size, ", but got ", weight.sizes()[0]);
    }
  };
  check_rows("weight_ih", w_ih);
  check_rows("weight_hh", w_hh);
}

Tensor one_cell(std::string_view op, Cell kind, const Tensor& input, const Tensor& hx,
                const Weights& weights) {
  check_cell(op, gates_of(kind), input, hx, "0", weights.w_ih, weights.w_hh);
  return step(kind, input_product(kind, input, weights), {hx, {}}, weights).hidden;
}

std::tuple<Tensor, Tensor> lstm_cell_of(const Tensor& input, const TensorList& hx,
                                        const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih,
                                        const Tensor& b_hh) {
  if (hx.size() != 2) {
    fail(ErrorKind::Runtime, "lstm_cell", "lstm_cell expects two hidden states, got ",
         static_cast<int64_t>(hx.size()));
  }
  check_cell("lstm_cell", 4, input, hx[0], "0", w_ih, w_hh);
  check_cell("lstm_cell", 4, input, hx[1], "1", w_ih, w_hh);
  const Weights weights{w_ih, w_hh, b_ih, b_hh, {}};
  const State made =
      step(Cell::Lstm, input_product(Cell::Lstm, input, weights), {hx[0], hx[1]}, weights);
  return {made.hidden, made.cell};
}

}  // namespace
}  // namespace recurrent

using loop::Expr;
using namespace recurrent;

RUSHLIGHT_OPERATORS(recurrent_cell) {
  op("_lstm_cell_state(Tensor input, Tensor forget, Tensor value, Tensor state) -> Tensor",
     kInternal)
      .doc("sigmoid(forget) * state + sigmoid(input) * tanh(value).")
      .elementwise(Rule::Float,
                   [](Elementwise& e) {
                     return loop::sigmoid(e.in(1)) * e.in(3) +
                            loop::sigmoid(e.in(0)) * loop::tanh(e.in(2));
                   })
      .node("AddBackward0");
  op("_lstm_output(Tensor output, Tensor state) -> Tensor", kInternal)
      .doc("sigmoid(output) * tanh(state).")
      .elementwise(Rule::Float,
                   [](Elementwise& e) { return loop::sigmoid(e.in(0)) * loop::tanh(e.in(1)); })
      .node("MulBackward0");
  op("_gru_output(Tensor given_reset, Tensor given_update, Tensor given_value, Tensor own_reset, "
     "Tensor own_update, Tensor own_value, Tensor state) -> Tensor",
     kInternal)
      .doc(
          "value + update * (state - value), the value being tanh(given_value + reset * "
          "own_value) and the gates sigmoids of sums.")
      .elementwise(Rule::Float,
                   [](Elementwise& e) {
                     Expr reset = loop::sigmoid(e.in(0) + e.in(3));
                     Expr update = loop::sigmoid(e.in(1) + e.in(4));
                     Expr value = loop::tanh(e.in(2) + reset * e.in(5));
                     return (e.in(6) - value) * update + value;
                   })
      .node("AddBackward0");
  op("rnn_tanh_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, "
     "Tensor? b_hh=None) -> Tensor",
     kFunction)
      .doc("tanh(w_ih input + b_ih + w_hh hx + b_hh).")
      .composition([](const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                      const Tensor& b_ih, const Tensor& b_hh) -> Tensor {
        return one_cell("rnn_tanh_cell", Cell::Tanh, input, hx, {w_ih, w_hh, b_ih, b_hh, {}});
      });
  op("rnn_relu_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, "
     "Tensor? b_hh=None) -> Tensor",
     kFunction)
      .doc("relu(w_ih input + b_ih + w_hh hx + b_hh).")
      .composition([](const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                      const Tensor& b_ih, const Tensor& b_hh) -> Tensor {
        return one_cell("rnn_relu_cell", Cell::Relu, input, hx, {w_ih, w_hh, b_ih, b_hh, {}});
      });
  op("gru_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, "
     "Tensor? b_hh=None) -> Tensor",
     kFunction)
      .doc("One step of a gated recurrent unit; rows of weights are reset, update, value.")
      .composition([](const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                      const Tensor& b_ih, const Tensor& b_hh) -> Tensor {
        return one_cell("gru_cell", Cell::Gru, input, hx, {w_ih, w_hh, b_ih, b_hh, {}});
      });
  op("lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, "
     "Tensor? b_hh=None) -> (Tensor, Tensor)",
     kFunction)
      .doc(
          "One step of long short-term memory from (h, c); rows of weights are input, forget, "
          "value, output.")
      .composition(lstm_cell_of);
}

}  // namespace rushlight
