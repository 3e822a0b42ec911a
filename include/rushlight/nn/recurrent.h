// Recurrent networks and their cells. Constructors draw the same random numbers as Python's.
#pragma once

#include <rushlight/nn/module.h>

#include <optional>
#include <tuple>

namespace rushlight::nn {

struct RNNOptions {
  RNNOptions(int64_t input_size, int64_t hidden_size)
      : input_size_(input_size), hidden_size_(hidden_size) {}
  RUSHLIGHT_ARG(int64_t, input_size);
  RUSHLIGHT_ARG(int64_t, hidden_size);
  RUSHLIGHT_ARG(int64_t, num_layers) = 1;
  RUSHLIGHT_ARG(std::string, nonlinearity) = "tanh";
  RUSHLIGHT_ARG(bool, bias) = true;
  RUSHLIGHT_ARG(bool, batch_first) = false;
  RUSHLIGHT_ARG(double, dropout) = 0.0;
  RUSHLIGHT_ARG(bool, bidirectional) = false;
};

struct GRUOptions {
  GRUOptions(int64_t input_size, int64_t hidden_size)
      : input_size_(input_size), hidden_size_(hidden_size) {}
  RUSHLIGHT_ARG(int64_t, input_size);
  RUSHLIGHT_ARG(int64_t, hidden_size);
  RUSHLIGHT_ARG(int64_t, num_layers) = 1;
  RUSHLIGHT_ARG(bool, bias) = true;
  RUSHLIGHT_ARG(bool, batch_first) = false;
  RUSHLIGHT_ARG(double, dropout) = 0.0;
  RUSHLIGHT_ARG(bool, bidirectional) = false;
};

struct LSTMOptions {
  LSTMOptions(int64_t input_size, int64_t hidden_size)
      : input_size_(input_size), hidden_size_(hidden_size) {}
  RUSHLIGHT_ARG(int64_t, input_size);
  RUSHLIGHT_ARG(int64_t, hidden_size);
  RUSHLIGHT_ARG(int64_t, num_layers) = 1;
  RUSHLIGHT_ARG(bool, bias) = true;
  RUSHLIGHT_ARG(bool, batch_first) = false;
  RUSHLIGHT_ARG(double, dropout) = 0.0;
  RUSHLIGHT_ARG(bool, bidirectional) = false;
  RUSHLIGHT_ARG(int64_t, proj_size) = 0;
};

// The weights of all layers and directions, under Python's names: weight_ih_l0, weight_hh_l0,
// bias_ih_l0, bias_hh_l0, weight_hr_l0, then those of "_l0_reverse", "_l1" and so on.
class RUSHLIGHT_API RecurrentImpl : public Module {
 public:
  void reset_parameters();
  std::string extra_repr() const override;

 protected:
  struct Settings {
    int64_t gates;
    int64_t input_size;
    int64_t hidden_size;
    int64_t num_layers;
    bool bias;
    bool batch_first;
    double dropout;
    bool bidirectional;
    int64_t proj_size;
  };
  RecurrentImpl(const char* name, const Settings& settings);
  // Zeros for an input (T, B, features), or without a batch.
  Tensor zero_state(const Tensor& input, int64_t size) const;
  // Puts a batch of one where there is none.
  Tensor batched(const Tensor& input) const;
  std::vector<Tensor> weights() const { return parameters(); }

