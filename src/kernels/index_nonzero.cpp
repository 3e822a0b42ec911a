#include "kernels/index_nonzero.h"

#include <algorithm>

#include "kernels/copy.h"
#include "kernels/mask.h"

namespace rushlight::kernels {
namespace {

// Positions of a chunk along one dimension: those of its beginning plus `rest`, ascending. Writes
// them modulo the size, and leaves in `rest` what they carry into the dimension before.
void split_positions(int64_t* out, uint16_t* rest, int64_t count, int64_t start, int64_t size) {
  if (size > MaskScan::kChunk) {
    for (int64_t k = 0; k < count; ++k) {
      const int64_t at = start + rest[k];
      out[k] = at >= size ? at - size : at;
      rest[k] = at >= size ? 1 : 0;
    }
    return;
  }
  // Division by multiplication: exact, as the dividend times the size is far below 2^32.
  const uint64_t inverse = (uint64_t{1} << 32) / static_cast<uint64_t>(size) + 1;
  for (int64_t k = 0; k < count; ++k) {
    const uint64_t at = static_cast<uint64_t>(start) + rest[k];
    const uint64_t carry = at * inverse >> 32;
    out[k] = static_cast<int64_t>(at - carry * static_cast<uint64_t>(size));
    rest[k] = static_cast<uint16_t>(carry);
  }
}

// One column of `rows` a dimension, `total` elements apart.
void write_rows(int64_t* rows, int64_t total, IntArrayRef sizes, const MaskScan::Chunk& chunk) {
  const int64_t count = chunk.count;
  int64_t left = chunk.first;
  bool carries = true;
  for (size_t d = sizes.size(); d-- > 0;) {
    const int64_t start = d == 0 ? left : left % sizes[d];
    left /= sizes[d];
    int64_t* out = rows + static_cast<int64_t>(d) * total;
    if (!carries) {
      std::fill_n(out, count, start);
    } else if (d == 0 || start + chunk.positions[count - 1] < sizes[d]) {
      for (int64_t k = 0; k < count; ++k) {
        out[k] = start + chunk.positions[k];
      }
      carries = false;
    } else {
      split_positions(out, chunk.positions, count, start, sizes[d]);
    }
  }
}

}  // namespace

int64_t count_nonzero(const Tensor& self) {
  return MaskScan(as_dtype(self, DType::Bool)).total();
}

Tensor nonzero(const Tensor& self) {
  const MaskScan scan(as_dtype(self, DType::Bool));
  const int64_t total = scan.total();
  const int64_t rank = self.dim();
  // Column by column, as unbind and indexing read it (and PyTorch lays it).
  Tensor made = make_strided({total, rank}, {1, std::max<int64_t>(total, 1)}, DType::Int64);
  if (total == 0 || rank == 0) {
    return made;
  }
  auto* rows = made.data_ptr<int64_t>();
  scan.for_each([&](const MaskScan::Chunk& chunk) {
    write_rows(rows + chunk.before, total, self.sizes(), chunk);
  });
  return made;
}

}  // namespace rushlight::kernels
