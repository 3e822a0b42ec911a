// Limits on gradients, parameters as one vector, and batches of sequences of different lengths.
#pragma once

#include <rushlight/tensor.h>

#include <optional>
#include <string>
#include <vector>

namespace rushlight::nn::utils {

// The norm of all tensors taken as one vector. Error(Runtime) where it is not finite, if asked.
RUSHLIGHT_API Tensor get_total_norm(const TensorList& tensors, double norm_type = 2.0,
                                    bool error_if_nonfinite = false);
// Scales gradients by max_norm / (total_norm + 1e-6), where that is below 1.
RUSHLIGHT_API void clip_grads_with_norm_(const TensorList& parameters, double max_norm,
                                         const Tensor& total_norm);
// Scales all gradients so that their joint norm is at most `max_norm`; gives the norm before.
RUSHLIGHT_API Tensor clip_grad_norm_(const TensorList& parameters, double max_norm,
                                     double norm_type = 2.0, bool error_if_nonfinite = false);
// Limits every element of the gradients to [-clip_value, clip_value].
RUSHLIGHT_API void clip_grad_value_(const TensorList& parameters, double clip_value);

// All parameters, flattened and joined.
RUSHLIGHT_API Tensor parameters_to_vector(const TensorList& parameters);
// Lets the parameters be slices of `vec`, one after the other.
RUSHLIGHT_API void vector_to_parameters(const Tensor& vec, const TensorList& parameters);

namespace rnn {

// The steps of all sequences, the first of each, then the second of each, and so on: `data` (sum of
// lengths, ...), `batch_sizes` how many sequences have a step t, and the order that sorts the
// sequences by falling length with its inverse, both undefined if they came sorted.
struct PackedSequence {
  Tensor data;
  Tensor batch_sizes;
  Tensor sorted_indices;
  Tensor unsorted_indices;
};

// The order that undoes an order; undefined of an undefined one.
RUSHLIGHT_API Tensor invert_permutation(const Tensor& permutation);
// Packs (T, B, ...), or (B, T, ...) with `batch_first`, whose sequences have the given lengths.
// With `enforce_sorted`, they must come by falling length: Error(Runtime).
RUSHLIGHT_API PackedSequence pack_padded_sequence(const Tensor& input, const Tensor& lengths,
                                                  bool batch_first = false,
                                                  bool enforce_sorted = true);
// The padded sequences (T, B, ...), or (B, T, ...) with `batch_first`, and their lengths.
RUSHLIGHT_API std::tuple<Tensor, Tensor> pad_packed_sequence(
    const PackedSequence& sequence, bool batch_first = false, double padding_value = 0.0,
    std::optional<int64_t> total_length = {});
// Sequences (L, ...) stacked as (T, B, ...), or (B, T, ...) with `batch_first`, with padding at
// their "right" or "left".
RUSHLIGHT_API Tensor pad_sequence(const TensorList& sequences, bool batch_first = false,
                                  double padding_value = 0.0,
                                  const std::string& padding_side = "right");
// The sequences without their padding.
RUSHLIGHT_API TensorList unpad_sequence(const Tensor& padded_sequences, const Tensor& lengths,
                                        bool batch_first = false);
// Packs a list of sequences (L, ...).
RUSHLIGHT_API PackedSequence pack_sequence(const TensorList& sequences, bool enforce_sorted = true);
// The sequences that were packed.
RUSHLIGHT_API TensorList unpack_sequence(const PackedSequence& packed_sequences);

}  // namespace rnn
}  // namespace rushlight::nn::utils