  Settings settings_;
};

// h' = tanh(w_ih x + b_ih + w_hh h + b_hh), or relu, layer upon layer: (T, B, features), (B, T,
// features) with batch_first, or (T, features), to the outputs and the final state.
class RUSHLIGHT_API RNNImpl : public RecurrentImpl {
 public:
  explicit RNNImpl(const RNNOptions& options);
  RNNImpl(int64_t input_size, int64_t hidden_size) : RNNImpl(RNNOptions(input_size, hidden_size)) {}
  std::tuple<Tensor, Tensor> forward(const Tensor& input, const Tensor& hx = {});
  RNNOptions options;
};
RUSHLIGHT_MODULE(RNN);

// Gated recurrent units.
class RUSHLIGHT_API GRUImpl : public RecurrentImpl {
 public:
  explicit GRUImpl(const GRUOptions& options);
  GRUImpl(int64_t input_size, int64_t hidden_size) : GRUImpl(GRUOptions(input_size, hidden_size)) {}
  std::tuple<Tensor, Tensor> forward(const Tensor& input, const Tensor& hx = {});
  GRUOptions options;
};
RUSHLIGHT_MODULE(GRU);

// Long short-term memory, whose state is a pair (h, c).
class RUSHLIGHT_API LSTMImpl : public RecurrentImpl {
 public:
  using State = std::tuple<Tensor, Tensor>;
  explicit LSTMImpl(const LSTMOptions& options);
  LSTMImpl(int64_t input_size, int64_t hidden_size)
      : LSTMImpl(LSTMOptions(input_size, hidden_size)) {}
  std::tuple<Tensor, State> forward(const Tensor& input,
                                    const std::optional<State>& hx = std::nullopt);
  LSTMOptions options;
};
RUSHLIGHT_MODULE(LSTM);

struct RNNCellOptions {
  RNNCellOptions(int64_t input_size, int64_t hidden_size)
      : input_size_(input_size), hidden_size_(hidden_size) {}
  RUSHLIGHT_ARG(int64_t, input_size);
  RUSHLIGHT_ARG(int64_t, hidden_size);
  RUSHLIGHT_ARG(bool, bias) = true;
  RUSHLIGHT_ARG(std::string, nonlinearity) = "tanh";
};

struct GRUCellOptions {
  GRUCellOptions(int64_t input_size, int64_t hidden_size)
      : input_size_(input_size), hidden_size_(hidden_size) {}
  RUSHLIGHT_ARG(int64_t, input_size);
  RUSHLIGHT_ARG(int64_t, hidden_size);
  RUSHLIGHT_ARG(bool, bias) = true;
};

struct LSTMCellOptions {
  LSTMCellOptions(int64_t input_size, int64_t hidden_size)
      : input_size_(input_size), hidden_size_(hidden_size) {}
  RUSHLIGHT_ARG(int64_t, input_size);
  RUSHLIGHT_ARG(int64_t, hidden_size);
  RUSHLIGHT_ARG(bool, bias) = true;
};

// The weights of one step.
class RUSHLIGHT_API CellImpl : public Module {
 public:
  void reset_parameters();
  std::string extra_repr() const override;

  Tensor weight_ih;  // (gates * hidden_size, input_size)
  Tensor weight_hh;  // (gates * hidden_size, hidden_size)
  Tensor bias_ih;    // (gates * hidden_size), or undefined
  Tensor bias_hh;

 protected:
  CellImpl(const char* name, int64_t gates, int64_t input_size, int64_t hidden_size, bool bias);
  Tensor zero_state(const Tensor& input) const;
};

// One step: (B, features) or (features) and a state, zero where none is given, to the next state.
class RUSHLIGHT_API RNNCellImpl : public CellImpl {
 public:
  explicit RNNCellImpl(const RNNCellOptions& options);
  RNNCellImpl(int64_t input_size, int64_t hidden_size)
      : RNNCellImpl(RNNCellOptions(input_size, hidden_size)) {}
  Tensor forward(const Tensor& input, const Tensor& hx = {});
  std::string extra_repr() const override;
  RNNCellOptions options;
};
RUSHLIGHT_MODULE(RNNCell);

class RUSHLIGHT_API GRUCellImpl : public CellImpl {
 public:
  explicit GRUCellImpl(const GRUCellOptions& options);
  GRUCellImpl(int64_t input_size, int64_t hidden_size)
      : GRUCellImpl(GRUCellOptions(input_size, hidden_size)) {}
  Tensor forward(const Tensor& input, const Tensor& hx = {});
  GRUCellOptions options;
};
RUSHLIGHT_MODULE(GRUCell);

class RUSHLIGHT_API LSTMCellImpl : public CellImpl {
 public:
  using State = std::tuple<Tensor, Tensor>;
  explicit LSTMCellImpl(const LSTMCellOptions& options);
  LSTMCellImpl(int64_t input_size, int64_t hidden_size)
      : LSTMCellImpl(LSTMCellOptions(input_size, hidden_size)) {}
  State forward(const Tensor& input, const std::optional<State>& hx = std::nullopt);
  LSTMCellOptions options;
};
RUSHLIGHT_MODULE(LSTMCell);

}  // namespace rushlight::nn
