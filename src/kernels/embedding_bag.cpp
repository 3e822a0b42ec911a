#include "kernels/embedding_bag.h"

#include <algorithm>
#include <vector>

#include "kernels/window_space.h"

namespace rushlight::kernels {
namespace {

constexpr int64_t kAhead = 16;  // rows fetched before they are read

// A row-major table, and the sum of a bag.
template <typename T>
class Summed {
 public:
  using C = Compute<T>;
  Summed(const Tensor& table, const Bags& bags, const Tensor& weights)
      : table_(static_cast<const T*>(table.data())),
        width_(table.size(1)),
        bags_(bags),
        weights_(weights.defined() ? static_cast<const T*>(weights.data()) : nullptr) {}

  int64_t width() const { return width_; }
  const T* row(int64_t index) const { return table_ + index * width_; }

  // Into `sum`, the number of rows as the result.
  int64_t add(C* sum, C* spare, int64_t bag) const {
    std::fill_n(sum, width_, C{0});
    int64_t rows = 0;
    const int64_t begin = bags_.begin(bag);
    const int64_t end = bags_.end(bag);
    if constexpr (!is_small_float<T>) {
      if (weights_ == nullptr) {
        const int64_t* index = bags_.indices + begin;
        lines_.add_rows(sum, table_, width_, index, end - begin, bags_.padding,
                        bags_.count - begin);
        return end - begin - std::count(index, index + (end - begin), bags_.padding);
      }
    }
    for (int64_t i = begin; i < end; ++i) {
      if (i + kAhead < bags_.count) {
        fetch(row(bags_.indices[i + kAhead]));
      }
      const int64_t index = bags_.indices[i];
      if (index == bags_.padding) {
        continue;
      }
      ++rows;
      const C* line = read_line(row(index), width_, spare);
      if (weights_ == nullptr) {
        lines_.add(sum, line, 1, width_);
      } else {
        lines_.add_scaled(sum, line, load_value(weights_[i]), width_);
      }
    }
    return rows;
  }

 private:
  void fetch(const T* line) const {
    for (int64_t byte = 0; byte < width_ * static_cast<int64_t>(sizeof(T)); byte += 64) {
      __builtin_prefetch(reinterpret_cast<const char*>(line) + byte);
    }
  }

