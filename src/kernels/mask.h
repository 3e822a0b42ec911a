// The true elements of a mask, found many at a time.
#pragma once

#include <rushlight/tensor.h>

#include <vector>

#include "runtime/function_ref.h"

namespace rushlight::kernels {

// Counts the true elements at once, and visits them as often as asked. A bool is true where its
// byte is not zero.
class MaskScan {
 public:
  static constexpr int64_t kChunk = 1024;

  // Some elements of the mask that lie together, in row-major order. The true ones among them are
  // those at first + positions[k] for k < count, ascending; before these, `before` are true.
  struct Chunk {
    int64_t first;
    int64_t before;
    int64_t count;        // 1 to kChunk
    uint16_t* positions;  // may be overwritten
  };

  // `mask` is bool, on the CPU.
  explicit MaskScan(const Tensor& mask);

  int64_t total() const { return total_; }
  // Visits the chunks with a true element, on several threads.
  void for_each(FunctionRef<void(const Chunk&)> visit) const;

 private:
  Tensor mask_;
  std::vector<int64_t> before_;  // each block
  int64_t total_ = 0;
};

// The elements of `self` where the mask holds, in row-major order: one dimension. Both of one
// shape, `scan` of the mask.
Tensor read_masked(const Tensor& self, const MaskScan& scan);

// The elements of a contiguous tensor where the mask holds become those of `source`, one dimension
// of scan.total() elements, same dtype, other memory.
void write_masked(const Tensor& target, const MaskScan& scan, const Tensor& source);

}  // namespace rushlight::kernels
