#include "kernels/sort.h"

#include <algorithm>
#include <array>
#include <vector>

#include "kernels/copy.h"
#include "kernels/sort_key.h"
#include "runtime/parallel.h"

namespace rushlight::kernels {
namespace {

template <typename K>
struct Entry {
  K key;
  int64_t position;
  bool operator<(const Entry& other) const {
    return key != other.key ? key < other.key : position < other.position;
  }
};

// Stable by construction: digits from the lowest, each pass keeps the order of equal digits.
template <typename K>
void radix_sort(std::vector<Entry<K>>& entries, std::vector<Entry<K>>& scratch) {
  scratch.resize(entries.size());
  for (size_t byte = 0; byte < sizeof(K); ++byte) {
    std::array<size_t, 256> starts{};
    for (const Entry<K>& entry : entries) {
      ++starts[static_cast<uint8_t>(entry.key >> (byte * 8))];
    }
    if (starts[static_cast<uint8_t>(entries[0].key >> (byte * 8))] == entries.size()) {
      continue;  // one digit for all
    }
    size_t sum = 0;
    for (size_t& start : starts) {
      const size_t count = start;
      start = sum;
      sum += count;
    }
    for (const Entry<K>& entry : entries) {
      scratch[starts[static_cast<uint8_t>(entry.key >> (byte * 8))]++] = entry;
    }
    entries.swap(scratch);
  }
}

template <typename K>
void sort_entries(std::vector<Entry<K>>& entries, std::vector<Entry<K>>& scratch) {
  if (entries.size() < 256) {
    std::sort(entries.begin(), entries.end());
  } else {
    radix_sort(entries, scratch);
  }
}

template <typename T>
void load_entries(const T* row, int64_t length, bool descending,
                  std::vector<Entry<Key<T>>>& entries) {
  entries.resize(static_cast<size_t>(length));
  for (int64_t i = 0; i < length; ++i) {
    const Key<T> key = sort_key(row[i]);
    entries[static_cast<size_t>(i)] = {static_cast<Key<T>>(descending ? ~key : key), i};
  }
}

// Calls body(T{}, row number, row) for each row, in parallel.
template <typename Body>
void for_rows(const Tensor& given, std::string_view op, Body&& body) {
  const Tensor rows = as_truths(given);
  const int64_t count = rows.size(0);
  const int64_t length = rows.size(1);
  by_real_dtype(rows.dtype(), op, [&]<typename T>(T) {
    const T* data = static_cast<const T*>(rows.data());
    const int64_t grain = std::max<int64_t>(1, 4096 / std::max<int64_t>(length, 1));
    parallel_for(0, count, grain, [&](int64_t begin, int64_t end) {
      std::vector<Entry<Key<T>>> entries;
      std::vector<Entry<Key<T>>> scratch;
      for (int64_t row = begin; row < end; ++row) {
        body(data + row * length, row, entries, scratch);
      }
    });
  });
}

}  // namespace

void sort_rows(const Tensor& rows, const Tensor& order, bool descending, std::string_view op) {
  const int64_t length = rows.size(1);
  auto* positions = order.data_ptr<int64_t>();
  for_rows(rows, op, [&](const auto* row, int64_t at, auto& entries, auto& scratch) {
    load_entries(row, length, descending, entries);
    sort_entries(entries, scratch);
    for (int64_t i = 0; i < length; ++i) {
      positions[at * length + i] = entries[static_cast<size_t>(i)].position;
    }
  });
}

void partial_sort_rows(const Tensor& rows, const Tensor& order, bool descending,
                       std::string_view op) {
  const int64_t length = rows.size(1);
  const int64_t count = order.size(1);
  auto* positions = order.data_ptr<int64_t>();
  for_rows(rows, op, [&](const auto* row, int64_t at, auto& entries, auto& scratch) {
    load_entries(row, length, descending, entries);
    if (count * 4 < length) {
      const auto middle = entries.begin() + count;
      std::nth_element(entries.begin(), middle, entries.end());
      std::sort(entries.begin(), middle);
    } else {
      sort_entries(entries, scratch);
    }
    for (int64_t i = 0; i < count; ++i) {
      positions[at * count + i] = entries[static_cast<size_t>(i)].position;
    }
  });
}

void select_rows(const Tensor& rows, const Tensor& positions, int64_t rank, Median median,
                 std::string_view op) {
  const int64_t length = rows.size(1);
  auto* made = positions.data_ptr<int64_t>();
  for_rows(rows, op, [&](const auto* row, int64_t at, auto& entries, auto&) {
    load_entries(row, length, false, entries);
    int64_t wanted = rank;
    if (median != Median::No) {
      int64_t numbers = length;
      int64_t first_nan = -1;
      for (int64_t i = 0; i < length; ++i) {
        if (is_nan(row[i])) {
          first_nan = first_nan < 0 ? i : first_nan;
          --numbers;
        }
      }
      if (first_nan >= 0 && (median == Median::Propagate || numbers == 0)) {
        made[at] = first_nan;
        return;
      }
      wanted = (numbers - 1) / 2;
    }
    const auto place = entries.begin() + wanted;
    std::nth_element(entries.begin(), place, entries.end());
    made[at] = place->position;
  });
}

void mode_rows(const Tensor& rows, const Tensor& positions, std::string_view op) {
  const int64_t length = rows.size(1);
  auto* made = positions.data_ptr<int64_t>();
  for_rows(rows, op, [&](const auto* row, int64_t at, auto& entries, auto& scratch) {
    load_entries(row, length, false, entries);
    sort_entries(entries, scratch);
    size_t best = 0;
    size_t best_count = 0;
    size_t start = 0;
    for (size_t i = 1; i <= entries.size(); ++i) {
      if (i < entries.size() && entries[i].key == entries[start].key) {
        continue;
      }
      if (i - start > best_count) {
        best_count = i - start;
        best = i - 1;
      }
      start = i;
    }
    made[at] = entries[best].position;
  });
}

}  // namespace rushlight::kernels