  const T* table_;
  int64_t width_;
  const Bags& bags_;
  const T* weights_;
  const WindowLines<C>& lines_ = window_lines<C>();
};

// The maximum of a bag; NaN is greater than all.
template <typename T>
int64_t largest_of(T* made, int64_t* largest, const Summed<T>& table, const Bags& bags,
                   int64_t bag) {
  int64_t rows = 0;
  for (int64_t i = bags.begin(bag); i < bags.end(bag); ++i) {
    const int64_t index = bags.indices[i];
    if (index == bags.padding) {
      continue;
    }
    const T* line = table.row(index);
    for (int64_t d = 0; d < table.width(); ++d) {
      const auto value = load_value(line[d]);
      if (rows == 0 || value > load_value(made[d]) || value != value) {
        made[d] = line[d];
        largest[d] = index;
      }
    }
    ++rows;
  }
  return rows;
}

template <typename T>
void add_rows(T* made, const Tensor& grad, const Bags& bags, BagMode mode, const T* weights,
              const std::vector<int64_t>& frequency, int64_t rows) {
  using C = Compute<T>;
  const int64_t width = grad.size(1);
  const T* given = static_cast<const T*>(grad.data());
  std::vector<int64_t> sizes(static_cast<size_t>(bags.bags));
  for (int64_t b = 0; b < bags.bags; ++b) {
    sizes[static_cast<size_t>(b)] =
        bags.end(b) - bags.begin(b) -
        std::count(bags.indices + bags.begin(b), bags.indices + bags.end(b), bags.padding);
  }
  // Each thread adds to rows of its own, reading all the indices.
  const int64_t parts = std::min<int64_t>(num_threads(), 1 + bags.count * width / 32768);
  const int64_t share = (rows + parts - 1) / std::max<int64_t>(parts, 1);
  parallel_for(0, parts, 1, [&](int64_t first, int64_t last) {
    std::vector<C> spare(static_cast<size_t>(width));
    std::vector<C> sums(is_small_float<T> ? static_cast<size_t>((last - first) * share * width)
                                          : 0);
    C* to = sums.data() - (is_small_float<T> ? first * share * width : 0);
    if constexpr (!is_small_float<T>) {
      to = made;
    }
    const int64_t low = first * share;
    const int64_t high = std::min(last * share, rows);
    for (int64_t b = 0; b < bags.bags; ++b) {
      for (int64_t i = bags.begin(b); i < bags.end(b); ++i) {
        const int64_t index = bags.indices[i];
        if (index < low || index >= high || index == bags.padding) {
          continue;
        }
        C factor = weights == nullptr ? C{1} : load_value(weights[i]);
        if (mode == BagMode::Mean) {
          factor /= static_cast<C>(sizes[static_cast<size_t>(b)]);
        }
        if (!frequency.empty()) {
          factor /= static_cast<C>(frequency[static_cast<size_t>(index)]);
        }
        window_lines<C>().add_scaled(
            to + index * width, read_line(given + b * width, width, spare.data()), factor, width);
      }
    }
    if constexpr (is_small_float<T>) {
      for (int64_t r = low; r < high; ++r) {
        write_line(made + r * width, to + r * width, width);
      }
    }
  });
}

template <typename T>
void add_largest(T* made, const Tensor& grad, const Bags& bags, const Tensor& largest) {
  const int64_t width = grad.size(1);
  const T* given = static_cast<const T*>(grad.data());
  const auto* from = static_cast<const int64_t*>(largest.data());
  for (int64_t b = 0; b < bags.bags; ++b) {
    const auto* begin = bags.indices + bags.begin(b);
    const auto* end = bags.indices + bags.end(b);
    if (std::all_of(begin, end, [&](int64_t index) { return index == bags.padding; })) {
      continue;
    }
    for (int64_t d = 0; d < width; ++d) {
      T& sum = made[from[b * width + d] * width + d];
      sum = store_value<T>(load_value(sum) + load_value(given[b * width + d]));
    }
  }
}

}  // namespace

void embedding_bag(const Tensor& made, const Tensor& largest, int64_t* sizes, const Tensor& table,
                   const Bags& bags, BagMode mode, const Tensor& weights) {
  by_floating_dtype(table.dtype(), "embedding_bag", [&]<typename T>(T) {
    using C = Compute<T>;
    const Summed<T> rows(table, bags, weights);
    const int64_t width = rows.width();
    T* out = static_cast<T*>(made.data());
    const int64_t cost = std::max<int64_t>(1, width * bags.count / std::max<int64_t>(bags.bags, 1));
    parallel_for(0, bags.bags, std::max<int64_t>(1, 32768 / cost), [&](int64_t begin, int64_t end) {
      std::vector<C> sum(static_cast<size_t>(width));
      std::vector<C> spare(static_cast<size_t>(width));
      for (int64_t b = begin; b < end; ++b) {
        if (mode == BagMode::Max) {
          auto* from = static_cast<int64_t*>(largest.data()) + b * width;
          std::fill_n(out + b * width, width, T{});
          std::fill_n(from, width, int64_t{0});
          sizes[b] = largest_of(out + b * width, from, rows, bags, b);
          continue;
        }
        C* line = sum.data();
        if constexpr (!is_small_float<T>) {
          line = out + b * width;
        }
        sizes[b] = rows.add(line, spare.data(), b);
        if (mode == BagMode::Mean && sizes[b] != 0) {
          for (int64_t d = 0; d < width; ++d) {
            line[d] /= static_cast<C>(sizes[b]);
          }
        }
        if constexpr (is_small_float<T>) {
          write_line(out + b * width, line, width);
        }
      }
    });
  });
}

void embedding_bag_gradient(const Tensor& made, const Tensor& grad, const Bags& bags, BagMode mode,
                            const Tensor& weights, bool by_frequency, const Tensor& largest) {
  by_floating_dtype(made.dtype(), "embedding_bag", [&]<typename T>(T) {
    T* out = static_cast<T*>(made.data());
    std::fill_n(out, made.numel(), T{});
    if (mode == BagMode::Max) {
      return add_largest(out, grad, bags, largest);
    }
    std::vector<int64_t> frequency;
    if (by_frequency) {
      frequency.resize(static_cast<size_t>(made.size(0)));
      for (int64_t i = 0; i < bags.count; ++i) {
        ++frequency[static_cast<size_t>(bags.indices[i])];
      }
    }
    const T* given = weights.defined() ? static_cast<const T*>(weights.data()) : nullptr;
    add_rows(out, grad, bags, mode, given, frequency, made.size(0));
  });
}

void embedding_bag_weights_gradient(const Tensor& made, const Tensor& grad, const Tensor& table,
                                    const Bags& bags) {
  by_floating_dtype(table.dtype(), "embedding_bag", [&]<typename T>(T) {
    T* out = static_cast<T*>(made.data());
    const T* given = static_cast<const T*>(grad.data());
    const T* rows = static_cast<const T*>(table.data());
    const int64_t width = table.size(1);
    std::fill_n(out, bags.count, T{});
    parallel_for(0, bags.bags, 64, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        for (int64_t i = bags.begin(b); i < bags.end(b); ++i) {
          if (bags.indices[i] == bags.padding) {
            continue;
          }
          const T* row = rows + bags.indices[i] * width;
          Compute<T> sum = 0;
          for (int64_t d = 0; d < width; ++d) {
            sum += load_value(row[d]) * load_value(given[b * width + d]);
          }
          out[i] = store_value<T>(sum);
        }
      }
    });
  });
}

}  // namespace rushlight::kernels
