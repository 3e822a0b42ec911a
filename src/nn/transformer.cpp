#include <rushlight/autograd.h>
#include <rushlight/generated/functions.h>
#include <rushlight/generator.h>
#include <rushlight/nn/init.h>
#include <rushlight/nn/transformer.h>

#include <cstring>
#include <limits>

#include "nn/attention_mask.h"

namespace rushlight::nn {
namespace {

MultiheadAttention make_attention(const TransformerLayerOptions& options) {
  return MultiheadAttention(MultiheadAttentionOptions(options.d_model(), options.nhead())
                                .dropout(options.dropout())
                                .bias(options.bias())
                                .batch_first(options.batch_first()));
}

LayerNorm make_norm(int64_t width, double eps, bool bias) {
  return LayerNorm(LayerNormOptions({width}).eps(eps).bias(bias));
}

LayerNorm make_norm(const TransformerLayerOptions& options) {
  return make_norm(options.d_model(), options.layer_norm_eps(), options.bias());
}

Linear make_linear(int64_t in, int64_t out, bool bias) {
  return Linear(LinearOptions(in, out).bias(bias));
}

// A layer's own attention or that over the memory, without the weights.
Tensor attend(const MultiheadAttention& attention, const Tensor& x, const Tensor& memory,
              const Tensor& mask, const Tensor& padding, bool is_causal) {
  return std::get<0>(attention(x, memory, memory, padding, false, mask, true, is_causal));
}

template <typename Layer>
Tensor feed_forward(Layer& layer, const Tensor& x) {
  return layer.linear2(layer.dropout(layer.options.activation()(layer.linear1(x))));
}

// `count` layers that begin as `first` did. Nothing is drawn for copies.
template <typename Layer>
void append_copies(ModuleList& list, const Layer& first, int64_t count, const char* name) {
  if (!first) {
    fail(ErrorKind::Value, name, "expected a layer, got an empty holder");
  }
  if (count <= 0) {
    fail(ErrorKind::Value, name, "expected num_layers above 0, got ", count);
  }
  const std::vector<uint8_t> stream = default_generator().get_state();
  const NamedTensors state = first->state_dict();
  for (int64_t i = 0; i < count; ++i) {
    Layer copy(first->options);
    copy->load_state_dict(state);
    copy->train(first->is_training());
    list->push_back(copy);
  }
  default_generator().set_state(stream);
}

Tensor causal_mask(int64_t size, DType dtype) {
  constexpr double kHidden = -std::numeric_limits<double>::infinity();
  return triu(full({size, size}, Scalar(kHidden), TensorOptions(dtype)), 1);
}

// Whether the mask hides the future and nothing else; `given` answers where it is there.
bool is_causal_mask(const Tensor& mask, std::optional<bool> given, const Tensor& x,
                    bool batch_first) {
  if (given || !mask.defined()) {
    return given.value_or(false);
  }
  const int64_t length = x.size(x.dim() == 3 && batch_first ? 1 : 0);
  const Tensor causal = causal_mask(length, mask.dtype());
  return mask.sizes() == causal.sizes() && all(eq(mask, causal)).item<bool>();
}

}  // namespace

TransformerActivation::TransformerActivation() : TransformerActivation("relu") {}

TransformerActivation::TransformerActivation(const char* name) {
  if (std::strcmp(name, "relu") == 0) {
    function_ = [](const Tensor& x) { return relu(x); };
  } else if (std::strcmp(name, "gelu") == 0) {
    function_ = [](const Tensor& x) { return gelu(x); };
  } else {
    fail(ErrorKind::Runtime, "", "activation should be relu/gelu, not ", name);
  }
}

TransformerEncoderLayerImpl::TransformerEncoderLayerImpl(
    const TransformerEncoderLayerOptions& given)
    : Module("TransformerEncoderLayer"), options(given) {
  const int64_t width = options.d_model(), wide = options.dim_feedforward();
  self_attn = register_module("self_attn", make_attention(options));
  linear1 = register_module("linear1", make_linear(width, wide, options.bias()));
  dropout = register_module("dropout", Dropout(options.dropout()));
  linear2 = register_module("linear2", make_linear(wide, width, options.bias()));
  norm1 = register_module("norm1", make_norm(options));
  norm2 = register_module("norm2", make_norm(options));
  dropout1 = register_module("dropout1", Dropout(options.dropout()));
  dropout2 = register_module("dropout2", Dropout(options.dropout()));
}

Tensor TransformerEncoderLayerImpl::forward(const Tensor& src, const Tensor& src_mask,
                                            const Tensor& src_key_padding_mask, bool is_causal) {
  const Tensor mask = additive_mask(src_mask, "src_mask", src.dtype());
  const Tensor padding = additive_mask(src_key_padding_mask, "src_key_padding_mask", src.dtype());
  const auto own = [&](const Tensor& x) {
    return dropout1(attend(self_attn, x, x, mask, padding, is_causal));
  };
  const auto forward = [&](const Tensor& x) { return dropout2(feed_forward(*this, x)); };
  if (options.norm_first()) {
    const Tensor x = add(src, own(norm1(src)));
    return add(x, forward(norm2(x)));
  }
  const Tensor x = norm1(add(src, own(src)));
  return norm2(add(x, forward(x)));
}

TransformerDecoderLayerImpl::TransformerDecoderLayerImpl(
    const TransformerDecoderLayerOptions& given)
    : Module("TransformerDecoderLayer"), options(given) {
  const int64_t width = options.d_model(), wide = options.dim_feedforward();
  self_attn = register_module("self_attn", make_attention(options));
  multihead_attn = register_module("multihead_attn", make_attention(options));
  linear1 = register_module("linear1", make_linear(width, wide, options.bias()));
  dropout = register_module("dropout", Dropout(options.dropout()));
  linear2 = register_module("linear2", make_linear(wide, width, options.bias()));
  norm1 = register_module("norm1", make_norm(options));
  norm2 = register_module("norm2", make_norm(options));
  norm3 = register_module("norm3", make_norm(options));
  dropout1 = register_module("dropout1", Dropout(options.dropout()));
  dropout2 = register_module("dropout2", Dropout(options.dropout()));
  dropout3 = register_module("dropout3", Dropout(options.dropout()));
}

Tensor TransformerDecoderLayerImpl::forward(const Tensor& tgt, const Tensor& memory,
                                            const Tensor& tgt_mask, const Tensor& memory_mask,
                                            const Tensor& tgt_key_padding_mask,
                                            const Tensor& memory_key_padding_mask,
                                            bool tgt_is_causal, bool memory_is_causal) {
  const auto own = [&](const Tensor& x) {
    return dropout1(attend(self_attn, x, x, tgt_mask, tgt_key_padding_mask, tgt_is_causal));
  };
  const auto across = [&](const Tensor& x) {
    return dropout2(
        attend(multihead_attn, x, memory, memory_mask, memory_key_padding_mask, memory_is_causal));
  };
  const auto forward = [&](const Tensor& x) { return dropout3(feed_forward(*this, x)); };
  if (options.norm_first()) {
    Tensor x = add(tgt, own(norm1(tgt)));
    x = add(x, across(norm2(x)));
    return add(x, forward(norm3(x)));
  }
  Tensor x = norm1(add(tgt, own(tgt)));
  x = norm2(add(x, across(x)));
  return norm3(add(x, forward(x)));
}

TransformerEncoderImpl::TransformerEncoderImpl(const TransformerEncoderOptions& options)
    : Module("TransformerEncoder") {
  append_copies(layers, options.encoder_layer(), options.num_layers(), "TransformerEncoder");
  register_module("layers", layers);
  if (options.norm()) {
    norm = register_module("norm", options.norm());
  }
}

Tensor TransformerEncoderImpl::forward(const Tensor& src, const Tensor& given_mask,
                                       const Tensor& src_key_padding_mask,
                                       std::optional<bool> is_causal) {
  const Tensor mask = additive_mask(given_mask, "mask", src.dtype());
  const Tensor padding = additive_mask(src_key_padding_mask, "src_key_padding_mask", src.dtype());
  const bool batch_first = layers->at<TransformerEncoderLayerImpl>(0).options.batch_first();
  const bool causal = is_causal_mask(mask, is_causal, src, batch_first);
  Tensor x = src;
  for (size_t i = 0; i < layers->size(); ++i) {
    x = layers->at<TransformerEncoderLayerImpl>(i).forward(x, mask, padding, causal);
  }
  return norm ? norm(x) : x;
}

TransformerDecoderImpl::TransformerDecoderImpl(const TransformerDecoderOptions& options)
    : Module("TransformerDecoder") {
  append_copies(layers, options.decoder_layer(), options.num_layers(), "TransformerDecoder");
  register_module("layers", layers);
  if (options.norm()) {
    norm = register_module("norm", options.norm());
  }
}

Tensor TransformerDecoderImpl::forward(const Tensor& tgt, const Tensor& memory,
                                       const Tensor& tgt_mask, const Tensor& memory_mask,
                                       const Tensor& tgt_key_padding_mask,
                                       const Tensor& memory_key_padding_mask,
                                       std::optional<bool> tgt_is_causal, bool memory_is_causal) {
  const bool batch_first = layers->at<TransformerDecoderLayerImpl>(0).options.batch_first();
  const bool causal = is_causal_mask(tgt_mask, tgt_is_causal, tgt, batch_first);
  Tensor x = tgt;
  for (size_t i = 0; i < layers->size(); ++i) {
    x = layers->at<TransformerDecoderLayerImpl>(i).forward(
        x, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask, causal,
        memory_is_causal);
  }
  return norm ? norm(x) : x;
}

TransformerImpl::TransformerImpl(TransformerOptions given)
    : Module("Transformer"), options(std::move(given)) {
  const TransformerLayerOptions layer = TransformerLayerOptions(options.d_model(), options.nhead())
                                            .dim_feedforward(options.dim_feedforward())
                                            .dropout(options.dropout())
                                            .activation(options.activation())
                                            .layer_norm_eps(options.layer_norm_eps())
                                            .batch_first(options.batch_first())
                                            .norm_first(options.norm_first())
                                            .bias(options.bias());
  const auto end = [&] { return make_norm(layer); };
  encoder = options.custom_encoder();
  if (!encoder) {
    encoder =
        TransformerEncoder(TransformerEncoderLayer(layer), options.num_encoder_layers(), end());
  }
  register_module("encoder", encoder);
  decoder = options.custom_decoder();
  if (!decoder) {
    decoder =
        TransformerDecoder(TransformerDecoderLayer(layer), options.num_decoder_layers(), end());
  }
  register_module("decoder", decoder);
  for (const Tensor& parameter : parameters()) {
    if (parameter.dim() > 1) {
      init::xavier_uniform_(parameter);
    }
  }
}

Tensor TransformerImpl::forward(const Tensor& src, const Tensor& tgt, const Tensor& src_mask,
                                const Tensor& tgt_mask, const Tensor& memory_mask,
                                const Tensor& src_key_padding_mask,
                                const Tensor& tgt_key_padding_mask,
                                const Tensor& memory_key_padding_mask,
                                std::optional<bool> src_is_causal,
                                std::optional<bool> tgt_is_causal, bool memory_is_causal) {
  const int64_t batch_dim = options.batch_first() ? 0 : 1;
  if (src.dim() == 3 && src.size(batch_dim) != tgt.size(batch_dim)) {
    fail(ErrorKind::Runtime, "", "the batch number of src and tgt must be equal");
  }
  if (src.size(-1) != options.d_model() || tgt.size(-1) != options.d_model()) {
    fail(ErrorKind::Runtime, "", "the feature number of src and tgt must be equal to d_model");
  }
  const Tensor memory = encoder(src, src_mask, src_key_padding_mask, src_is_causal);
  return decoder(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
                 tgt_is_causal, memory_is_causal);
}

Tensor TransformerImpl::generate_square_subsequent_mask(int64_t sz) {
  if (sz < 0) {
    fail(ErrorKind::Value, "generate_square_subsequent_mask", "expected sz of 0 or more, got ", sz);
  }
  return causal_mask(sz, DType::Float32);
}

}  // namespace rushlight::nn
