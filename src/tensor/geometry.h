// Questions about sizes and strides: which views exist, which layouts are dense, what overlaps.
#pragma once

#include <rushlight/tensor.h>

#include <optional>
#include <span>
#include <string_view>

namespace rushlight {

// `sizes` with its one -1 replaced so that the product is `numel`. Error(Runtime) where that
// cannot be, naming `op`.
IntList infer_sizes(IntArrayRef sizes, int64_t numel, std::string_view op);

// The strides with which `sizes` shows the same elements in the same order as a tensor of
// `old_sizes` and `old_strides`; nothing where only a copy could.
std::optional<IntList> view_strides(IntArrayRef old_sizes, IntArrayRef old_strides,
                                    IntArrayRef sizes);

// Whether the elements fill one block of memory, each once, in any order of the dimensions.
bool is_non_overlapping_and_dense(IntArrayRef sizes, IntArrayRef strides);

// Dense strides in the order of the dimensions in memory: what a fresh result takes from an
// argument under MemoryFormat::Preserve. A dense argument's own strides are returned.
IntList preserved_strides(IntArrayRef sizes, IntArrayRef strides);
// Strides of a dense tensor whose dimensions are ordered as the operands' are: the first that tells
// two dimensions apart decides. An operand has one stride for each dimension, 0 where it repeats.
IntList joint_strides(IntArrayRef sizes, std::span<const IntList> operands);

// Strides of the channels-last formats; Error(Runtime) where the rank does not fit.
IntList strides_for(IntArrayRef sizes, MemoryFormat format, std::string_view op);

// Bytes of the storage that the geometry reaches, from the storage's start. Checked for overflow.
int64_t reached_bytes(IntArrayRef sizes, IntArrayRef strides, int64_t offset, int64_t item,
                      std::string_view op);

// Whether each element certainly has memory of its own. Some layouts that interleave are not seen.
bool is_non_overlapping(IntArrayRef sizes, IntArrayRef strides);

// Whether some element is certainly reachable by two indices (an expanded dimension).
bool has_internal_overlap(const Tensor& tensor);

// Error(Runtime) where `written` overlaps itself.
void check_no_internal_overlap(const Tensor& written, std::string_view op);
// Error(Runtime) where both are dense and share some, but not the same, memory.
void check_no_partial_overlap(const Tensor& written, const Tensor& read, std::string_view op);
// Error(Runtime) where both share any memory.
void check_no_overlap(const Tensor& written, const Tensor& read, std::string_view op);

}  // namespace rushlight
