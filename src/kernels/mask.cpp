#include "kernels/mask.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "kernels/copy.h"
#include "kernels/element.h"
#include "runtime/parallel.h"

namespace rushlight::kernels {
namespace {

// Blocks are counted, then filled, each by one thread.
constexpr int64_t kBlock = 16 * MaskScan::kChunk;

// A vector of 16 bytes, of the compiler's own types.
typedef uint8_t Bytes __attribute__((vector_size(16)));
typedef uint8_t Narrow __attribute__((vector_size(8)));
typedef uint16_t Wide __attribute__((vector_size(16)));

int64_t count_true(const uint8_t* mask, int64_t count) {
  constexpr int64_t kMost = 255;  // additions that a byte holds
  int64_t total = 0;
  int64_t i = 0;
  while (i + 16 <= count) {
    Bytes sums{};
    const int64_t stop = i + std::min(kMost, (count - i) / 16) * 16;
    for (; i < stop; i += 16) {
      Bytes values;
      std::memcpy(&values, mask + i, sizeof values);
      sums -= static_cast<Bytes>(values != 0);
    }
    for (int lane = 0; lane < 16; ++lane) {
      total += sums[lane];
    }
  }
  for (; i < count; ++i) {
    total += mask[i] != 0 ? 1 : 0;
  }
  return total;
}

// For each set of 8 elements, as bits: the positions of its members, and how many they are.
struct Members {
  std::array<std::array<uint8_t, 8>, 256> positions{};
  std::array<uint8_t, 256> counts{};

  constexpr Members() {
    for (size_t bits = 0; bits < 256; ++bits) {
      for (uint8_t k = 0; k < 8; ++k) {
        if ((bits >> k & 1) != 0) {
          positions[bits][counts[bits]++] = k;
        }
      }
    }
  }
};
constexpr Members kMembers;

// Bit k says whether byte k, from the lowest address, is not zero.
size_t bits_of(const uint8_t* mask, int64_t count) {
  uint64_t word = 0;
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(&word, mask, static_cast<size_t>(count));
  } else {
    for (int64_t k = 0; k < count; ++k) {
      word |= static_cast<uint64_t>(mask[k]) << (8 * k);
    }
  }
  constexpr uint64_t kLow = 0x7f7f7f7f7f7f7f7f;
  const uint64_t ones = ((((word & kLow) + kLow) | word) & ~kLow) >> 7;
  return ones * 0x0102040810204080 >> 56;
}

// Writes up to 8 positions more than it finds; the number found.
int64_t find_true(const uint8_t* mask, int64_t count, uint16_t* positions) {
  int64_t found = 0;
  for (int64_t i = 0; i < count; i += 8) {
    const size_t bits = i + 8 <= count ? bits_of(mask + i, 8) : bits_of(mask + i, count - i);
    Narrow members;
    std::memcpy(&members, kMembers.positions[bits].data(), sizeof members);
    const Wide at = __builtin_convertvector(members, Wide) + static_cast<uint16_t>(i);
    std::memcpy(positions + found, &at, sizeof at);
    found += kMembers.counts[bits];
  }
  return found;
}

const uint8_t* bytes_of(const Tensor& mask) {
  return static_cast<const uint8_t*>(mask.data());
}

}  // namespace

MaskScan::MaskScan(const Tensor& mask) : mask_(as_contiguous(mask)) {
  const int64_t numel = mask_.numel();
  const int64_t blocks = (numel + kBlock - 1) / kBlock;
  before_.resize(static_cast<size_t>(blocks));
  parallel_for(0, blocks, 16, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      before_[static_cast<size_t>(b)] =
          count_true(bytes_of(mask_) + b * kBlock, std::min(kBlock, numel - b * kBlock));
    }
  });
  for (int64_t& before : before_) {
    const int64_t count = before;
    before = total_;
    total_ += count;
  }
}

void MaskScan::for_each(FunctionRef<void(const Chunk&)> visit) const {
  const int64_t numel = mask_.numel();
  parallel_for(0, static_cast<int64_t>(before_.size()), 1, [&](int64_t begin, int64_t end) {
    std::array<uint16_t, kChunk + 8> positions;
    int64_t before = before_[static_cast<size_t>(begin)];
    for (int64_t first = begin * kBlock; first < std::min(numel, end * kBlock); first += kChunk) {
      const int64_t count =
          find_true(bytes_of(mask_) + first, std::min(kChunk, numel - first), positions.data());
      if (count > 0) {
        visit({first, before, count, positions.data()});
      }
      before += count;
    }
  });
}

Tensor read_masked(const Tensor& self, const MaskScan& scan) {
  const Tensor from = as_contiguous(self);
  const Tensor made = make_tensor({scan.total()}, self.dtype(), self.device());
  by_element_size(self.element_size(), [&]<typename T>(T) {
    scan.for_each([&](const MaskScan::Chunk& chunk) {
      const T* in = static_cast<const T*>(from.data()) + chunk.first;
      T* out = static_cast<T*>(made.data()) + chunk.before;
      for (int64_t k = 0; k < chunk.count; ++k) {
        out[k] = in[chunk.positions[k]];
      }
    });
  });
  return made;
}

void write_masked(const Tensor& target, const MaskScan& scan, const Tensor& source) {
  const int64_t stride = source.stride(0);
  by_element_size(target.element_size(), [&]<typename T>(T) {
    scan.for_each([&](const MaskScan::Chunk& chunk) {
      const T* in = static_cast<const T*>(source.data()) + chunk.before * stride;
      T* out = static_cast<T*>(target.data()) + chunk.first;
      for (int64_t k = 0; k < chunk.count; ++k) {
        out[chunk.positions[k]] = in[k * stride];
      }
    });
  });
}

}  // namespace rushlight::kernels
