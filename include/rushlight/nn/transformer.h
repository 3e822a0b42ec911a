// Transformers (Vaswani et al., 2017). Shapes are (L, B, E), or (B, L, E) with batch_first. Masks
// are those of MultiheadAttention.
#pragma once

#include <rushlight/nn/attention.h>
#include <rushlight/nn/container.h>

#include <functional>

namespace rushlight::nn {

// relu by default; any function of a tensor may stand there.
class RUSHLIGHT_API TransformerActivation {
 public:
  TransformerActivation();
  // "relu" or "gelu"; Error(Runtime) for another name.
  TransformerActivation(const char* name);
  TransformerActivation(std::function<Tensor(const Tensor&)> function)
      : function_(std::move(function)) {}
  Tensor operator()(const Tensor& x) const { return function_(x); }

 private:
  std::function<Tensor(const Tensor&)> function_;
};

// Options of an encoder's and a decoder's layer are the same.
struct TransformerLayerOptions {
  TransformerLayerOptions(int64_t d_model, int64_t nhead) : d_model_(d_model), nhead_(nhead) {}
  RUSHLIGHT_ARG(int64_t, d_model);
  RUSHLIGHT_ARG(int64_t, nhead);
  RUSHLIGHT_ARG(int64_t, dim_feedforward) = 2048;
  RUSHLIGHT_ARG(double, dropout) = 0.1;
  RUSHLIGHT_ARG(TransformerActivation, activation) = "relu";
  RUSHLIGHT_ARG(double, layer_norm_eps) = 1e-5;
  RUSHLIGHT_ARG(bool, batch_first) = false;
  RUSHLIGHT_ARG(bool, norm_first) = false;
  RUSHLIGHT_ARG(bool, bias) = true;
};
using TransformerEncoderLayerOptions = TransformerLayerOptions;
using TransformerDecoderLayerOptions = TransformerLayerOptions;

// Self-attention and a feed-forward network, each with a residual and a normalisation.
class RUSHLIGHT_API TransformerEncoderLayerImpl : public Module {
 public:
  explicit TransformerEncoderLayerImpl(const TransformerEncoderLayerOptions& options);
  TransformerEncoderLayerImpl(int64_t d_model, int64_t nhead)
      : TransformerEncoderLayerImpl(TransformerEncoderLayerOptions(d_model, nhead)) {}
  Tensor forward(const Tensor& src, const Tensor& src_mask = {},
                 const Tensor& src_key_padding_mask = {}, bool is_causal = false);

  TransformerEncoderLayerOptions options;
  MultiheadAttention self_attn{nullptr};
  Linear linear1{nullptr}, linear2{nullptr};
  LayerNorm norm1{nullptr}, norm2{nullptr};
  Dropout dropout{nullptr}, dropout1{nullptr}, dropout2{nullptr};
};
RUSHLIGHT_MODULE(TransformerEncoderLayer);

// Self-attention, attention over the encoder's output, and a feed-forward network.
class RUSHLIGHT_API TransformerDecoderLayerImpl : public Module {
 public:
  explicit TransformerDecoderLayerImpl(const TransformerDecoderLayerOptions& options);
  TransformerDecoderLayerImpl(int64_t d_model, int64_t nhead)
      : TransformerDecoderLayerImpl(TransformerDecoderLayerOptions(d_model, nhead)) {}
  Tensor forward(const Tensor& tgt, const Tensor& memory, const Tensor& tgt_mask = {},
                 const Tensor& memory_mask = {}, const Tensor& tgt_key_padding_mask = {},
                 const Tensor& memory_key_padding_mask = {}, bool tgt_is_causal = false,
                 bool memory_is_causal = false);

