#include "tensor/geometry.h"

#include <algorithm>
#include <numeric>

namespace rushlight {

IntList infer_sizes(IntArrayRef sizes, int64_t numel, std::string_view op) {
  IntList result(sizes);
  int64_t known = 1;
  int64_t missing = -1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == -1) {
      if (missing >= 0) {
        fail(ErrorKind::Runtime, op, "only one dimension can be inferred");
      }
      missing = static_cast<int64_t>(i);
    } else if (sizes[i] < 0) {
      fail(ErrorKind::Runtime, op, "invalid shape dimension ", sizes[i], " at index ",
           static_cast<int64_t>(i), " of shape ", sizes);
    } else {
      known = checked_multiply(known, sizes[i], op);
    }
  }
  if (known == numel || (missing >= 0 && known > 0 && numel % known == 0)) {
    if (missing >= 0) {
      if (known == 0) {
        fail(ErrorKind::Runtime, op, "cannot reshape tensor of 0 elements into shape ", sizes,
             " because the unspecified dimension size -1 can be any value and is ambiguous");
      }
      result[static_cast<size_t>(missing)] = numel / known;
    }
    return result;
  }
  fail(ErrorKind::Runtime, op, "shape '", sizes, "' is invalid for input of size ", numel);
}

std::optional<IntList> view_strides(IntArrayRef old_sizes, IntArrayRef old_strides,
                                    IntArrayRef sizes) {
  IntList strides(sizes.size(), 1);
  int64_t numel = 1;
  for (int64_t size : old_sizes) {
    numel *= size;
  }
  if (numel == 0 && old_sizes == sizes) {
    return IntList(old_strides);
  }
  if (numel == 0 || old_sizes.empty()) {
    for (size_t i = sizes.size(); i-- > 0;) {
      strides[i] = i + 1 == sizes.size() ? 1 : std::max<int64_t>(sizes[i + 1], 1) * strides[i + 1];
    }
    return strides;
  }
  // Walks runs of old dimensions that lie one behind the other; each run must be split exactly.
  auto at = static_cast<int64_t>(sizes.size()) - 1;
  int64_t run_stride = old_strides.back();
  int64_t run = 1;
  int64_t taken = 1;
  for (auto d = static_cast<int64_t>(old_sizes.size()) - 1; d >= 0; --d) {
    run *= old_sizes[d];
    const bool run_ends =
        d == 0 || (old_sizes[d - 1] != 1 && old_strides[d - 1] != run * run_stride);
    if (!run_ends) {
      continue;
    }
    while (at >= 0 && (taken < run || sizes[at] == 1)) {
      strides[static_cast<size_t>(at)] = taken * run_stride;
      taken *= sizes[at];
      --at;
    }
    if (taken != run) {
      return std::nullopt;
    }
    if (d > 0) {
      run_stride = old_strides[d - 1];
      run = 1;
      taken = 1;
    }
  }
  return at == -1 ? std::optional<IntList>(strides) : std::nullopt;
}

namespace {

// The dimensions by ascending stride, those of a single element last.
IntList ascending(IntArrayRef sizes, IntArrayRef strides) {
  IntList order(sizes.size(), 0);
  std::iota(order.begin(), order.end(), 0);
  auto rank_of = [&](int64_t d) { return sizes[d] < 2 ? INT64_MAX : strides[d]; };
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return rank_of(a) != rank_of(b) ? rank_of(a) < rank_of(b) : a < b;
  });
  return order;
}

}  // namespace

bool is_non_overlapping(IntArrayRef sizes, IntArrayRef strides) {
  int64_t reach = 0;  // from the first element to the last one of the dimensions so far
  for (int64_t d : ascending(sizes, strides)) {
    if (sizes[d] < 2) {
      continue;
    }
    if (strides[d] <= reach) {
      return false;
    }
    reach += (sizes[d] - 1) * strides[d];
  }
  return true;
}

bool is_non_overlapping_and_dense(IntArrayRef sizes, IntArrayRef strides) {
  int64_t expected = 1;
  for (int64_t d : ascending(sizes, strides)) {
    if (sizes[d] == 0) {
      return true;
    }
    if (sizes[d] == 1) {
      continue;
    }
    if (strides[d] != expected) {
      return false;
    }
    expected *= sizes[d];
  }
  return true;
}

IntList preserved_strides(IntArrayRef sizes, IntArrayRef strides) {
  if (is_non_overlapping_and_dense(sizes, strides)) {
    return IntList(strides);
  }
  const IntList one(strides);
  return joint_strides(sizes, {&one, 1});
}

