// Sequences of different lengths, packed and padded.
#include <rushlight/generated/functions.h>

#include <algorithm>

#include "ops/operator.h"

namespace rushlight {
namespace {

Tensor int_tensor(const std::vector<int64_t>& values) {
  const Tensor made = make_tensor({static_cast<int64_t>(values.size())}, DType::Int64);
  std::copy(values.begin(), values.end(), static_cast<int64_t*>(made.data()));
  return made;
}

// Stretches of steps that have the same sequences, as (steps, sequences).
using Stretches = std::vector<std::pair<int64_t, int64_t>>;

Stretches stretches_of(const std::vector<int64_t>& batch_sizes) {
  Stretches made;
  for (int64_t size : batch_sizes) {
    if (made.empty() || made.back().second != size) {
      made.emplace_back(0, size);
    }
    ++made.back().first;
  }
  return made;
}

std::vector<int64_t> values_of(std::string_view op, std::string_view name, const Tensor& x) {
  if (x.dim() != 1 || x.dtype() != DType::Int64 || x.is_meta()) {
    fail(ErrorKind::Runtime, op, "`", name, "` should be a 1-D int64 tensor on the CPU, got ",
         x.dtype(), " of shape ", x.sizes());
  }
  const Tensor dense = contiguous(x);
  const auto* values = dense.data_ptr<int64_t>();
  return {values, values + dense.numel()};
}

IntList with_rows(IntArrayRef sizes, size_t skip, std::initializer_list<int64_t> first) {
  IntList made(first);
  for (size_t i = skip; i < sizes.size(); ++i) {
    made.push_back(sizes[i]);
  }
  return made;
}

std::vector<int64_t> checked_lengths(std::string_view op, const Tensor& lengths,
                                     const Tensor& steps) {
  const std::vector<int64_t> made = values_of(op, "lengths", lengths);
  if (steps.dim() < 2 || static_cast<int64_t>(made.size()) != steps.sizes()[1]) {
    fail(ErrorKind::Runtime, op, "Expected `len(lengths)` to be equal to batch_size, but got ",
         static_cast<int64_t>(made.size()), " (input of shape ", steps.sizes(), ")");
  }
  if (steps.numel() == 0) {
    fail(ErrorKind::Runtime, op, "Cannot pack empty tensors.");
  }
  for (size_t i = 0; i < made.size(); ++i) {
    if (made[i] <= 0) {
      fail(ErrorKind::Runtime, op,
           "Length of all samples has to be greater than 0, but found an element in 'lengths' "
           "that is <= 0");
    }
    if (i > 0 && made[i] > made[i - 1]) {
      fail(ErrorKind::Runtime, op,
           "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You "
           "can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to "
           "sidestep this requirement if you do not need ONNX exportability.");
    }
  }
  if (made[0] > steps.sizes()[0]) {
    fail(ErrorKind::Runtime, op, "Expected sequence length to be at most ", steps.sizes()[0],
         ", but got ", made[0]);
  }
  return made;
}

std::tuple<Tensor, Tensor> pack_of(const Tensor& input, const Tensor& lengths, bool batch_first) {
  const Tensor steps = batch_first ? transpose(input, 0, 1) : input;
  const std::vector<int64_t> counts = checked_lengths("_pack_padded_sequence", lengths, steps);
  std::vector<int64_t> sizes;
  auto active = static_cast<int64_t>(counts.size());
  for (int64_t i = 0; i < counts[0]; ++i) {
    while (counts[static_cast<size_t>(active - 1)] <= i) {
      --active;
    }
    sizes.push_back(active);
  }
  TensorList rows;
  int64_t first = 0;
  for (const auto& [count, batch] : stretches_of(sizes)) {
    const Tensor part = narrow(narrow(steps, 0, first, count), 1, 0, batch);
    rows.push_back(reshape(part, with_rows(steps.sizes(), 2, {count * batch})));
    first += count;
  }
  return {cat(rows, 0), int_tensor(sizes)};
}

std::tuple<Tensor, Tensor> pad_of(const Tensor& data, const Tensor& batch_sizes, bool batch_first,
                                  Scalar padding_value, int64_t total_length) {
  constexpr std::string_view kOp = "_pad_packed_sequence";
  const std::vector<int64_t> sizes = values_of(kOp, "batch_sizes", batch_sizes);
  const auto longest = static_cast<int64_t>(sizes.size());
  int64_t total = 0;
  for (int64_t size : sizes) {
    total += size;
  }
  if (sizes.empty() || data.dim() == 0 || data.sizes()[0] != total) {
    fail(ErrorKind::Runtime, kOp, "expected data of ", total, " rows, got ", data.sizes());
  }
  if (total_length > 0 && total_length < longest) {
    fail(ErrorKind::Runtime, kOp,
         "Expected total_length to be at least the length of the longest sequence in input, but "
         "got total_length=",
         total_length, " and max sequence length being ", longest);
  }
  const int64_t steps = std::max(longest, total_length);
  const int64_t all = sizes[0];
  const auto padding = [&](int64_t count, int64_t batch) {
    return full(with_rows(data.sizes(), 1, {count, batch}), padding_value, data.options());
  };
  TensorList parts;
  int64_t first = 0;
  for (const auto& [count, batch] : stretches_of(sizes)) {
    const Tensor rows = narrow(data, 0, first, count * batch);
    const Tensor part = reshape(rows, with_rows(data.sizes(), 1, {count, batch}));
    parts.push_back(batch == all ? part : cat({part, padding(count, all - batch)}, 1));
    first += count * batch;
  }
  if (steps > longest) {
    parts.push_back(padding(steps - longest, all));
  }
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < all; ++i) {
    int64_t length = 0;
    while (length < longest && sizes[static_cast<size_t>(length)] > i) {
      ++length;
    }
    lengths.push_back(length);
  }
  const Tensor made = cat(parts, 0);
  return {batch_first ? transpose(made, 0, 1) : made, int_tensor(lengths)};
}

const char* pad_node(const Invocation& inv) {
  return inv.arguments[2].to_bool() ? nullptr : "CopySlices";
}

}  // namespace

RUSHLIGHT_OPERATORS(recurrent_packing) {
  op("_pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first) -> (Tensor, Tensor)",
     kFunction)
      .doc(
          "The steps of sequences of falling length one after the other, and how many sequences "
          "each step has.")
      .composition(pack_of)
      .node("PackPaddedSequenceBackward0");
  op("_pad_packed_sequence(Tensor data, Tensor batch_sizes, bool batch_first, "
     "Scalar padding_value, int total_length) -> (Tensor, Tensor)",
     kFunction)
      .doc("Packed sequences as (T, B, ...), or (B, T, ...), and their lengths.")
      .composition(pad_of)
      .node(pad_node);
}

}  // namespace rushlight