  TransformerDecoderLayerOptions options;
  MultiheadAttention self_attn{nullptr}, multihead_attn{nullptr};
  Linear linear1{nullptr}, linear2{nullptr};
  LayerNorm norm1{nullptr}, norm2{nullptr}, norm3{nullptr};
  Dropout dropout{nullptr}, dropout1{nullptr}, dropout2{nullptr}, dropout3{nullptr};
};
RUSHLIGHT_MODULE(TransformerDecoderLayer);

struct TransformerEncoderOptions {
  TransformerEncoderOptions(TransformerEncoderLayer encoder_layer, int64_t num_layers)
      : encoder_layer_(std::move(encoder_layer)), num_layers_(num_layers) {}
  RUSHLIGHT_ARG(TransformerEncoderLayer, encoder_layer);
  RUSHLIGHT_ARG(int64_t, num_layers);
  RUSHLIGHT_ARG(LayerNorm, norm) = nullptr;
};

// `num_layers` layers with the initial values of `encoder_layer`, and a normalisation at the end
// where one is given. An is_causal that is not given is found from the mask.
class RUSHLIGHT_API TransformerEncoderImpl : public Module {
 public:
  explicit TransformerEncoderImpl(const TransformerEncoderOptions& options);
  TransformerEncoderImpl(TransformerEncoderLayer encoder_layer, int64_t num_layers,
                         LayerNorm norm = nullptr)
      : TransformerEncoderImpl(
            TransformerEncoderOptions(std::move(encoder_layer), num_layers).norm(std::move(norm))) {
  }
  Tensor forward(const Tensor& src, const Tensor& mask = {},
                 const Tensor& src_key_padding_mask = {},
                 std::optional<bool> is_causal = std::nullopt);
  ModuleList layers;
  LayerNorm norm{nullptr};
};
RUSHLIGHT_MODULE(TransformerEncoder);

struct TransformerDecoderOptions {
  TransformerDecoderOptions(TransformerDecoderLayer decoder_layer, int64_t num_layers)
      : decoder_layer_(std::move(decoder_layer)), num_layers_(num_layers) {}
  RUSHLIGHT_ARG(TransformerDecoderLayer, decoder_layer);
  RUSHLIGHT_ARG(int64_t, num_layers);
  RUSHLIGHT_ARG(LayerNorm, norm) = nullptr;
};

class RUSHLIGHT_API TransformerDecoderImpl : public Module {
 public:
  explicit TransformerDecoderImpl(const TransformerDecoderOptions& options);
  TransformerDecoderImpl(TransformerDecoderLayer decoder_layer, int64_t num_layers,
                         LayerNorm norm = nullptr)
      : TransformerDecoderImpl(
            TransformerDecoderOptions(std::move(decoder_layer), num_layers).norm(std::move(norm))) {
  }
  Tensor forward(const Tensor& tgt, const Tensor& memory, const Tensor& tgt_mask = {},
                 const Tensor& memory_mask = {}, const Tensor& tgt_key_padding_mask = {},
                 const Tensor& memory_key_padding_mask = {},
                 std::optional<bool> tgt_is_causal = std::nullopt, bool memory_is_causal = false);
  ModuleList layers;
  LayerNorm norm{nullptr};
};
RUSHLIGHT_MODULE(TransformerDecoder);

struct TransformerOptions {
  RUSHLIGHT_ARG(int64_t, d_model) = 512;
  RUSHLIGHT_ARG(int64_t, nhead) = 8;
  RUSHLIGHT_ARG(int64_t, num_encoder_layers) = 6;
  RUSHLIGHT_ARG(int64_t, num_decoder_layers) = 6;
  RUSHLIGHT_ARG(int64_t, dim_feedforward) = 2048;
  RUSHLIGHT_ARG(double, dropout) = 0.1;
  RUSHLIGHT_ARG(TransformerActivation, activation) = "relu";
  RUSHLIGHT_ARG(TransformerEncoder, custom_encoder) = nullptr;
  RUSHLIGHT_ARG(TransformerDecoder, custom_decoder) = nullptr;
  RUSHLIGHT_ARG(double, layer_norm_eps) = 1e-5;
  RUSHLIGHT_ARG(bool, batch_first) = false;
  RUSHLIGHT_ARG(bool, norm_first) = false;
  RUSHLIGHT_ARG(bool, bias) = true;
};

// An encoder and a decoder.
class RUSHLIGHT_API TransformerImpl : public Module {
 public:
  explicit TransformerImpl(TransformerOptions options = {});
  // Error(Runtime) where batches differ or a width is not d_model.
  Tensor forward(const Tensor& src, const Tensor& tgt, const Tensor& src_mask = {},
                 const Tensor& tgt_mask = {}, const Tensor& memory_mask = {},
                 const Tensor& src_key_padding_mask = {}, const Tensor& tgt_key_padding_mask = {},
                 const Tensor& memory_key_padding_mask = {},
                 std::optional<bool> src_is_causal = std::nullopt,
                 std::optional<bool> tgt_is_causal = std::nullopt, bool memory_is_causal = false);
  // The causal mask (sz, sz): -inf above the diagonal, 0 elsewhere.
  static Tensor generate_square_subsequent_mask(int64_t sz);

  TransformerOptions options;
  TransformerEncoder encoder{nullptr};
  TransformerDecoder decoder{nullptr};
};
RUSHLIGHT_MODULE(Transformer);

}  // namespace rushlight::nn
