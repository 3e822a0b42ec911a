#include <rushlight/generated/functions.h>
#include <rushlight/nn/attention.h>
#include <rushlight/nn/init.h>

#include <cmath>
#include <limits>

#include "nn/attention_mask.h"

namespace rushlight::nn {
namespace {

constexpr const char* kName = "MultiheadAttention";

// A mask with one more column, which hides nothing.
Tensor extended(const Tensor& mask) {
  if (!mask.defined()) {
    return mask;
  }
  return cat(TensorList{mask, zeros_like(narrow(mask, -1, 0, 1))}, -1);
}

// (L, B, E) as (B heads, L, head_dim).
Tensor split_heads(const Tensor& x, int64_t batch_heads) {
  return transpose(reshape(x, {x.size(0), batch_heads, -1}), 0, 1);
}

void check_shapes(const Tensor& query, const Tensor& key, const Tensor& value,
                  const Tensor& padding, const Tensor& mask) {
  const int64_t dims = query.dim();
  if (dims != 2 && dims != 3) {
    fail(ErrorKind::Value, kName, "expected a query of 2 or 3 dimensions, got ", dims);
  }
  if (key.dim() != dims || value.dim() != dims) {
    fail(ErrorKind::Value, kName, "expected key and value of ", dims,
         " dimensions, as the query has, got ", key.dim(), " and ", value.dim());
  }
  if (padding.defined() && padding.dim() != dims - 1) {
    fail(ErrorKind::Value, kName, "expected key_padding_mask of ", dims - 1, " dimensions, got ",
         padding.dim());
  }
  if (mask.defined() && mask.dim() != 2 && mask.dim() != 3) {
    fail(ErrorKind::Value, kName, "expected attn_mask of 2 or 3 dimensions, got ", mask.dim());
  }
}

// The mask as (1, L, S) or (B heads, L, S).
Tensor checked_mask(const Tensor& mask, int64_t target, int64_t source, int64_t batch_heads) {
  const bool shared = mask.dim() == 2;
  const IntList wanted = shared ? IntList{target, source} : IntList{batch_heads, target, source};
  if (!(mask.sizes() == IntArrayRef(wanted))) {
    fail(ErrorKind::Runtime, kName, "expected attn_mask of shape ", IntArrayRef(wanted), ", got ",
         mask.sizes());
  }
  return shared ? unsqueeze(mask, 0) : mask;
}

// A linear layer with the name of Python's.
class OutputProjection : public LinearImpl {
 public:
  OutputProjection(int64_t width, const MultiheadAttentionOptions& options)
      : LinearImpl(LinearOptions(width, width).bias(options.bias()),
                   "NonDynamicallyQuantizableLinear") {}
};

}  // namespace

Tensor additive_mask(const Tensor& mask, const char* name, DType dtype) {
  if (!mask.defined() || mask.is_floating_point()) {
    return mask;
  }
  if (mask.dtype() != DType::Bool) {
    fail(ErrorKind::Value, kName, "only bool and floating types of ", name, " are supported, got ",
         mask.dtype());
  }
  constexpr double kHidden = -std::numeric_limits<double>::infinity();
  return masked_fill(zeros(mask.sizes(), TensorOptions(dtype)), mask, Scalar(kHidden));
}

MultiheadAttentionImpl::MultiheadAttentionImpl(const MultiheadAttentionOptions& given)
    : Module(kName), options(given), out_proj(nullptr) {
  const int64_t width = options.embed_dim();
  const int64_t heads = options.num_heads();
  if (width <= 0 || heads <= 0) {
    fail(ErrorKind::Value, "",
         "embed_dim and num_heads must be greater than 0, got embed_dim=", width,
         " and num_heads=", heads, " instead");
  }
  if (width % heads != 0) {
    fail(ErrorKind::Value, kName, "embed_dim must be divisible by num_heads, got ", width, " and ",
         heads);
  }
  const int64_t key_width = options.kdim().value_or(width);
  const int64_t value_width = options.vdim().value_or(width);
  const bool joint = key_width == width && value_width == width;
  const auto fresh = [](bool wanted, IntArrayRef shape) {
    return wanted ? empty(shape) : Tensor();
  };
  if (joint) {
    in_proj_weight = register_parameter("in_proj_weight", empty({3 * width, width}));
  } else {
    q_proj_weight = register_parameter("q_proj_weight", empty({width, width}));
    k_proj_weight = register_parameter("k_proj_weight", empty({width, key_width}));
    v_proj_weight = register_parameter("v_proj_weight", empty({width, value_width}));
  }
  in_proj_bias = register_parameter("in_proj_bias", fresh(options.bias(), {3 * width}));
  out_proj =
      register_module("out_proj", Linear(std::make_shared<OutputProjection>(width, options)));
  bias_k = register_parameter("bias_k", fresh(options.add_bias_kv(), {1, 1, width}));
  bias_v = register_parameter("bias_v", fresh(options.add_bias_kv(), {1, 1, width}));
  reset_parameters();
}

void MultiheadAttentionImpl::reset_parameters() {
  for (const Tensor& weight : {in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight}) {
    if (weight.defined()) {
      init::xavier_uniform_(weight);
    }
  }
  if (in_proj_bias.defined()) {
    init::zeros_(in_proj_bias);
    init::zeros_(out_proj->bias);
  }
  if (bias_k.defined()) {
    init::xavier_normal_(bias_k);
    init::xavier_normal_(bias_v);
  }
}

std::tuple<Tensor, Tensor, Tensor> MultiheadAttentionImpl::project(const Tensor& query,
                                                                   const Tensor& key,
                                                                   const Tensor& value) const {
  const int64_t width = options.embed_dim();
  // The parts of a weight or a bias; of a bias that is not there, none are.
  const auto parts_of = [&](const Tensor& joint, std::initializer_list<int64_t> widths) {
    return joint.defined() ? split(joint, IntArrayRef(widths.begin(), widths.size()))
                           : TensorList(widths.size());
  };
  if (!in_proj_weight.defined()) {
    const TensorList bias = parts_of(in_proj_bias, {width, width, width});
    return {linear(query, q_proj_weight, bias[0]), linear(key, k_proj_weight, bias[1]),
            linear(value, v_proj_weight, bias[2])};
  }
  // One product for inputs that are the same, as Python's layer has.
  if (key.is_same(value) && query.is_same(key)) {
    const TensorList joint = chunk(linear(query, in_proj_weight, in_proj_bias), 3, -1);
    return {joint[0], joint[1], joint[2]};
  }
  if (key.is_same(value)) {
    const TensorList weight = parts_of(in_proj_weight, {width, 2 * width});
    const TensorList bias = parts_of(in_proj_bias, {width, 2 * width});
    const TensorList joint = chunk(linear(key, weight[1], bias[1]), 2, -1);
    return {linear(query, weight[0], bias[0]), joint[0], joint[1]};
  }
  const TensorList weight = parts_of(in_proj_weight, {width, width, width});
  const TensorList bias = parts_of(in_proj_bias, {width, width, width});
  return {linear(query, weight[0], bias[0]), linear(key, weight[1], bias[1]),
          linear(value, weight[2], bias[2])};
}

std::tuple<Tensor, Tensor> MultiheadAttentionImpl::forward(
    const Tensor& given_query, const Tensor& given_key, const Tensor& given_value,
    const Tensor& key_padding_mask, bool need_weights, const Tensor& attn_mask,
    bool average_attn_weights, bool is_causal) {
  check_shapes(given_query, given_key, given_value, key_padding_mask, attn_mask);
  if (is_causal && !attn_mask.defined()) {
    fail(ErrorKind::Runtime, kName,
         "Need attn_mask if specifying the is_causal hint. Transformer's ",
         "generate_square_subsequent_mask makes this mask");
  }
  const bool batched = given_query.dim() == 3;
  // To (L, B, E); what is the same tensor stays the same.
  const auto arranged = [&](const Tensor& x) {
    return !batched ? unsqueeze(x, 1) : options.batch_first() ? transpose(x, 0, 1) : x;
  };
  const Tensor query = arranged(given_query);
  const Tensor key = given_key.is_same(given_query) ? query : arranged(given_key);
  const Tensor value = given_value.is_same(given_key) ? key : arranged(given_value);
  const int64_t target = query.size(0), batch = query.size(1), width = query.size(2);
  if (width != options.embed_dim()) {
    fail(ErrorKind::Value, kName, "was expecting embedding dimension of ", options.embed_dim(),
         ", but got ", width);
  }
  if (key.size(0) != value.size(0) || key.size(1) != batch || value.size(1) != batch) {
    fail(ErrorKind::Value, kName, "expected key and value of the same length and batch, and the ",
         "query's batch, got key ", given_key.sizes(), ", value ", given_value.sizes(),
         " and query ", given_query.sizes());
  }
  const int64_t heads = options.num_heads(), batch_heads = batch * heads;

  Tensor padding = additive_mask(key_padding_mask, "key_padding_mask", query.dtype());
  Tensor mask;
  if (!is_causal || padding.defined() || need_weights) {
    mask = additive_mask(attn_mask, "attn_mask", query.dtype());
    is_causal = is_causal && !padding.defined();
  }
  if (mask.defined()) {
    mask = checked_mask(mask, target, key.size(0), batch_heads);
  }
  auto [q, k, v] = project(query, key, value);
  if (bias_k.defined()) {
    k = cat(TensorList{k, repeat(bias_k, {1, batch, 1})});
    v = cat(TensorList{v, repeat(bias_v, {1, batch, 1})});
    mask = extended(mask);
    padding = extended(batched || !padding.defined() ? padding : unsqueeze(padding, 0));
  } else if (padding.defined() && !batched) {
    padding = unsqueeze(padding, 0);
  }
  q = split_heads(q, batch_heads);
  k = split_heads(k, batch_heads);
  v = split_heads(v, batch_heads);
  if (options.add_zero_attn()) {
    const Tensor row = zeros({batch_heads, 1, width / heads}, TensorOptions(k.dtype()));
    k = cat(TensorList{k, row}, 1);
    v = cat(TensorList{v, row}, 1);
    mask = extended(mask);
    padding = extended(padding);
  }
  const int64_t source = k.size(1), head_dim = width / heads;
  if (padding.defined()) {
    if (!(padding.sizes() == IntArrayRef({batch, source}))) {
      fail(ErrorKind::Value, kName, "expected key_padding_mask of (", batch, ", ", source,
           "), got ", padding.sizes());
    }
    const Tensor hidden =
        reshape(expand(view(padding, {batch, 1, 1, source}), {batch, heads, 1, source}),
                {batch_heads, 1, source});
    mask = mask.defined() ? add(mask, hidden) : hidden;
  }

  const double p = is_training() ? options.dropout() : 0.0;
  Tensor joined, weights;
  if (need_weights) {
    const Tensor scaled = mul(q, Scalar(std::sqrt(1.0 / static_cast<double>(head_dim))));
    const Tensor keys = transpose(k, -2, -1);
    weights = softmax(mask.defined() ? baddbmm(mask, scaled, keys) : bmm(scaled, keys), -1);
    weights = p > 0 ? dropout(weights, p, true) : weights;
    joined = transpose(bmm(weights, v), 0, 1);
    weights = view(weights, {batch, heads, target, source});
    weights = average_attn_weights ? mean(weights, {1}) : weights;
  } else {
    if (mask.defined()) {
      mask = mask.size(0) == 1 ? unsqueeze(mask, 0) : view(mask, {batch, heads, -1, source});
    }
    joined = scaled_dot_product_attention(
        view(q, {batch, heads, target, head_dim}), view(k, {batch, heads, source, head_dim}),
        view(v, {batch, heads, source, head_dim}), mask, p, is_causal);
    joined = permute(joined, {2, 0, 1, 3});
  }
  joined = view(contiguous(joined), {target * batch, width});
  const Tensor result =
      view(linear(joined, out_proj->weight, out_proj->bias), {target, batch, width});
  if (!batched) {
    return {squeeze(result, 1), weights.defined() ? squeeze(weights, 0) : weights};
  }
  return {options.batch_first() ? transpose(result, 0, 1) : result, weights};
}

}  // namespace rushlight::nn
