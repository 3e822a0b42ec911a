// Recurrent networks: layers of cells over sequences, padded or packed.
#include <rushlight/generated/functions.h>

#include "ops/operator.h"
#include "ops/recurrent_cell.h"

namespace rushlight {
namespace {

using namespace recurrent;

struct Network {
  std::string_view op;
  Cell kind;
  bool has_biases;
  int64_t num_layers;
  double dropout;
  bool train;
  bool bidirectional;
  bool projects = false;

  int64_t directions() const { return bidirectional ? 2 : 1; }
};

struct Result {
  Tensor output;
  Tensor hidden;
  Tensor cell;
};

std::vector<Weights> weights_of(const Network& network, const TensorList& params) {
  const size_t each = (network.has_biases ? 4 : 2) + (network.projects ? 1 : 0);
  if (params.size() % each != 0) {
    fail(ErrorKind::Runtime, network.op, "params of ", static_cast<int64_t>(params.size()),
         " tensors are not divisible by the ", static_cast<int64_t>(each), " of a layer");
  }
  std::vector<Weights> made;
  for (size_t i = 0; i < params.size(); i += each) {
    Weights own;
    own.w_ih = params[i];
    own.w_hh = params[i + 1];
    if (network.has_biases) {
      own.b_ih = params[i + 2];
      own.b_hh = params[i + 3];
    }
    if (network.projects) {
      own.projection = params[i + each - 1];
    }
    made.push_back(std::move(own));
  }
  const auto wanted = static_cast<size_t>(network.num_layers * network.directions());
  if (made.size() < wanted) {
    fail(ErrorKind::Runtime, network.op,
         "Expected more parameters in stacked_rnn: ", static_cast<int64_t>(wanted),
         " layers and directions, got those of ", static_cast<int64_t>(made.size()));
  }
  return made;
}

// The state of each layer and direction.
std::vector<State> states_of(const Network& network, const TensorList& hx) {
  if (network.kind == Cell::Lstm && hx.size() != 2) {
    fail(ErrorKind::Runtime, network.op, "lstm expects two hidden states, got ",
         static_cast<int64_t>(hx.size()));
  }
  const int64_t wanted = network.num_layers * network.directions();
  std::vector<TensorList> parts;
  for (const Tensor& all : hx) {
    if (all.dim() != 3 || all.sizes()[0] != wanted) {
      fail(ErrorKind::Runtime, network.op,
           all.dim() == 3 && all.sizes()[0] > wanted ? "Expected more hidden states in stacked_rnn"
                                                     : "Expected hidden states",
           " of shape (", wanted, ", batch, features), got ", all.sizes());
    }
    parts.push_back(unbind(all, 0));
  }
  std::vector<State> made(static_cast<size_t>(wanted));
  for (size_t i = 0; i < made.size(); ++i) {
    made[i].hidden = parts[0][i];
    made[i].cell = parts.size() > 1 ? parts[1][i] : Tensor();
  }
  return made;
}

// The steps of a batch of sequences, and how they are put together again.
class Sequence {
 public:
  virtual ~Sequence() = default;
  // Runs one layer in one direction over the input; the final state goes to `state`.
  virtual Tensor run(const Network& network, const Tensor& input, const Weights& weights,
                     bool reversed, State* state) const = 0;
};

// (T, B, features): every step has all sequences.
class Padded final : public Sequence {
 public:
  Tensor run(const Network& network, const Tensor& input, const Weights& weights, bool reversed,
             State* state) const override {
    const Tensor product = input_product(network.kind, input, weights);
    if (takes_layer(network, product, *state, weights)) {
      const auto [output, cells, gates] =
          _lstm_layer(product, state->hidden, state->cell, weights.w_hh, reversed);
      const int64_t last = reversed ? 0 : output.size(0) - 1;
      *state = {select(output, 0, last), select(cells, 0, last)};
      return output;
    }
    const TensorList products = unbind(product, 0);
    TensorList outputs(products.size());
    for (size_t i = 0; i < products.size(); ++i) {
      const size_t at = reversed ? products.size() - 1 - i : i;
      *state = step(network.kind, products[at], *state, weights);
      outputs[at] = state->hidden;
    }
    return stack(outputs, 0);
  }

