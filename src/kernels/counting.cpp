#include "kernels/counting.h"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "kernels/copy.h"
#include "kernels/element_type.h"
#include "runtime/parallel.h"

namespace rushlight::kernels {
namespace {

constexpr int64_t kChunk = 1024;

// Adds to counts[b] how often bin b is found, for 0 <= b < bins. `find` writes the bins of the
// elements from `first` on, at most kChunk of them, into a buffer if it likes. Each thread counts
// in tables of its own, of which few bins have several, for adding to a number again at once waits
// for the first addition.
template <typename At, typename Find>
void count_bins(int64_t* counts, int64_t bins, int64_t numel, Find&& find) {
  constexpr int64_t kTables = 4;
  const int64_t tables = bins <= 4096 ? kTables : 1;
  // A share costs as much as it has elements and bins.
  const int64_t grain = std::max<int64_t>(65536, bins * 2);
  const int64_t shares = std::max<int64_t>(1, std::min<int64_t>(num_threads(), numel / grain));
  const int64_t each = (numel + shares - 1) / shares;
  const int64_t made = shares * tables - (tables == 1 ? 1 : 0);
  std::vector<int64_t> own(static_cast<size_t>(made * bins), 0);
  parallel_for(0, shares, 1, [&](int64_t begin, int64_t end) {
    std::array<At, kChunk> found;
    for (int64_t share = begin; share < end; ++share) {
      int64_t* table[kTables];
      for (int64_t t = 0; t < tables; ++t) {
        const int64_t at = share * tables + t;
        table[t] = at < made ? own.data() + at * bins : counts;
      }
      const int64_t last = std::min(numel, (share + 1) * each);
      for (int64_t first = share * each; first < last; first += kChunk) {
        const int64_t count = std::min(kChunk, last - first);
        const At* at = find(first, count, found.data());
        int64_t i = 0;
        for (; tables == kTables && i + kTables <= count; i += kTables) {
          for (int64_t t = 0; t < kTables; ++t) {
            ++table[t][at[i + t]];
          }
        }
        for (; i < count; ++i) {
          ++table[0][at[i]];
        }
      }
    }
  });
  for (int64_t t = 0; t < made; ++t) {
    const int64_t* part = own.data() + t * bins;
    for (int64_t b = 0; b < bins; ++b) {
      counts[b] += part[b];
    }
  }
}

// Rounds what was computed to T.
template <typename T>
Compute<T> rounded(Compute<T> value) {
  return load_value(store_value<T>(value));
}

// The bins of a range, from 1 on: 0 stands for what lies outside. `At` holds their number, for
// which a T need not have a value unless At is of 32 bits.
template <typename T, typename At>
struct Bins {
  using C = Compute<T>;
  At count;
  C low;
  C high;
  C width;
  C scale;

  Bins(int64_t bins, double from, double to)
      : count(static_cast<At>(bins)),
        low(static_cast<C>(from)),
        high(static_cast<C>(to)),
        width(static_cast<C>(to - from)),
        scale(static_cast<C>(bins)) {}