IntList joint_strides(IntArrayRef sizes, std::span<const IntList> operands) {
  // Insertion sort from the innermost dimension; ties and expanded dimensions keep their order.
  const auto rank = static_cast<int64_t>(sizes.size());
  IntList order(sizes.size(), 0);
  for (int64_t i = 0; i < rank; ++i) {
    order[static_cast<size_t>(i)] = rank - 1 - i;
  }
  auto compare = [&](int64_t first, int64_t second) {
    const auto a = static_cast<size_t>(first);
    const auto b = static_cast<size_t>(second);
    for (const IntList& strides : operands) {
      if (strides[a] == 0 || strides[b] == 0) {
        continue;
      }
      if (strides[a] != strides[b]) {
        return strides[a] < strides[b] ? -1 : 1;
      }
      if (sizes[a] > sizes[b]) {
        return 1;
      }
    }
    return 0;
  };
  for (int64_t i = 1; i < rank; ++i) {
    int64_t moving = i;
    for (int64_t other = i - 1; other >= 0; --other) {
      const int order_of =
          compare(order[static_cast<size_t>(other)], order[static_cast<size_t>(moving)]);
      if (order_of > 0) {
        std::swap(order[static_cast<size_t>(other)], order[static_cast<size_t>(moving)]);
        moving = other;
      } else if (order_of < 0) {
        break;
      }
    }
  }
  IntList result(sizes.size(), 0);
  int64_t next = 1;
  for (int64_t d : order) {
    result[static_cast<size_t>(d)] = next;
    next *= std::max<int64_t>(sizes[d], 1);
  }
  return result;
}

IntList strides_for(IntArrayRef sizes, MemoryFormat format, std::string_view op) {
  if (format == MemoryFormat::Contiguous || format == MemoryFormat::Preserve) {
    return contiguous_strides(sizes);
  }
  const size_t rank = format == MemoryFormat::ChannelsLast ? 4 : 5;
  if (sizes.size() != rank) {
    fail(ErrorKind::Runtime, op, "required rank ", static_cast<int64_t>(rank), " tensor to use ",
         rank == 4 ? "channels_last" : "channels_last_3d", " format, but got a tensor of shape ",
         sizes);
  }
  IntList strides(rank, 1);
  int64_t next = std::max<int64_t>(sizes[1], 1);
  for (size_t d = rank; d-- > 2;) {
    strides[d] = next;
    next *= std::max<int64_t>(sizes[d], 1);
  }
  strides[0] = next;
  return strides;
}

int64_t reached_bytes(IntArrayRef sizes, IntArrayRef strides, int64_t offset, int64_t item,
                      std::string_view op) {
  int64_t last = offset;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) {
      return 0;
    }
    last = checked_add(last, checked_multiply(sizes[d] - 1, strides[d], op), op);
  }
  return checked_multiply(checked_add(last, 1, op), item, op);
}

bool has_internal_overlap(const Tensor& tensor) {
  const IntArrayRef sizes = tensor.sizes();
  const IntArrayRef strides = tensor.strides();
  if (tensor.numel() == 0) {
    return false;
  }
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] > 1 && strides[d] == 0) {
      return true;
    }
  }
  return false;
}

void check_no_internal_overlap(const Tensor& written, std::string_view op) {
  if (!written.is_contiguous() && has_internal_overlap(written)) {
    fail(ErrorKind::Runtime, op,
         "unsupported operation: more than one element of the written-to tensor refers to a "
         "single memory location. Please clone() the tensor before performing the operation.");
  }
}

namespace {

enum class Shared { None, Same, Partial };

Shared shared_memory(const Tensor& a, const Tensor& b) {
  if (a.is_same(b)) {
    return Shared::Same;
  }
  if (a.numel() == 0 || b.numel() == 0 || a.storage() != b.storage() ||
      !is_non_overlapping_and_dense(a.sizes(), a.strides()) ||
      !is_non_overlapping_and_dense(b.sizes(), b.strides())) {
    return Shared::None;
  }
  const int64_t a_begin = a.storage_offset() * a.element_size();
  const int64_t a_end = a_begin + a.nbytes();
  const int64_t b_begin = b.storage_offset() * b.element_size();
  const int64_t b_end = b_begin + b.nbytes();
  if (a_begin == b_begin && a_end == b_end) {
    return a.strides() == b.strides() ? Shared::Same : Shared::Partial;
  }
  return a_begin < b_end && b_begin < a_end ? Shared::Partial : Shared::None;
}

[[noreturn]] void fail_shared(std::string_view op) {
  fail(ErrorKind::Runtime, op,
       "unsupported operation: some elements of the input tensor and the written-to tensor refer "
       "to a single memory location. Please clone() the tensor before performing the operation.");
}

}  // namespace

void check_no_partial_overlap(const Tensor& written, const Tensor& read, std::string_view op) {
  if (shared_memory(written, read) == Shared::Partial) {
    fail_shared(op);
  }
}

void check_no_overlap(const Tensor& written, const Tensor& read, std::string_view op) {
  if (shared_memory(written, read) != Shared::None) {
    fail_shared(op);
  }
}

}  // namespace rushlight
