#include <rushlight/generated/functions.h>
#include <rushlight/nn/init.h>
#include <rushlight/nn/recurrent.h>

#include <cmath>

#include "nn/text.h"

namespace rushlight::nn {
namespace {

void fill_uniform(const Module& module, int64_t hidden_size) {
  const double bound = hidden_size > 0 ? 1 / std::sqrt(static_cast<double>(hidden_size)) : 0;
  for (const Tensor& weight : module.parameters()) {
    init::uniform_(weight, -bound, bound);
  }
}

void check_sizes(const char* layer, int64_t input_size, int64_t hidden_size) {
  if (input_size < 0 || hidden_size <= 0) {
    fail(ErrorKind::Value, layer,
         "hidden_size must be greater than zero and input_size not "
         "negative, got ",
         hidden_size, " and ", input_size);
  }
}

void check_nonlinearity(const char* layer, const std::string& name) {
  if (name != "tanh" && name != "relu") {
    fail(ErrorKind::Value, layer, "Unknown nonlinearity '", name.c_str(),
         "'. Select from 'tanh' or 'relu'.");
  }
}

TensorList tensor_list(const std::vector<Tensor>& tensors) {
  TensorList made;
  for (const Tensor& tensor : tensors) {
    made.push_back(tensor);
  }
  return made;
}

}  // namespace

RecurrentImpl::RecurrentImpl(const char* name, const Settings& settings)
    : Module(name), settings_(settings) {
  check_sizes(name, settings.input_size, settings.hidden_size);
  if (settings.num_layers <= 0) {
    fail(ErrorKind::Value, name, "num_layers must be greater than zero, got ", settings.num_layers);
  }
  if (settings.dropout < 0 || settings.dropout > 1) {
    fail(ErrorKind::Value, name, "dropout should be a number in range [0, 1], got ",
         settings.dropout);
  }
  if (settings.proj_size < 0 || settings.proj_size >= settings.hidden_size) {
    fail(ErrorKind::Value, name, "proj_size has to be smaller than hidden_size, got ",
         settings.proj_size);
  }
  const int64_t rows = settings.gates * settings.hidden_size;
  const int64_t out = settings.proj_size != 0 ? settings.proj_size : settings.hidden_size;
  const int64_t directions = settings.bidirectional ? 2 : 1;
  for (int64_t layer = 0; layer < settings.num_layers; ++layer) {
    for (int64_t direction = 0; direction < directions; ++direction) {
      const std::string suffix = cat("_l", layer, direction == 1 ? "_reverse" : "");
      const int64_t in = layer == 0 ? settings.input_size : out * directions;
      register_parameter("weight_ih" + suffix, empty({rows, in}));
      register_parameter("weight_hh" + suffix, empty({rows, out}));
      if (settings.bias) {
        register_parameter("bias_ih" + suffix, empty({rows}));
        register_parameter("bias_hh" + suffix, empty({rows}));
      }
      if (settings.proj_size != 0) {
        register_parameter("weight_hr" + suffix, empty({out, settings.hidden_size}));
      }
    }
  }
  reset_parameters();
}

void RecurrentImpl::reset_parameters() {
  fill_uniform(*this, settings_.hidden_size);
}

Tensor RecurrentImpl::batched(const Tensor& input) const {
  if (input.dim() != 2 && input.dim() != 3) {
    fail(ErrorKind::Value, name(), "Expected input to be 2D or 3D, got ", input.dim(), "D instead");
  }
  return input.dim() == 2 ? unsqueeze(input, settings_.batch_first ? 0 : 1) : input;
}

Tensor RecurrentImpl::zero_state(const Tensor& input, int64_t size) const {
  const int64_t directions = settings_.bidirectional ? 2 : 1;
  const int64_t batch = input.size(settings_.batch_first ? 0 : 1);
  return zeros({settings_.num_layers * directions, batch, size}, input.options());
}

std::string RecurrentImpl::extra_repr() const {
  std::string text = cat(settings_.input_size, ", ", settings_.hidden_size);
  if (settings_.proj_size != 0) {
    text += cat(", proj_size=", settings_.proj_size);
  }
  if (settings_.num_layers != 1) {
    text += cat(", num_layers=", settings_.num_layers);
  }
  text += settings_.bias ? "" : ", bias=False";
  text += settings_.batch_first ? ", batch_first=True" : "";
  if (settings_.dropout != 0) {
    text += cat(", dropout=", python_text(settings_.dropout));
  }
  text += settings_.bidirectional ? ", bidirectional=True" : "";
  return text;
}

RNNImpl::RNNImpl(const RNNOptions& given)
    : RecurrentImpl("RNN",
                    {1, given.input_size(), given.hidden_size(), given.num_layers(), given.bias(),
                     given.batch_first(), given.dropout(), given.bidirectional(), 0}),
      options(given) {
  check_nonlinearity("RNN", given.nonlinearity());
}

std::tuple<Tensor, Tensor> RNNImpl::forward(const Tensor& input, const Tensor& hx) {
  const bool single = input.dim() == 2;
  const Tensor x = batched(input);
  Tensor state = !hx.defined() ? zero_state(x, settings_.hidden_size)
                 : single      ? unsqueeze(hx, 1)
                               : hx;
  using Run = std::tuple<Tensor, Tensor> (*)(const Tensor&, const Tensor&, const TensorList&, bool,
                                             int64_t, double, bool, bool, bool);
  const Run run = options.nonlinearity() == "tanh" ? Run(rnn_tanh) : Run(rnn_relu);
  auto [output, hidden] =
      run(x, state, tensor_list(weights()), options.bias(), options.num_layers(), options.dropout(),
          is_training(), options.bidirectional(), options.batch_first());
  if (single) {
    return {squeeze(output, options.batch_first() ? 0 : 1), squeeze(hidden, 1)};
  }
  return {output, hidden};
}

GRUImpl::GRUImpl(const GRUOptions& given)
    : RecurrentImpl("GRU",
                    {3, given.input_size(), given.hidden_size(), given.num_layers(), given.bias(),
                     given.batch_first(), given.dropout(), given.bidirectional(), 0}),
      options(given) {}

std::tuple<Tensor, Tensor> GRUImpl::forward(const Tensor& input, const Tensor& hx) {
  const bool single = input.dim() == 2;
  const Tensor x = batched(input);
  Tensor state = !hx.defined() ? zero_state(x, settings_.hidden_size)
                 : single      ? unsqueeze(hx, 1)
                               : hx;
  auto [output, hidden] =
      gru(x, state, tensor_list(weights()), options.bias(), options.num_layers(), options.dropout(),
          is_training(), options.bidirectional(), options.batch_first());
  if (single) {
    return {squeeze(output, options.batch_first() ? 0 : 1), squeeze(hidden, 1)};
  }
  return {output, hidden};
}

LSTMImpl::LSTMImpl(const LSTMOptions& given)
    : RecurrentImpl(
          "LSTM", {4, given.input_size(), given.hidden_size(), given.num_layers(), given.bias(),
                   given.batch_first(), given.dropout(), given.bidirectional(), given.proj_size()}),
      options(given) {}

std::tuple<Tensor, LSTMImpl::State> LSTMImpl::forward(const Tensor& input,
                                                      const std::optional<State>& hx) {
  const bool single = input.dim() == 2;
  const Tensor x = batched(input);
  TensorList state;
  if (hx) {
    state.push_back(single ? unsqueeze(std::get<0>(*hx), 1) : std::get<0>(*hx));
    state.push_back(single ? unsqueeze(std::get<1>(*hx), 1) : std::get<1>(*hx));
  } else {
    const int64_t projected = options.proj_size();
    state.push_back(zero_state(x, projected != 0 ? projected : settings_.hidden_size));
    state.push_back(zero_state(x, settings_.hidden_size));
  }
  auto [output, hidden, cell] =
      lstm(x, state, tensor_list(weights()), options.bias(), options.num_layers(),
           options.dropout(), is_training(), options.bidirectional(), options.batch_first());
  if (single) {
    return {squeeze(output, options.batch_first() ? 0 : 1), {squeeze(hidden, 1), squeeze(cell, 1)}};
  }
  return {output, {hidden, cell}};
}

CellImpl::CellImpl(const char* name, int64_t gates, int64_t input_size, int64_t hidden_size,
                   bool bias)
    : Module(name) {
  check_sizes(name, input_size, hidden_size);
  const int64_t rows = gates * hidden_size;
  weight_ih = register_parameter("weight_ih", empty({rows, input_size}));
  weight_hh = register_parameter("weight_hh", empty({rows, hidden_size}));
  bias_ih = register_parameter("bias_ih", bias ? empty({rows}) : Tensor());
  bias_hh = register_parameter("bias_hh", bias ? empty({rows}) : Tensor());
  reset_parameters();
}

void CellImpl::reset_parameters() {
  fill_uniform(*this, weight_hh.size(1));
}

Tensor CellImpl::zero_state(const Tensor& input) const {
  return zeros({input.size(0), weight_hh.size(1)}, input.options());
}

std::string CellImpl::extra_repr() const {
  return cat(weight_ih.size(1), ", ", weight_hh.size(1), bias_ih.defined() ? "" : ", bias=False");
}

RNNCellImpl::RNNCellImpl(const RNNCellOptions& given)
    : CellImpl("RNNCell", 1, given.input_size(), given.hidden_size(), given.bias()),
      options(given) {
  check_nonlinearity("RNNCell", given.nonlinearity());
}

std::string RNNCellImpl::extra_repr() const {
  const std::string text = CellImpl::extra_repr();
  return options.nonlinearity() == "tanh"
             ? text
             : cat(text.c_str(), ", nonlinearity=", options.nonlinearity().c_str());
}

Tensor RNNCellImpl::forward(const Tensor& input, const Tensor& hx) {
  const bool single = input.dim() == 1;
  const Tensor x = single ? unsqueeze(input, 0) : input;
  const Tensor state = !hx.defined() ? zero_state(x) : single ? unsqueeze(hx, 0) : hx;
  const auto run = options.nonlinearity() == "tanh" ? rnn_tanh_cell : rnn_relu_cell;
  const Tensor made = run(x, state, weight_ih, weight_hh, bias_ih, bias_hh);
  return single ? squeeze(made, 0) : made;
}

GRUCellImpl::GRUCellImpl(const GRUCellOptions& given)
    : CellImpl("GRUCell", 3, given.input_size(), given.hidden_size(), given.bias()),
      options(given) {}

Tensor GRUCellImpl::forward(const Tensor& input, const Tensor& hx) {
  const bool single = input.dim() == 1;
  const Tensor x = single ? unsqueeze(input, 0) : input;
  const Tensor state = !hx.defined() ? zero_state(x) : single ? unsqueeze(hx, 0) : hx;
  const Tensor made = gru_cell(x, state, weight_ih, weight_hh, bias_ih, bias_hh);
  return single ? squeeze(made, 0) : made;
}

LSTMCellImpl::LSTMCellImpl(const LSTMCellOptions& given)
    : CellImpl("LSTMCell", 4, given.input_size(), given.hidden_size(), given.bias()),
      options(given) {}

LSTMCellImpl::State LSTMCellImpl::forward(const Tensor& input, const std::optional<State>& hx) {
  const bool single = input.dim() == 1;
  const Tensor x = single ? unsqueeze(input, 0) : input;
  TensorList state;
  if (hx) {
    state.push_back(single ? unsqueeze(std::get<0>(*hx), 0) : std::get<0>(*hx));
    state.push_back(single ? unsqueeze(std::get<1>(*hx), 0) : std::get<1>(*hx));
  } else {
    state.push_back(zero_state(x));
    state.push_back(zero_state(x));
  }
  auto [hidden, cell] = lstm_cell(x, state, weight_ih, weight_hh, bias_ih, bias_hh);
  if (single) {
    return {squeeze(hidden, 0), squeeze(cell, 0)};
  }
  return {hidden, cell};
}

}  // namespace rushlight::nn
