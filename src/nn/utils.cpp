// The operators of python/rushlight/nn/utils, in the same order.
#include <rushlight/autograd.h>
#include <rushlight/generated/functions.h>
#include <rushlight/nn/utils.h>
#include <rushlight/operators.h>

#include <algorithm>

namespace rushlight::nn::utils {
namespace {

TensorList gradients(const TensorList& parameters) {
  TensorList found;
  for (const Tensor& parameter : parameters) {
    if (parameter.grad().defined()) {
      found.push_back(parameter.grad());
    }
  }
  return found;
}

}  // namespace

Tensor get_total_norm(const TensorList& tensors, double norm_type, bool error_if_nonfinite) {
  if (tensors.empty()) {
    return zeros({}, {});
  }
  NoGradGuard no_grad;
  TensorList norms;
  for (const Tensor& tensor : tensors) {
    norms.push_back(linalg_vector_norm(tensor, norm_type));
  }
  const Tensor total = linalg_vector_norm(stack(norms), norm_type);
  if (error_if_nonfinite && !isfinite(total).item().to_bool()) {
    fail(ErrorKind::Runtime, "", "The total norm of order ", norm_type,
         " for gradients from `parameters` is non-finite, so it cannot be clipped. To disable this "
         "error and scale the gradients by the non-finite norm anyway, set "
         "`error_if_nonfinite=False`");
  }
  return total;
}

void clip_grads_with_norm_(const TensorList& parameters, double max_norm,
                           const Tensor& total_norm) {
  NoGradGuard no_grad;
  const Tensor factor =
      clamp(max_norm / (total_norm + 1e-6), std::nullopt, std::optional<Scalar>(1.0));
  for (const Tensor& grad : gradients(parameters)) {
    mul_(grad, factor);
  }
}

Tensor clip_grad_norm_(const TensorList& parameters, double max_norm, double norm_type,
                       bool error_if_nonfinite) {
  const Tensor total = get_total_norm(gradients(parameters), norm_type, error_if_nonfinite);
  clip_grads_with_norm_(parameters, max_norm, total);
  return total;
}

void clip_grad_value_(const TensorList& parameters, double clip_value) {
  NoGradGuard no_grad;
  for (const Tensor& grad : gradients(parameters)) {
    clamp_(grad, std::optional<Scalar>(-clip_value), std::optional<Scalar>(clip_value));
  }
}

Tensor parameters_to_vector(const TensorList& parameters) {
  TensorList parts;
  for (const Tensor& parameter : parameters) {
    parts.push_back(view(parameter, {-1}));
  }
  return cat(parts);
}

void vector_to_parameters(const Tensor& vec, const TensorList& parameters) {
  int64_t begin = 0;
  for (const Tensor& parameter : parameters) {
    const int64_t count = parameter.numel();
    parameter.set_data(view_as(slice(vec.detach(), 0, begin, begin + count), parameter));
    begin += count;
  }
}

namespace rnn {

Tensor invert_permutation(const Tensor& permutation) {
  if (!permutation.defined()) {
    return permutation;
  }
  const Tensor inverse = empty(permutation.sizes(), permutation.options());
  const Tensor steps = arange(permutation.numel(), permutation.options());
  return scatter_(inverse, 0, permutation, steps);
}

PackedSequence pack_padded_sequence(const Tensor& input, const Tensor& lengths, bool batch_first,
                                    bool enforce_sorted) {
  Tensor given = input;
  Tensor falling = to(lengths, DType::Int64);
  Tensor order;
  if (!enforce_sorted) {
    std::tie(falling, order) = sort(falling, -1, true);
    given = index_select(input, batch_first ? 0 : 1, order);
  }
  const auto [data, sizes] = _pack_padded_sequence(given, falling, batch_first);
  return {data, sizes, order, invert_permutation(order)};
}

std::tuple<Tensor, Tensor> pad_packed_sequence(const PackedSequence& sequence, bool batch_first,
                                               double padding_value,
                                               std::optional<int64_t> total_length) {
  const int64_t steps = sequence.batch_sizes.size(0);
  if (total_length && *total_length < steps) {
    fail(ErrorKind::Value, "",
         "Expected total_length to be at least the length of the longest sequence in input, but "
         "got total_length=",
         *total_length, " and max sequence length being ", steps);
  }
  auto [padded, lengths] = _pad_packed_sequence(sequence.data, sequence.batch_sizes, batch_first,
                                                padding_value, total_length.value_or(-1));
  if (const Tensor& order = sequence.unsorted_indices; order.defined()) {
    padded = index_select(padded, batch_first ? 0 : 1, order);
    lengths = index_select(lengths, 0, order);
  }
  return {padded, lengths};
}

Tensor pad_sequence(const TensorList& sequences, bool batch_first, double padding_value,
                    const std::string& padding_side) {
  if (sequences.empty()) {
    fail(ErrorKind::Runtime, "", "received an empty list of sequences");
  }
  if (padding_side != "left" && padding_side != "right") {
    fail(ErrorKind::Runtime, "", "Expected padding_side to be one of left or right, but got ",
         padding_side, ".");
  }
  int64_t longest = 0;
  for (const Tensor& sequence : sequences) {
    longest = std::max(longest, sequence.size(0));
  }
  const int64_t count = static_cast<int64_t>(sequences.size());
  IntList sizes = batch_first ? IntList{count, longest} : IntList{longest, count};
  for (int64_t dim = 1; dim < sequences[0].dim(); ++dim) {
    sizes.push_back(sequences[0].size(dim));
  }
  const Tensor padded = new_full(sequences[0], sizes, padding_value);
  for (int64_t index = 0; index < count; ++index) {
    const int64_t length = sequences[index].size(0);
    const int64_t begin = padding_side == "right" ? 0 : longest - length;
    const Tensor place = select(padded, batch_first ? 0 : 1, index);
    copy_(slice(place, 0, begin, begin + length), sequences[index]);
  }
  return padded;
}

TensorList unpad_sequence(const Tensor& padded_sequences, const Tensor& lengths, bool batch_first) {
  const TensorList rows = unbind(padded_sequences, batch_first ? 0 : 1);
  TensorList found;
  for (size_t index = 0; index < rows.size(); ++index) {
    const int64_t length = select(lengths, 0, static_cast<int64_t>(index)).item().to_int();
    found.push_back(clone(slice(rows[index], 0, 0, length), MemoryFormat::Contiguous));
  }
  return found;
}

PackedSequence pack_sequence(const TensorList& sequences, bool enforce_sorted) {
  const Tensor lengths = empty({static_cast<int64_t>(sequences.size())}, DType::Int64);
  for (size_t index = 0; index < sequences.size(); ++index) {
    lengths.data_ptr<int64_t>()[index] = sequences[index].size(0);
  }
  return pack_padded_sequence(pad_sequence(sequences), lengths, false, enforce_sorted);
}

TensorList unpack_sequence(const PackedSequence& packed_sequences) {
  const auto [padded, lengths] = pad_packed_sequence(packed_sequences, true);
  return unpad_sequence(padded, lengths, true);
}

}  // namespace rnn
}  // namespace rushlight::nn::utils