  void find(const T* values, int64_t number, At* at) const {
    const C last = scale - 1;
    for (int64_t i = 0; i < number; ++i) {
      const C x = load_value(values[i]);
      const C part = rounded<T>(rounded<T>(rounded<T>(x - low) * scale) / width);
      // The end, and what overflowed, belongs to the last bin.
      const C place = part < last ? part : last;
      const At found = static_cast<At>((x >= low) & (x <= high) ? place : C{-1});
      at[i] = sizeof(At) == 4 ? found + 1 : std::min(found + 1, count);
    }
  }
};

// Counts the values of 16 bits by their bits, then finds the bin of each that occurs: rounding
// halves at each step takes longer than counting.
constexpr int64_t kPatterns = 65536;

template <typename T>
void count_by_pattern(int64_t* counts, const Tensor& values, const Bins<T, int32_t>& bins) {
  const auto* from = static_cast<const uint16_t*>(values.data());
  std::vector<int64_t> by_pattern(kPatterns, 0);
  count_bins<uint16_t>(by_pattern.data(), kPatterns, values.numel(),
                       [&](int64_t first, int64_t, uint16_t*) { return from + first; });
  std::array<T, kChunk> found;
  std::array<int64_t, kChunk> times;
  std::array<int32_t, kChunk> at;
  size_t held = 0;
  for (size_t pattern = 0; pattern < kPatterns; ++pattern) {
    if (by_pattern[pattern] != 0) {
      found[held] = std::bit_cast<T>(static_cast<uint16_t>(pattern));
      times[held++] = by_pattern[pattern];
    }
    if (held == kChunk || pattern + 1 == kPatterns) {
      bins.find(found.data(), static_cast<int64_t>(held), at.data());
      for (size_t i = 0; i < held; ++i) {
        counts[at[i]] += times[i];
      }
      held = 0;
    }
  }
}

}  // namespace

uint64_t greatest_unsigned(const Tensor& values) {
  constexpr int64_t kShare = 131072;
  constexpr int64_t kChains = 4;  // of comparisons, each of which waits for the one before
  const auto* from = static_cast<const uint64_t*>(values.data());
  const int64_t numel = values.numel();
  std::vector<uint64_t> found(static_cast<size_t>((numel + kShare - 1) / kShare));
  parallel_for(0, static_cast<int64_t>(found.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t share = begin; share < end; ++share) {
      const int64_t last = std::min(numel, (share + 1) * kShare);
      uint64_t most[kChains] = {};
      int64_t i = share * kShare;
      for (; i + kChains <= last; i += kChains) {
        for (int64_t c = 0; c < kChains; ++c) {
          most[c] = std::max(most[c], from[i + c]);
        }
      }
      for (; i < last; ++i) {
        most[0] = std::max(most[0], from[i]);
      }
      found[static_cast<size_t>(share)] = *std::max_element(most, most + kChains);
    }
  });
  return found.empty() ? 0 : *std::max_element(found.begin(), found.end());
}

Tensor count_values(const Tensor& values, int64_t size) {
  Tensor made = make_zeros({size}, DType::Int64);
  const auto* from = values.data_ptr<int64_t>();
  count_bins<int64_t>(made.data_ptr<int64_t>(), size, values.numel(),
                      [&](int64_t first, int64_t, int64_t*) { return from + first; });
  return made;
}

Tensor sum_by_value(const Tensor& values, const Tensor& weights, int64_t size) {
  Tensor made = make_zeros({size}, weights.dtype());
  const auto* at = values.data_ptr<int64_t>();
  by_floating_dtype(weights.dtype(), "bincount", [&]<typename T>(T) {
    if constexpr (!is_small_float<T>) {
      const T* given = static_cast<const T*>(weights.data());
      T* sums = static_cast<T*>(made.data());
      const int64_t numel = values.numel();
      for (int64_t i = 0; i < numel; ++i) {
        sums[at[i]] += given[i];
      }
    }
  });
  return made;
}

Tensor count_in_bins(const Tensor& self, int64_t bins, double low, double high) {
  const Tensor from = as_contiguous(self);
  const Tensor counts = make_zeros({checked_add(bins, 1, "histc")}, DType::Int64);
  const auto count = [&]<typename T, typename At>(T, At) {
    const Bins<T, At> range(bins, low, high);
    const T* values = static_cast<const T*>(from.data());
    count_bins<At>(counts.data_ptr<int64_t>(), bins + 1, from.numel(),
                   [&](int64_t first, int64_t number, At* at) {
                     range.find(values + first, number, at);
                     return static_cast<const At*>(at);
                   });
  };
  by_floating_dtype(self.dtype(), "histc", [&]<typename T>(T tag) {
    if constexpr (sizeof(T) == 2) {
      if (from.numel() >= kPatterns && bins <= kPatterns) {
        count_by_pattern(counts.data_ptr<int64_t>(), from, Bins<T, int32_t>(bins, low, high));
        return;
      }
    }
    constexpr int64_t kExact = int64_t{1} << 24;  // floats have all numbers up to it
    bins <= kExact ? count(tag, int32_t{}) : count(tag, int64_t{});
  });
  return as_contiguous(as_dtype(make_view(counts, {bins}, {1}, 1), self.dtype()));
}

}  // namespace rushlight::kernels