 private:
  // f32 alone: there PyTorch's layers are one node as well.
  static bool takes_layer(const Network& network, const Tensor& product, const State& state,
                          const Weights& weights) {
    const DType f32 = DType::Float32;
    return network.kind == Cell::Lstm && !network.projects && product.dtype() == f32 &&
           state.hidden.dtype() == f32 && state.cell.dtype() == f32 &&
           weights.w_hh.dtype() == f32 && state.hidden.sizes() == state.cell.sizes() &&
           state.hidden.size(1) == weights.w_hh.size(1) && product.size(2) == weights.w_hh.size(0);
  }
};

// Rows of all steps one after the other, each as many as there are sequences that long.
class Packed final : public Sequence {
 public:
  Packed(std::string_view op, const Tensor& sizes) {
    if (sizes.dim() != 1 || sizes.dtype() != DType::Int64 || sizes.is_meta()) {
      fail(ErrorKind::Runtime, op, "batch_sizes should be a 1-D int64 tensor on the CPU, got ",
           sizes.dtype(), " of shape ", sizes.sizes());
    }
    const Tensor dense = contiguous(sizes);
    const auto* values = dense.data_ptr<int64_t>();
    sizes_.assign(values, values + dense.numel());
    for (size_t i = 0; i < sizes_.size(); ++i) {
      if (sizes_[i] <= 0 || (i > 0 && sizes_[i] > sizes_[i - 1])) {
        fail(ErrorKind::Runtime, op, "batch_sizes should be positive and not rise, got ",
             IntArrayRef(sizes_.data(), sizes_.size()));
      }
      total_ += sizes_[i];
    }
  }

  void check(std::string_view op, const Tensor& data) const {
    if (sizes_.empty() || data.dim() != 2 || data.sizes()[0] != total_) {
      fail(ErrorKind::Runtime, op, "expected packed data of shape (", total_,
           ", features) with at least one step, got ", data.sizes());
    }
  }
  int64_t batch() const { return sizes_[0]; }

  Tensor run(const Network& network, const Tensor& input, const Weights& weights, bool reversed,
             State* state) const override {
    const Tensor product = input_product(network.kind, input, weights);
    const TensorList products =
        split_with_sizes(product, IntArrayRef(sizes_.data(), sizes_.size()), 0);
    return reversed ? backwards(network, products, weights, state)
                    : forwards(network, products, weights, state);
  }

 private:
  static State rows(const State& state, int64_t first, int64_t count) {
    return {narrow(state.hidden, 0, first, count),
            state.cell.defined() ? narrow(state.cell, 0, first, count) : Tensor()};
  }
  static State join(const std::vector<State>& parts) {
    if (parts.size() == 1) {
      return parts[0];
    }
    TensorList hidden;
    TensorList cell;
    for (const State& part : parts) {
      hidden.push_back(part.hidden);
      cell.push_back(part.cell);
    }
    return {cat(hidden, 0), cell[0].defined() ? cat(cell, 0) : Tensor()};
  }

  // Sequences end one by one, the last ones first.
  Tensor forwards(const Network& network, const TensorList& products, const Weights& weights,
                  State* state) const {
    TensorList outputs;
    std::vector<State> ended;
    State now = *state;
    for (size_t i = 0; i < products.size(); ++i) {
      const int64_t before = i == 0 ? sizes_[0] : sizes_[i - 1];
      if (sizes_[i] < before) {
        ended.insert(ended.begin(), rows(now, sizes_[i], before - sizes_[i]));
        now = rows(now, 0, sizes_[i]);
      }
      now = step(network.kind, products[i], now, weights);
      outputs.push_back(now.hidden);
    }
    ended.insert(ended.begin(), now);
    *state = join(ended);
    return cat(outputs, 0);
  }

