// A layer of long short-term memory in one direction, as one node: the weight is packed once for
// all steps, and its gradient is one product over all of them.
#include <rushlight/generated/functions.h>

#include "kernels/copy.h"
#include "kernels/lstm.h"
#include "ops/gradient.h"
#include "ops/operator.h"

namespace rushlight {
namespace {

using Three = std::tuple<Tensor, Tensor, Tensor>;

LstmLayer shape_of(std::string_view op, const Tensor& gates, const Tensor& w_hh, bool reverse) {
  const int64_t hidden = w_hh.dim() == 2 ? w_hh.size(1) : -1;
  if (gates.dim() != 3 || gates.size(0) < 1 || hidden < 0 || w_hh.size(0) != 4 * hidden ||
      gates.size(2) != 4 * hidden) {
    fail(ErrorKind::Runtime, op, "expected gates of shape (steps >= 1, batch, 4 * hidden) and a ",
         "weight of (4 * hidden, hidden), got ", gates.sizes(), " and ", w_hh.sizes());
  }
  return {gates.size(0), gates.size(1), hidden, reverse};
}

void expect_like(std::string_view op, std::string_view name, const Tensor& tensor,
                 const Tensor& gates, IntArrayRef sizes) {
  if (tensor.dtype() != gates.dtype() || tensor.sizes() != sizes) {
    fail(ErrorKind::Runtime, op, name, " should be ", gates.dtype(), " of shape ", sizes, ", got ",
         tensor.dtype(), " of shape ", tensor.sizes());
  }
}

void expect_float(std::string_view op, const Tensor& gates) {
  if (gates.dtype() != DType::Float32 && gates.dtype() != DType::Float64) {
    fail(ErrorKind::Runtime, op, "expected float32 or float64, got ", gates.dtype());
  }
}

MatrixRef matrix_of(const Tensor& weight) {
  return {weight.data(), weight.dtype(), weight.strides()[0], weight.strides()[1]};
}

template <typename T>
void run(const LstmLayer& layer, const Tensor& products, const Tensor& hx, const Tensor& cx,
         const Tensor& w_hh, const Three& made) {
  lstm_layer<T>(layer, static_cast<const T*>(products.data()),
                {static_cast<const T*>(hx.data()), static_cast<const T*>(cx.data())},
                matrix_of(w_hh), static_cast<T*>(std::get<0>(made).data()),
                static_cast<T*>(std::get<1>(made).data()),
                static_cast<T*>(std::get<2>(made).data()));
}

Three layer_of(const Tensor& products, const Tensor& hx, const Tensor& cx, const Tensor& w_hh,
               bool reverse) {
  constexpr std::string_view kName = "_lstm_layer";
  expect_float(kName, products);
  const LstmLayer layer = shape_of(kName, products, w_hh, reverse);
  const int64_t state[] = {layer.batch, layer.hidden};
  expect_like(kName, "hx", hx, products, state);
  expect_like(kName, "cx", cx, products, state);
  expect_like(kName, "w_hh", w_hh, products, w_hh.sizes());
  const DType dtype = products.dtype();
  const Device device = products.device();
  const int64_t sizes[] = {layer.steps, layer.batch, layer.hidden};
  Three made = {make_tensor(sizes, dtype, device), make_tensor(sizes, dtype, device),
                make_tensor(products.sizes(), dtype, device)};
  if (products.is_meta() || products.numel() == 0) {
    return made;
  }
  const auto run_layer = dtype == DType::Float64 ? &run<double> : &run<float>;
  run_layer(layer, kernels::as_contiguous(products), kernels::as_contiguous(hx),
            kernels::as_contiguous(cx), w_hh, made);
  return made;
}

template <typename T>
const T* data_or_null(const Tensor& tensor) {
  return tensor.defined() ? static_cast<const T*>(tensor.data()) : nullptr;
}

template <typename T>
void run_back(const LstmLayer& layer, const Tensor& grad_output, const Tensor& grad_cells,
              const Tensor& cx, const Tensor& w_hh, const Tensor& cells, const Tensor& gates,
              const Three& made) {
  lstm_layer_gradient<T>(
      layer, {data_or_null<T>(grad_output), data_or_null<T>(grad_cells)},
      static_cast<const T*>(cx.data()), matrix_of(w_hh), static_cast<const T*>(cells.data()),
      static_cast<const T*>(gates.data()), static_cast<T*>(std::get<0>(made).data()),
      static_cast<T*>(std::get<1>(made).data()), static_cast<T*>(std::get<2>(made).data()));
}

Three layer_back(const Tensor& grad_output, const Tensor& grad_cells, const Tensor& cx,
                 const Tensor& w_hh, const Tensor& cells, const Tensor& gates, bool reverse) {
  constexpr std::string_view kName = "_lstm_layer_backward";
  expect_float(kName, gates);
  const LstmLayer layer = shape_of(kName, gates, w_hh, reverse);
  const int64_t state[] = {layer.batch, layer.hidden};
  const int64_t sizes[] = {layer.steps, layer.batch, layer.hidden};
  expect_like(kName, "cx", cx, gates, state);
  expect_like(kName, "cells", cells, gates, sizes);
  const auto dense = [&](const Tensor& grad, std::string_view name) {
    if (!grad.defined()) {
      return Tensor();
    }
    expect_like(kName, name, grad, gates, sizes);
    return kernels::as_contiguous(grad);
  };
  const Tensor above = dense(grad_output, "grad_output");
  const Tensor above_cells = dense(grad_cells, "grad_cells");
  const DType dtype = gates.dtype();
  const Device device = gates.device();
  Three made = {make_tensor(gates.sizes(), dtype, device), make_tensor(state, dtype, device),
                make_tensor(state, dtype, device)};
  if (gates.is_meta() || gates.numel() == 0) {
    return made;
  }
  const auto run_layer = dtype == DType::Float64 ? &run_back<double> : &run_back<float>;
  run_layer(layer, above, above_cells, kernels::as_contiguous(cx), w_hh,
            kernels::as_contiguous(cells), kernels::as_contiguous(gates), made);
  return made;
}

// The hidden state before each step, (steps, batch, hidden).
Tensor states_before(const Tensor& hx, const Tensor& output, bool reverse) {
  const Tensor first = unsqueeze(hx, 0);
  const int64_t others = output.size(0) - 1;
  return reverse ? cat({narrow(output, 0, 1, others), first}, 0)
                 : cat({first, narrow(output, 0, 0, others)}, 0);
}

Tensor sum_of(const Tensor& a, const Tensor& b) {
  return !a.defined() ? b : !b.defined() ? a : add(a, b);
}

Tensor row_of(const Tensor& sequence, int64_t t) {
  return sequence.defined() ? select(sequence, 0, t) : Tensor();
}

Tensor one_minus(const Tensor& x) {
  return rsub(x, Scalar(1));
}

// The gradient in public operators, for gradients of its own, and where gates have one too.
Three layer_back_by_steps(Gradient& g) {
  const Tensor above = g.has_grad(0) ? g.grad(0) : Tensor();
  const Tensor above_cells = g.has_grad(1) ? g.grad(1) : Tensor();
  const Tensor above_gates = g.has_grad(2) ? g.grad(2) : Tensor();
  const Tensor cells = g.result(1);
  const Tensor gates = g.result(2);
  const Tensor w_hh = g.tensor(3);
  const bool reverse = g.flag(4);
  const int64_t steps = gates.size(0);
  TensorList products(static_cast<size_t>(steps));
  Tensor dh = zeros_like(g.tensor(2));
  Tensor dc = zeros_like(dh);
  for (int64_t n = steps - 1; n >= 0; --n) {
    const int64_t t = reverse ? steps - 1 - n : n;
    const int64_t earlier = reverse ? t + 1 : t - 1;
    const Tensor before = n > 0 ? row_of(cells, earlier) : g.tensor(2);
    const TensorList gate = chunk(row_of(gates, t), 4, 1);
    const Tensor squashed = tanh(row_of(cells, t));
    dh = sum_of(dh, row_of(above, t));
    dc = add(sum_of(dc, row_of(above_cells, t)),
             mul(mul(dh, gate[3]), one_minus(mul(squashed, squashed))));
    TensorList by_gate = {mul(dc, gate[2]), mul(dc, before), mul(dc, gate[0]), mul(dh, squashed)};
    if (above_gates.defined()) {
      const TensorList more = chunk(row_of(above_gates, t), 4, 1);
      for (size_t i = 0; i < 4; ++i) {
        by_gate[i] = add(by_gate[i], more[i]);
      }
    }
    for (size_t i = 0; i < 4; ++i) {
      const Tensor slope =
          i == 2 ? one_minus(mul(gate[i], gate[i])) : mul(gate[i], one_minus(gate[i]));
      by_gate[i] = mul(by_gate[i], slope);
    }
    const Tensor own = cat(by_gate, 1);
    products[static_cast<size_t>(t)] = own;
    dh = matmul(own, w_hh);
    dc = mul(dc, gate[1]);
  }
  return {stack(products, 0), dh, dc};
}

void layer_gradient(Gradient& g) {
  const bool by_steps = thread_state.grad_mode || g.has_grad(2);
  const Three made = by_steps
                         ? layer_back_by_steps(g)
                         : _lstm_layer_backward(g.has_grad(0) ? g.grad(0) : Tensor(),
                                                g.has_grad(1) ? g.grad(1) : Tensor(), g.tensor(2),
                                                g.tensor(3), g.result(1), g.result(2), g.flag(4));
  for (int i = 0; i < 3; ++i) {
    const Tensor by[] = {std::get<0>(made), std::get<1>(made), std::get<2>(made)};
    if (g.needs(i)) {
      g.set(i, by[i]);
    }
  }
  if (g.needs(3)) {
    const Tensor states = states_before(g.tensor(1), g.result(0), g.flag(4));
    g.set(3, matmul(t(flatten(std::get<0>(made), 0, 1)), flatten(states, 0, 1)));
  }
}

}  // namespace

RUSHLIGHT_OPERATORS(recurrent_layer) {
  op("_lstm_layer(Tensor products, Tensor hx, Tensor cx, Tensor w_hh, bool reverse) "
     "-> (Tensor, Tensor, Tensor)",
     kInternal)
      .doc(
          "Steps of long short-term memory: hidden states, cell states and gates of each, from "
          "what the input contributes to the gates.")
      .kernel(layer_of)
      .gradient("hx cx w_hh result0 result1 result2", layer_gradient)
      .node("MkldnnRnnLayerBackward0");
  op("_lstm_layer_backward(Tensor? grad_output, Tensor? grad_cells, Tensor cx, Tensor w_hh, "
     "Tensor cells, Tensor gates, bool reverse) -> (Tensor, Tensor, Tensor)",
     kInternal)
      .doc("The gradients of _lstm_layer by products, hx and cx.")
      .kernel(layer_back);
}

}  // namespace rushlight
