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

constexpr int64_t kKeyBlock = 64;
constexpr int64_t kInserted = 32;  // entries that are kept in order

// Keys of the elements from `row` on, of a whole block or of the `count` that there are; `flip` is
// ~0 where the order is to be descending.
template <typename T>
int64_t load_keys(const T* row, int64_t count, Key<T> flip, Key<T>* keys) {
  if (count >= kKeyBlock) {
    for (int64_t i = 0; i < kKeyBlock; ++i) {
      keys[i] = static_cast<Key<T>>(sort_key(row[i]) ^ flip);
    }
    return kKeyBlock;
  }
  for (int64_t i = 0; i < count; ++i) {
    keys[i] = static_cast<Key<T>>(sort_key(row[i]) ^ flip);
  }
  return count;
}

// Calls visit(keys, position of the first, count) with the blocks of a row from `start` on that
// have a key below what `bound` gives.
template <typename T, typename Bound, typename Visit>
void for_blocks_below(const T* row, int64_t start, int64_t length, Key<T> flip, Bound&& bound,
                      Visit&& visit) {
  Key<T> keys[kKeyBlock];
  while (start < length) {
    const int64_t there = load_keys(row + start, length - start, flip, keys);
    Key<T> smallest = keys[0];
    for (int64_t i = 1; i < there; ++i) {
      smallest = std::min(smallest, keys[i]);
    }
    if (smallest < bound()) {
      visit(keys, start, there);
    }
    start += there;
  }
}

// The first `count` entries of a row's order, few of them: kept in order, each goes to its place.
template <typename T>
void insert_first(const T* row, int64_t length, int64_t count, bool descending,
                  std::vector<Entry<Key<T>>>& kept) {
  using K = Key<T>;
  load_entries(row, count, descending, kept);
  std::sort(kept.begin(), kept.end());
  Entry<K>* entries = kept.data();
  K last = entries[count - 1].key;
  for_blocks_below(
      row, count, length, static_cast<K>(descending ? ~K{0} : K{0}), [&] { return last; },
      [&](const K* keys, int64_t start, int64_t there) {
        for (int64_t i = 0; i < there; ++i) {
          if (!(keys[i] < last)) {
            continue;
          }
          int64_t at = count - 1;
          for (; at > 0 && keys[i] < entries[at - 1].key; --at) {
            entries[at] = entries[at - 1];
          }
          entries[at] = {keys[i], start + i};
          last = entries[count - 1].key;
        }
      });
}

// The first `count` entries of a row's order, of which there are several times as many elements. A
// few candidates are kept; what does not come before the last of the best so far is passed over, a
// block at a time. Equal elements that come later do not.
template <typename T>
void load_first(const T* row, int64_t length, int64_t count, bool descending,
                std::vector<Entry<Key<T>>>& kept) {
  using K = Key<T>;
  const auto flip = static_cast<K>(descending ? ~K{0} : K{0});
  const auto wanted = static_cast<size_t>(count);
  const size_t most = 2 * wanted + kKeyBlock;
  const auto shrink = [&] {
    std::nth_element(kept.begin(), kept.begin() + count - 1, kept.end());
    kept.resize(wanted);
    return kept.back().key;
  };
  const int64_t start = std::min(length, static_cast<int64_t>(most));
  load_entries(row, start, descending, kept);
  K last = shrink();
  for_blocks_below(
      row, start, length, flip, [&] { return last; },
      [&](const K* keys, int64_t first, int64_t there) {
        for (int64_t i = 0; i < there; ++i) {
          if (keys[i] < last) {
            kept.push_back({keys[i], first + i});
          }
        }
        if (kept.size() >= most) {
          last = shrink();
        }
      });
  shrink();
  std::sort(kept.begin(), kept.end());
}

// The entry of rank `rank` in a row's ascending order. Long rows are counted by the first bits of
// their keys, so that only those which share them with the one sought are put in order.
template <typename T>
int64_t position_of_rank(const T* row, int64_t length, int64_t rank,
                         std::vector<Entry<Key<T>>>& entries) {
  using K = Key<T>;
  constexpr int kDigits = sizeof(K) * 8;
  constexpr int kCounted = std::min(kDigits, 12);
  constexpr int64_t kLong = 4096;
  int64_t before = 0;
  if (length < kLong) {
    load_entries(row, length, false, entries);
  } else {
    const auto digit = [](K key) { return static_cast<size_t>(key >> (kDigits - kCounted)); };
    const auto each = [&](auto&& visit) {
      K keys[kKeyBlock];
      for (int64_t start = 0; start < length; start += kKeyBlock) {
        const int64_t there = load_keys(row + start, length - start, K{0}, keys);
        for (int64_t i = 0; i < there; ++i) {
          visit(keys[i], start + i);
        }
      }
    };
    std::vector<int64_t> counts(size_t{1} << kCounted);
    each([&](K key, int64_t) { ++counts[digit(key)]; });
    size_t sought = 0;
    while (before + counts[sought] <= rank) {
      before += counts[sought++];
    }
    // One entry more is written than kept, so that there is no branch.
    entries.resize(static_cast<size_t>(counts[sought]) + 1);
    size_t found = 0;
    each([&](K key, int64_t i) {
      entries[found] = {key, i};
      found += digit(key) == sought ? 1 : 0;
    });
    entries.resize(found);
  }
  const auto place = entries.begin() + (rank - before);
  std::nth_element(entries.begin(), place, entries.end());
  return place->position;
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
    if (count == 0) {
      return;
    }
    if (count * 4 < length) {
      if (count <= kInserted) {
        insert_first(row, length, count, descending, entries);
      } else {
        load_first(row, length, count, descending, entries);
      }
    } else {
      load_entries(row, length, descending, entries);
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
    int64_t wanted = rank;
    if (median != Median::No) {
      int64_t numbers = 0;
      for (int64_t i = 0; i < length; ++i) {
        numbers += is_nan(row[i]) ? 0 : 1;
      }
      if (numbers != length && (median == Median::Propagate || numbers == 0)) {
        made[at] = std::find_if(row, row + length, [](auto x) { return is_nan(x); }) - row;
        return;
      }
      wanted = (numbers - 1) / 2;
    }
    made[at] = position_of_rank(row, length, wanted, entries);
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
