// Sliding windows, local response normalization, bags of embeddings and the CTC loss.
#include <rushlight/autograd.h>
#include <rushlight/generated/functions.h>
#include <rushlight/nn/init.h>
#include <rushlight/nn/pooling.h>

#include "nn/text.h"

namespace rushlight::nn {
namespace {

std::string text(const ExpandingArray<2>& values) {
  return cat("(", values[0], ", ", values[1], ")");
}

int64_t mode_number(const std::string& mode) {
  if (mode != "sum" && mode != "mean" && mode != "max") {
    fail(ErrorKind::Value, "EmbeddingBag", "mode has to be one of sum, mean or max, got ", mode);
  }
  return mode == "sum" ? 0 : mode == "mean" ? 1 : 2;
}

}  // namespace

UnfoldImpl::UnfoldImpl(const UnfoldOptions& given) : TensorModule("Unfold"), options(given) {}

Tensor UnfoldImpl::forward(const Tensor& input) {
  return im2col(input, options.kernel_size(), options.dilation(), options.padding(),
                options.stride());
}

std::string UnfoldImpl::extra_repr() const {
  return cat("kernel_size=", text(options.kernel_size()), ", dilation=", text(options.dilation()),
             ", padding=", text(options.padding()), ", stride=", text(options.stride()));
}

FoldImpl::FoldImpl(const FoldOptions& given) : TensorModule("Fold"), options(given) {}

Tensor FoldImpl::forward(const Tensor& input) {
  return col2im(input, options.output_size(), options.kernel_size(), options.dilation(),
                options.padding(), options.stride());
}

std::string FoldImpl::extra_repr() const {
  return cat("output_size=", text(options.output_size()),
             ", kernel_size=", text(options.kernel_size()), ", dilation=", text(options.dilation()),
             ", padding=", text(options.padding()), ", stride=", text(options.stride()));
}

LocalResponseNormImpl::LocalResponseNormImpl(const LocalResponseNormOptions& given)
    : TensorModule("LocalResponseNorm"), options(given) {}

Tensor LocalResponseNormImpl::forward(const Tensor& input) {
  if (input.dim() < 3) {
    fail(ErrorKind::Value, "LocalResponseNorm", "Expected 3D or higher dimensionality input (got ",
         input.dim(), " dimensions)");
  }
  if (input.numel() == 0) {
    return input;
  }
  const int64_t size = options.size();
  const int64_t before = size / 2;
  const int64_t after = (size - 1) / 2;
  const Tensor squares = mul(input, input);
  Tensor mean;
  if (input.dim() == 3) {
    const Tensor padded = pad(unsqueeze(squares, 1), {0, 0, before, after});
    mean = squeeze(avg_pool2d(padded, {size, 1}, {1, 1}), 1);
  } else {
    const Tensor volume = reshape(squares, {input.size(0), 1, input.size(1), input.size(2), -1});
    const Tensor padded = pad(volume, {0, 0, 0, 0, before, after});
    mean = reshape(avg_pool3d(padded, {size, 1, 1}, {1, 1, 1}), input.sizes());
  }
  return div(input, pow(add(mul(mean, Scalar(options.alpha())), Scalar(options.k())),
                        Scalar(options.beta())));
}

std::string LocalResponseNormImpl::extra_repr() const {
  return cat(options.size(), ", alpha=", python_text(options.alpha()),
             ", beta=", python_text(options.beta()), ", k=", python_text(options.k()));
}

EmbeddingBagImpl::EmbeddingBagImpl(const EmbeddingBagOptions& given)
    : Module("EmbeddingBag"), options(given) {
  mode_number(options.mode());
  const int64_t count = options.num_embeddings();
  if (count < 0 || options.embedding_dim() < 0) {
    fail(ErrorKind::Value, "EmbeddingBag", "expected num_embeddings and embedding_dim of 0 or ",
         "more, got ", count, " and ", options.embedding_dim());
  }
  if (options.padding_idx()) {
    const int64_t index = *options.padding_idx() + (*options.padding_idx() < 0 ? count : 0);
    if (index < 0 || index >= count) {
      fail(ErrorKind::Value, "EmbeddingBag", "padding_idx must be within num_embeddings, got ",
           *options.padding_idx(), " of ", count);
    }
    options.padding_idx(index);
  }
  weight = register_parameter("weight", empty({count, options.embedding_dim()}));
  reset_parameters();
}

void EmbeddingBagImpl::reset_parameters() {
  init::normal_(weight);
  if (options.padding_idx()) {
    const NoGradGuard guard;
    zero_(select(weight, 0, *options.padding_idx()));
  }
}

Tensor EmbeddingBagImpl::forward(const Tensor& input, const Tensor& offsets,
                                 const Tensor& per_sample_weights) {
  Tensor indices = input;
  Tensor begins = offsets;
  Tensor weights = per_sample_weights;
  if (input.dim() == 2) {
    if (offsets.defined()) {
      fail(ErrorKind::Value, "EmbeddingBag", "if input is 2D, then offsets has to be absent: each ",
           "row is a bag");
    }
    begins = mul(arange(Scalar(input.size(0)), TensorOptions(DType::Int64)), Scalar(input.size(1)));
    indices = reshape(input, {-1});
    weights = weights.defined() ? reshape(weights, {-1}) : weights;
  } else if (!offsets.defined()) {
    fail(ErrorKind::Value, "EmbeddingBag", "offsets has to be a 1D Tensor but got none");
  }
  if (options.max_norm()) {
    const NoGradGuard guard;
    embedding_renorm_(weight.detach(), indices, *options.max_norm(), options.norm_type());
  }
  return std::get<0>(embedding_bag(weight, indices, begins, options.scale_grad_by_freq(),
                                   mode_number(options.mode()), options.sparse(), weights,
                                   options.include_last_offset(), options.padding_idx()));
}

std::string EmbeddingBagImpl::extra_repr() const {
  std::string made = cat(options.num_embeddings(), ", ", options.embedding_dim());
  if (options.max_norm()) {
    made += cat(", max_norm=", python_text(*options.max_norm()));
  }
  if (options.norm_type() != 2) {
    made += cat(", norm_type=", python_text(options.norm_type()));
  }
  if (options.scale_grad_by_freq()) {
    made += ", scale_grad_by_freq=True";
  }
  made += cat(", mode='", options.mode(), "'");
  if (options.padding_idx()) {
    made += cat(", padding_idx=", *options.padding_idx());
  }
  return made;
}

CTCLossImpl::CTCLossImpl(const CTCLossOptions& given) : Module("CTCLoss"), options(given) {}

Tensor CTCLossImpl::forward(const Tensor& log_probs, const Tensor& targets,
                            const Tensor& input_lengths, const Tensor& target_lengths) {
  return ctc_loss(log_probs, targets, input_lengths, target_lengths, options.blank(),
                  code(options.reduction()), options.zero_infinity());
}

}  // namespace rushlight::nn
