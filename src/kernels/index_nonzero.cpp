#include "kernels/index_nonzero.h"

#include <algorithm>
#include <vector>

#include "kernels/copy.h"
#include "runtime/parallel.h"

namespace rushlight::kernels {
namespace {

constexpr int64_t kBlock = 65536;

// The true elements of each block of a contiguous mask, whose bytes may be any.
std::vector<int64_t> count_blocks(const uint8_t* mask, int64_t numel) {
  const int64_t blocks = (numel + kBlock - 1) / kBlock;
  std::vector<int64_t> counts(static_cast<size_t>(blocks), 0);
  parallel_for(0, blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      int64_t count = 0;
      for (int64_t i = b * kBlock; i < std::min(numel, (b + 1) * kBlock); ++i) {
        count += mask[i] != 0 ? 1 : 0;
      }
      counts[static_cast<size_t>(b)] = count;
    }
  });
  return counts;
}

}  // namespace

int64_t count_nonzero(const Tensor& self) {
  const Tensor mask = as_contiguous(as_dtype(self, DType::Bool));
  int64_t total = 0;
  for (int64_t count : count_blocks(static_cast<const uint8_t*>(mask.data()), mask.numel())) {
    total += count;
  }
  return total;
}

Tensor nonzero(const Tensor& self) {
  const Tensor mask = as_contiguous(as_dtype(self, DType::Bool));
  const auto* values = static_cast<const uint8_t*>(mask.data());
  std::vector<int64_t> starts = count_blocks(values, mask.numel());
  int64_t total = 0;
  for (int64_t& start : starts) {
    const int64_t count = start;
    start = total;
    total += count;
  }
  const int64_t rank = self.dim();
  // Column by column, as unbind and indexing read it (and PyTorch lays it).
  Tensor made = make_strided({total, rank}, {1, std::max<int64_t>(total, 1)}, DType::Int64);
  if (total == 0 || rank == 0) {
    return made;
  }
  auto* rows = made.data_ptr<int64_t>();
  parallel_for(0, static_cast<int64_t>(starts.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      int64_t* row = rows + starts[static_cast<size_t>(b)];
      for (int64_t i = b * kBlock; i < std::min(mask.numel(), (b + 1) * kBlock); ++i) {
        if (values[i] == 0) {
          continue;
        }
        int64_t rest = i;
        for (int64_t d = rank; d-- > 0;) {
          row[d * total] = rest % mask.size(d);
          rest /= mask.size(d);
        }
        ++row;
      }
    }
  });
  return made;
}

}  // namespace rushlight::kernels