  // From the last step on, sequences join.
  Tensor backwards(const Network& network, const TensorList& products, const Weights& weights,
                   State* state) const {
    TensorList outputs(products.size());
    const State first = *state;
    State now = rows(first, 0, sizes_.back());
    for (size_t i = products.size(); i-- > 0;) {
      const int64_t before = i + 1 < sizes_.size() ? sizes_[i + 1] : sizes_.back();
      if (sizes_[i] > before) {
        now = join({now, rows(first, before, sizes_[i] - before)});
      }
      now = step(network.kind, products[i], now, weights);
      outputs[i] = now.hidden;
    }
    *state = now;
    return cat(outputs, 0);
  }

  std::vector<int64_t> sizes_;
  int64_t total_ = 0;
};

void check_batch(const Network& network, const std::vector<State>& states, int64_t batch) {
  const int64_t own = states[0].hidden.sizes()[0];
  if (own != batch) {
    fail(ErrorKind::Runtime, network.op, "Expected hidden states of batch size ", batch, ", got ",
         own, ": the size of tensor a must match the size of tensor b");
  }
}

Result run_layers(const Network& network, const Sequence& sequence, Tensor input,
                  std::vector<State> states, const std::vector<Weights>& weights) {
  size_t at = 0;
  for (int64_t layer = 0; layer < network.num_layers; ++layer) {
    TensorList outputs;
    for (int64_t direction = 0; direction < network.directions(); ++direction) {
      outputs.push_back(sequence.run(network, input, weights[at], direction == 1, &states[at]));
      ++at;
    }
    input = outputs.size() == 1 ? outputs[0] : cat(outputs, -1);
    if (network.dropout != 0 && network.train && layer + 1 < network.num_layers) {
      input = dropout(input, network.dropout, true);
    }
  }
  TensorList hidden;
  TensorList cell;
  for (const State& state : states) {
    hidden.push_back(state.hidden);
    cell.push_back(state.cell);
  }
  return {input, stack(hidden, 0), cell[0].defined() ? stack(cell, 0) : Tensor()};
}

Result run_padded(const Network& network, const Tensor& input, const TensorList& hx,
                  const TensorList& params, bool batch_first) {
  if (input.dim() != 3) {
    fail(ErrorKind::Runtime, network.op, "expected input of 3 dimensions, got ", input.sizes());
  }
  const std::vector<Weights> weights = weights_of(network, params);
  std::vector<State> states = states_of(network, hx);
  const Tensor steps = batch_first ? transpose(input, 0, 1) : input;
  if (steps.sizes()[0] == 0) {
    fail(ErrorKind::Runtime, network.op,
         "Expected sequence length to be larger than 0 in RNN, got ", input.sizes());
  }
  check_batch(network, states, steps.sizes()[1]);
  Result made = run_layers(network, Padded(), steps, std::move(states), weights);
  if (batch_first) {
    made.output =
        network.kind == Cell::Lstm ? transpose(made.output, 0, 1) : _recurrent_turned(made.output);
  }
  return made;
}

Result run_packed(const Network& network, const Tensor& data, const Tensor& batch_sizes,
                  const TensorList& hx, const TensorList& params) {
  const Packed sequence(network.op, batch_sizes);
  sequence.check(network.op, data);
  const std::vector<Weights> weights = weights_of(network, params);
  std::vector<State> states = states_of(network, hx);
  check_batch(network, states, sequence.batch());
  return run_layers(network, sequence, data, std::move(states), weights);
}

template <Cell kKind>
constexpr std::string_view kName = kKind == Cell::Tanh   ? "rnn_tanh"
                                   : kKind == Cell::Relu ? "rnn_relu"
                                                         : "gru";

template <Cell kKind>
std::tuple<Tensor, Tensor> plain_input(const Tensor& input, const Tensor& hx,
                                       const TensorList& params, bool has_biases,
                                       int64_t num_layers, double dropout, bool train,
                                       bool bidirectional, bool batch_first) {
  const Network network{kName<kKind>, kKind, has_biases, num_layers, dropout, train, bidirectional};
  Result made = run_padded(network, input, {hx}, params, batch_first);
  return {made.output, made.hidden};
}

template <Cell kKind>
std::tuple<Tensor, Tensor> plain_data(const Tensor& data, const Tensor& batch_sizes,
                                      const Tensor& hx, const TensorList& params, bool has_biases,
                                      int64_t num_layers, double dropout, bool train,
                                      bool bidirectional) {
  const Network network{kName<kKind>, kKind, has_biases, num_layers, dropout, train, bidirectional};
  Result made = run_packed(network, data, batch_sizes, {hx}, params);
  return {made.output, made.hidden};
}

bool projects(const TensorList& hx) {
  return hx.size() == 2 && hx[0].dim() == 3 && hx[1].dim() == 3 &&
         hx[0].sizes()[2] != hx[1].sizes()[2];
}

std::tuple<Tensor, Tensor, Tensor> lstm_input(const Tensor& input, const TensorList& hx,
                                              const TensorList& params, bool has_biases,
                                              int64_t num_layers, double dropout, bool train,
                                              bool bidirectional, bool batch_first) {
  const Network network{"lstm",  Cell::Lstm, has_biases,    num_layers,
                        dropout, train,      bidirectional, projects(hx)};
  Result made = run_padded(network, input, hx, params, batch_first);
  return {made.output, made.hidden, made.cell};
}

std::tuple<Tensor, Tensor, Tensor> lstm_data(const Tensor& data, const Tensor& batch_sizes,
                                             const TensorList& hx, const TensorList& params,
                                             bool has_biases, int64_t num_layers, double dropout,
                                             bool train, bool bidirectional) {
  const Network network{"lstm",  Cell::Lstm, has_biases,    num_layers,
                        dropout, train,      bidirectional, projects(hx)};
  Result made = run_packed(network, data, batch_sizes, hx, params);
  return {made.output, made.hidden, made.cell};
}

}  // namespace

RUSHLIGHT_OPERATORS(recurrent) {
  // Nodes have the names that they have in PyTorch.
  op("_recurrent_turned(Tensor self) -> Tensor", kInternal)
      .doc("(T, B, features) as (B, T, features).")
      .composition([](const Tensor& self) -> Tensor { return transpose(self, 0, 1); })
      .node("TransposeBackward1");
  op("rnn_tanh.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, "
     "int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)",
     kFunction)
      .doc("Layers of tanh cells over packed sequences: their outputs and the final states.")
      .composition(plain_data<Cell::Tanh>);
  op("rnn_tanh.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, "
     "float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
     kFunction)
      .doc("The same over (T, B, features), or (B, T, features) with batch_first.")
      .composition(plain_input<Cell::Tanh>);
  op("rnn_relu.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, "
     "int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)",
     kFunction)
      .doc("Layers of relu cells over packed sequences: their outputs and the final states.")
      .composition(plain_data<Cell::Relu>);
  op("rnn_relu.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, "
     "float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
     kFunction)
      .doc("The same over (T, B, features), or (B, T, features) with batch_first.")
      .composition(plain_input<Cell::Relu>);
  op("gru.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, "
     "int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)",
     kFunction)
      .doc("Layers of gated recurrent units over packed sequences.")
      .composition(plain_data<Cell::Gru>);
  op("gru.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, "
     "float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
     kFunction)
      .doc("The same over (T, B, features), or (B, T, features) with batch_first.")
      .composition(plain_input<Cell::Gru>);
  op("lstm.data(Tensor data, Tensor batch_sizes, Tensor[] hx, Tensor[] params, bool has_biases, "
     "int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor, Tensor)",
     kFunction)
      .doc(
          "Layers of long short-term memory over packed sequences: outputs and final h and c. "
          "Where h is narrower than c, each layer has a projection.")
      .composition(lstm_data);
  op("lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, "
     "float dropout, bool train, bool bidirectional, bool batch_first) "
     "-> (Tensor, Tensor, Tensor)",
     kFunction)
      .doc("The same over (T, B, features), or (B, T, features) with batch_first.")
      .composition(lstm_input);
}

}  // namespace rushlight
