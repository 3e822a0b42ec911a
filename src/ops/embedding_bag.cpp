// Sums, means and maxima of bags of rows of a table.
#include "kernels/embedding_bag.h"

#include <rushlight/generated/functions.h>

#include "kernels/copy.h"
#include "kernels/index.h"
#include "ops/gradient.h"
#include "ops/operator.h"
#include "ops/pooling.h"

namespace rushlight {
namespace {

using kernels::BagMode;
using kernels::Bags;

using BagResults = std::tuple<Tensor, Tensor, Tensor, Tensor>;

void check_bag_arguments(const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                         int64_t mode, const Tensor& weights, bool include_last) {
  const auto one_line = [](const Tensor& tensor, std::string_view name) {
    if (tensor.dim() != 1) {
      fail(ErrorKind::Runtime, "embedding_bag", name, " has to be a 1D Tensor, but got Tensor of ",
           "dimension ", tensor.dim());
    }
    if (tensor.dtype() != DType::Int64 && tensor.dtype() != DType::Int32) {
      fail(ErrorKind::Runtime, "", "Expected tensor for argument '", name,
           "' to have one of the following scalar types: Long, Int; but got torch.",
           scalar_type_name(tensor.dtype()),
           "Tensor instead (while checking arguments for embedding_bag)");
    }
  };
  if (weight.dim() != 2) {
    fail(ErrorKind::Runtime, "embedding_bag", "weight has to be a 2D Tensor, but got Tensor of ",
         "dimension ", weight.dim());
  }
  one_line(indices, "indices");
  one_line(offsets, "offsets");
  pooling::expect_float("embedding_bag", weight);
  if (mode < 0 || mode > 2) {
    fail(ErrorKind::Runtime, "embedding_bag", "mode has to be 0 (sum), 1 (mean) or 2 (max), got ",
         mode);
  }
  if (include_last && offsets.numel() < 1) {
    fail(ErrorKind::Runtime, "embedding_bag",
         "include_last_offset: number of offset should be at least 1");
  }
  if (!weights.defined()) {
    return;
  }
  if (mode != 0) {
    fail(ErrorKind::Runtime, "embedding_bag",
         "embedding_bag: per_sample_weights only supported with mode='sum'");
  }
  if (weights.dtype() != weight.dtype()) {
    fail(ErrorKind::Runtime, "",
         "Expected tensor for argument #1 'weight' to have the same type as tensor for argument "
         "'per_sample_weights'; but type torch.",
         scalar_type_name(weight.dtype()), "Tensor does not equal torch.",
         scalar_type_name(weights.dtype()), "Tensor (while checking arguments for embedding_bag)");
  }
  if (weights.dim() != 1 || weights.numel() != indices.numel()) {
    fail(ErrorKind::Runtime, "embedding_bag",
         "expected per_sample_weights to be 1D with the length of indices, ", indices.numel(),
         ", but got sizes ", weights.sizes());
  }
}

// Indices and offsets as dense int64, checked; the tensors keep the memory.
struct BagLists {
  Tensor indices;
  Tensor offsets;
  Bags bags;
};

BagLists read_bags(const Tensor& indices, const Tensor& offsets, int64_t rows, bool include_last,
                   int64_t padding) {
  BagLists lists{kernels::index_values(indices), kernels::index_values(offsets), {}};
  const int64_t count = lists.indices.numel();
  const auto* index = static_cast<const int64_t*>(lists.indices.data());
  const auto* offset = static_cast<const int64_t*>(lists.offsets.data());
  const int64_t given = lists.offsets.numel();
  lists.bags = {index, count, offset, include_last ? given - 1 : given, padding};
  if (given > 0 && offset[0] != 0) {
    fail(ErrorKind::Runtime, "embedding_bag",
         "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from "
         "position 0. However, got ",
         offset[0]);
  }
  for (int64_t i = 1; i < given; ++i) {
    if (offset[i] < offset[i - 1]) {
      fail(ErrorKind::Runtime, "embedding_bag", "offsets must not decrease, but offsets[", i,
           "] is ", offset[i], " after ", offset[i - 1]);
    }
  }
  if (given > 0 && offset[given - 1] > count) {
    fail(ErrorKind::Runtime, "embedding_bag", "offsets[-1] can not be greater than input's length ",
         count, " but got offsets[-1] of ", offset[given - 1]);
  }
  for (int64_t i = 0; i < count; ++i) {
    if (index[i] < 0 || index[i] >= rows) {
      fail(ErrorKind::Runtime, "embedding_bag", "Index ", i, " of input takes value ", index[i],
           " which is not in the valid range [0, ", rows, ")");
    }
  }
  if (include_last && given > 0) {  // the last offset says where the last bag ends
    lists.bags.count = offset[given - 1];
  }
  return lists;
}

// Which bag each index lies in.
Tensor bag_of_index(const BagLists& lists) {
  const Tensor made = kernels::make_zeros({lists.indices.numel()}, DType::Int64);
  auto* bag = static_cast<int64_t*>(made.data());
  for (int64_t b = 0; b < lists.bags.bags; ++b) {
    std::fill(bag + lists.bags.begin(b), bag + lists.bags.end(b), b);
  }
  return made;
}

BagResults bag_rows(const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool,
                    int64_t mode, bool, const Tensor& weights, bool include_last, int64_t padding) {
  check_bag_arguments(weight, indices, offsets, mode, weights, include_last);
  const int64_t bags = offsets.numel() - (include_last ? 1 : 0);
  const int64_t width = weight.size(1);
  const Device device = weight.device();
  const auto how = static_cast<BagMode>(mode);
  const Tensor made = make_tensor({bags, width}, weight.dtype(), device);
  const Tensor sizes = make_tensor({bags}, DType::Int64, device);
  const bool has_largest = how == BagMode::Max;
  const Tensor largest = has_largest ? make_tensor({bags, width}, DType::Int64, device) : Tensor();
  if (weight.is_meta() || indices.is_meta() || offsets.is_meta()) {
    const Tensor place =
        make_tensor({how == BagMode::Sum ? 0 : indices.numel()}, DType::Int64, device);
    return {made, place, sizes, has_largest ? largest : make_tensor({bags}, DType::Int64, device)};
  }
  const BagLists lists = read_bags(indices, offsets, weight.size(0), include_last, padding);
  kernels::embedding_bag(made, largest, static_cast<int64_t*>(sizes.data()),
                         kernels::as_contiguous(weight), lists.bags, how,
                         weights.defined() ? kernels::as_contiguous(weights) : Tensor());
  const Tensor place = how == BagMode::Sum ? make_tensor({0}, DType::Int64) : bag_of_index(lists);
  if (how == BagMode::Sum) {  // PyTorch counts no bags that it only sums
    kernels::zero(sizes);
  }
  return {made, place, sizes, has_largest ? largest : kernels::contiguous_copy(sizes)};
}

// The gradient of bags, and what went into them, as the forward pass takes it.
void check_bag_gradient(const Tensor& grad, const Tensor& indices, const Tensor& offsets,
                        int64_t mode, const Tensor& weights, bool include_last) {
  check_bag_arguments(grad, indices, offsets, mode, weights, include_last);
  const int64_t bags = offsets.numel() - (include_last ? 1 : 0);
  if (grad.size(0) != bags) {
    fail(ErrorKind::Runtime, "embedding_bag", "expected a gradient of ", bags, " bags, got sizes ",
         grad.sizes());
  }
}

// Where the largest elements were: rows of the table.
Tensor checked_largest(const Tensor& largest, IntArrayRef sizes, int64_t rows) {
  if (largest.dtype() != DType::Int64 || !(largest.sizes() == sizes)) {
    fail(ErrorKind::Runtime, "embedding_bag", "expected maximum_indices of shape ", sizes,
         " and dtype int64, got ", largest.sizes(), " and ", largest.dtype());
  }
  const Tensor dense = kernels::as_contiguous(largest);
  const auto* row = static_cast<const int64_t*>(dense.data());
  for (int64_t i = 0; i < dense.numel(); ++i) {
    if (row[i] < 0 || row[i] >= rows) {
      fail(ErrorKind::Runtime, "embedding_bag", "maximum_indices must be in [0, ", rows, "), got ",
           row[i]);
    }
  }
  return dense;
}

Tensor table_gradient(const Tensor& grad, const Tensor& indices, const Tensor& offsets,
                      const Tensor& largest, int64_t rows, bool by_frequency, int64_t mode,
                      const Tensor& weights, bool include_last, int64_t padding) {
  check_bag_gradient(grad, indices, offsets, mode, weights, include_last);
  const Tensor made = make_tensor({rows, grad.size(1)}, grad.dtype(), grad.device());
  if (!made.is_meta()) {
    const BagLists lists = read_bags(indices, offsets, rows, include_last, padding);
    const auto how = static_cast<BagMode>(mode);
    kernels::embedding_bag_gradient(
        made, kernels::as_contiguous(grad), lists.bags, how,
        weights.defined() ? kernels::as_contiguous(weights) : Tensor(), by_frequency,
        how == BagMode::Max ? checked_largest(largest, grad.sizes(), rows) : largest);
  }
  return made;
}

Tensor weights_gradient(const Tensor& grad, const Tensor& weight, const Tensor& indices,
                        const Tensor& offsets, bool include_last, int64_t padding) {
  check_bag_gradient(grad, indices, offsets, 0, Tensor(), include_last);
  if (weight.dim() != 2 || weight.size(1) != grad.size(1) || weight.dtype() != grad.dtype()) {
    fail(ErrorKind::Runtime, "embedding_bag", "expected a table with rows like the gradient's, ",
         grad.size(1), " ", grad.dtype(), ", got sizes ", weight.sizes(), " of ", weight.dtype());
  }
  const Tensor made = make_tensor(indices.sizes(), grad.dtype(), grad.device());
  if (!made.is_meta()) {
    const BagLists lists = read_bags(indices, offsets, weight.size(0), include_last, padding);
    kernels::zero(made);
    kernels::embedding_bag_weights_gradient(made, kernels::as_contiguous(grad),
                                            kernels::as_contiguous(weight), lists.bags);
  }
  return made;
}

void bag_gradient(Gradient& g) {
  if (!g.has_grad(0)) {
    return;
  }
  const int64_t padding = g.is_none(8) ? -1 : g.integer(8);
  const Tensor weights = g.is_none(6) ? Tensor() : g.tensor(6);
  if (g.needs(0)) {
    if (g.flag(5)) {
      fail(ErrorKind::NotImplemented, "embedding_bag", "sparse gradients are not offered");
    }
    g.set(0, _embedding_bag_table_gradient(g.grad(), g.tensor(1), g.tensor(2), g.result(3),
                                           g.sizes(0)[0], g.flag(3), g.integer(4), weights,
                                           g.flag(7), padding));
  }
  if (weights.defined() && g.needs(6)) {
    g.set(6, _embedding_bag_weights_gradient(g.grad(), g.tensor(0), g.tensor(1), g.tensor(2),
                                             g.flag(7), padding));
  }
}

// A bag of the gradient's gradient: linear in both `grad_output` and the weights.
void table_second(Gradient& g) {
  const auto mode = static_cast<BagMode>(g.integer(6));
  if (g.flag(5) || mode == BagMode::Max) {
    fail(ErrorKind::NotImplemented, "embedding_bag",
         "the derivative for '_embedding_bag_backward' is not implemented for mode 'max' and for "
         "scale_grad_by_freq");
  }
  const Tensor weights = g.is_none(7) ? Tensor() : g.tensor(7);
  const auto made = _embedding_bag(g.grad(), g.tensor(1), g.tensor(2), false, g.integer(6), false,
                                   weights, g.flag(8), g.integer(9));
  g.set(0, std::get<0>(made));
  if (weights.defined() && g.needs(7)) {
    g.set(7, _embedding_bag_weights_gradient(g.tensor(0), g.grad(), g.tensor(1), g.tensor(2),
                                             g.flag(8), g.integer(9)));
  }
}

// grad[b] . weight[index], linear in both.
void weights_second(Gradient& g) {
  if (g.needs(0)) {
    const auto made = _embedding_bag(g.tensor(1), g.tensor(2), g.tensor(3), false, 0, false,
                                     g.grad(), g.flag(4), g.integer(5));
    g.set(0, std::get<0>(made));
  }
  if (g.needs(1)) {
    g.set(1, _embedding_bag_table_gradient(g.tensor(0), g.tensor(2), g.tensor(3),
                                           zeros({0}, TensorOptions(DType::Int64)), g.sizes(1)[0],
                                           false, 0, g.grad(), g.flag(4), g.integer(5)));
  }
}

int64_t wrapped_padding(const Tensor& weight, std::optional<int64_t> padding) {
  if (!padding) {
    return -1;
  }
  const int64_t rows = weight.dim() == 2 ? weight.size(0) : 0;
  if (*padding < -rows || *padding >= rows) {
    fail(ErrorKind::Runtime, "embedding_bag", "padding_idx must be within the number of ",
         "embeddings, -", rows, " through ", rows - 1, ", but got ", *padding);
  }
  return *padding < 0 ? *padding + rows : *padding;
}

}  // namespace

RUSHLIGHT_OPERATORS(embedding_bag) {
  op("embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, "
     "int mode=0, bool sparse=False, Tensor? per_sample_weights=None, "
     "bool include_last_offset=False) -> (Tensor, Tensor, Tensor, Tensor)",
     kFunction)
      .doc(
          "Sums (mode 0), means (1) or maxima (2) of bags of rows; `offsets` are their beginnings.")
      .composition([](const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                      bool by_frequency, int64_t mode, bool sparse, const Tensor& weights,
                      bool include_last) {
        return _embedding_bag(weight, indices, offsets, by_frequency, mode, sparse, weights,
                              include_last, -1);
      });
  op("embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, "
     "bool scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, "
     "bool include_last_offset, int? padding_idx) -> (Tensor, Tensor, Tensor, Tensor)",
     kFunction)
      .doc("The same; the row `padding_idx` is left out.")
      .composition([](const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                      bool by_frequency, int64_t mode, bool sparse, const Tensor& weights,
                      bool include_last, std::optional<int64_t> padding) {
        return _embedding_bag(weight, indices, offsets, by_frequency, mode, sparse, weights,
                              include_last, wrapped_padding(weight, padding));
      });
  op("_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, "
     "bool scale_grad_by_freq=False, int mode=0, bool sparse=False, "
     "Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) "
     "-> (Tensor, Tensor, Tensor, Tensor)",
     kFunction)
      .doc("embedding_bag as one node; `padding_idx` is -1 for none.")
      .kernel(bag_rows)
      .gradient("indices offsets result3 per_sample_weights per_sample_weights:weight",
                bag_gradient)
      .node("EmbeddingBagBackward0");
  op("_embedding_bag_table_gradient(Tensor grad_output, Tensor indices, Tensor offsets, "
     "Tensor maximum_indices, SymInt num_weights, bool scale_grad_by_freq, int mode, "
     "Tensor? per_sample_weights, bool include_last_offset, int padding_idx) -> Tensor",
     kInternal)
      .doc("The gradient of embedding_bag by its table.")
      .kernel(table_gradient)
      .gradient("indices offsets per_sample_weights per_sample_weights:grad_output", table_second);
  op("_embedding_bag_weights_gradient(Tensor grad_output, Tensor weight, Tensor indices, "
     "Tensor offsets, bool include_last_offset, int padding_idx) -> Tensor",
     kInternal)
      .doc("The gradient of embedding_bag by the weights of its samples.")
      .kernel(weights_gradient)
      .gradient("indices offsets grad_output:weight weight:grad_output", weights_second);
}

}  // namespace rushlight
