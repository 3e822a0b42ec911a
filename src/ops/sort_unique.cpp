// Distinct elements and slices.
#include <rushlight/generated/functions.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/copy.h"
#include "kernels/index.h"
#include "kernels/sort.h"
#include "kernels/sort_key.h"
#include "ops/missing_gradient.h"
#include "ops/operator.h"
#include "ops/views.h"

namespace rushlight {
namespace {

using Triple = std::tuple<Tensor, Tensor, Tensor>;

// Runs of equal items: where each begins (in `order`), and the run of each item.
struct Runs {
  std::vector<int64_t> starts;
  std::vector<int64_t> run_of;

  template <typename Same>
  Runs(const std::vector<int64_t>& order, Same&& same) : run_of(order.size()) {
    for (size_t i = 0; i < order.size(); ++i) {
      if (i == 0 || !same(order[i - 1], order[i])) {
        starts.push_back(static_cast<int64_t>(i));
      }
      run_of[static_cast<size_t>(order[i])] = static_cast<int64_t>(starts.size()) - 1;
    }
  }
};

Tensor int_tensor(const std::vector<int64_t>& values) {
  Tensor made = make_tensor({static_cast<int64_t>(values.size())}, DType::Int64);
  if (!values.empty()) {
    std::memcpy(made.data(), values.data(), values.size() * sizeof(int64_t));
  }
  return made;
}

Tensor counts_of(const Runs& runs, size_t total) {
  std::vector<int64_t> counts;
  for (size_t i = 0; i < runs.starts.size(); ++i) {
    const auto end = i + 1 < runs.starts.size() ? runs.starts[i + 1] : static_cast<int64_t>(total);
    counts.push_back(end - runs.starts[i]);
  }
  return int_tensor(counts);
}

Tensor nothing() {
  return make_tensor({0}, DType::Int64);
}

void refuse_meta(const Tensor& self, std::string_view op) {
  if (self.is_meta()) {
    fail(ErrorKind::NotImplemented, op,
         "the shape of the result depends on the elements, which meta "
         "tensors do not have");
  }
}

std::vector<int64_t> plain_order(int64_t count) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// Whole numbers that lie near each other are looked up in a table of their counts: no order is
// needed. Undefined where they are too far apart for that to pay.
template <typename T>
Triple unique_by_table(const Tensor& flat, IntArrayRef sizes, bool inverse, bool counts) {
  constexpr uint64_t kLeast = 1 << 12;
  const T* values = static_cast<const T*>(flat.data());
  const int64_t total = flat.numel();
  const auto [low, high] = std::minmax_element(values, values + total);
  const auto low_bits = static_cast<uint64_t>(*low);
  const uint64_t range = static_cast<uint64_t>(*high) - low_bits;
  if (range >= std::max(kLeast, 2 * static_cast<uint64_t>(total))) {
    return {};
  }
  const auto place = [&](T value) {
    return static_cast<size_t>(static_cast<uint64_t>(value) - low_bits);
  };
  std::vector<int64_t> table(static_cast<size_t>(range) + 1);
  for (int64_t i = 0; i < total; ++i) {
    ++table[place(values[i])];
  }
  std::vector<int64_t> numbers;
  std::vector<int64_t> found;  // their counts
  for (size_t i = 0; i < table.size(); ++i) {
    if (table[i] != 0) {
      numbers.push_back(static_cast<int64_t>(low_bits + i));
      found.push_back(std::exchange(table[i], static_cast<int64_t>(found.size())));
    }
  }
  const Tensor distinct = make_tensor({static_cast<int64_t>(numbers.size())}, flat.dtype());
  std::transform(numbers.begin(), numbers.end(), static_cast<T*>(distinct.data()),
                 [](int64_t number) { return static_cast<T>(number); });
  Tensor where = nothing();
  if (inverse) {
    where = make_tensor(sizes, DType::Int64);
    std::transform(values, values + total, where.data_ptr<int64_t>(),
                   [&](T value) { return table[place(value)]; });
  }
  return {distinct, where, counts ? int_tensor(found) : nothing()};
}

// Distinct elements of the flattened tensor, of all or of neighbours only. NaN equals nothing.
Triple unique_elements(const Tensor& self, bool neighbours, bool inverse, bool counts,
                       std::string_view op) {
  refuse_meta(self, op);
  const Tensor flat = kernels::as_contiguous(kernels::as_truths(self));
  if (!neighbours && self.numel() != 0) {
    Triple made;
    kernels::by_real_dtype(self.dtype(), op, [&]<typename T>(T) {
      if constexpr (std::is_integral_v<T>) {
        made = unique_by_table<T>(flat, self.sizes(), inverse, counts);
      }
    });
    if (std::get<0>(made).defined()) {
      return made;
    }
  }
  std::vector<int64_t> order = plain_order(self.numel());
  if (!neighbours && self.numel() != 0) {
    const Tensor sorted = make_tensor({1, self.numel()}, DType::Int64);
    kernels::sort_rows(make_view(flat, {1, self.numel()}, {self.numel(), 1}, flat.storage_offset()),
                       sorted, false, op);
    std::memcpy(order.data(), sorted.data(), order.size() * sizeof(int64_t));
  }
  Triple made;
  kernels::by_real_dtype(self.dtype(), op, [&]<typename T>(T) {
    const T* values = static_cast<const T*>(flat.data());
    const Runs runs(order, [&](int64_t a, int64_t b) {
      return kernels::sort_key(values[a]) == kernels::sort_key(values[b]) &&
             !kernels::is_nan(values[a]);
    });
    const Tensor distinct = make_tensor({static_cast<int64_t>(runs.starts.size())}, self.dtype());
    T* to = static_cast<T*>(distinct.data());
    for (size_t i = 0; i < runs.starts.size(); ++i) {
      to[i] = values[order[static_cast<size_t>(runs.starts[i])]];
    }
    const Tensor where = inverse ? int_tensor(runs.run_of) : nothing();
    made = {distinct,
            inverse ? make_view(where, self.sizes(), contiguous_strides(self.sizes()), 0) : where,
            counts ? counts_of(runs, order.size()) : nothing()};
  });
  return made;
}

// Distinct slices along `dim`, in lexicographic order or of neighbours only.
Triple unique_slices(const Tensor& self, int64_t dim, bool neighbours, bool inverse, bool counts,
                     std::string_view op) {
  refuse_meta(self, op);
  if (self.dim() == 0) {
    fail(ErrorKind::Runtime, op, "There are 0-dim tensors, which have no slices");
  }
  const int64_t at = wrap_dim(dim, self.dim(), op);
  const int64_t slices = self.size(at);
  // Slices are compared in the order of their other dimensions.
  IntList in_front{at};
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d != at) {
      in_front.push_back(d);
    }
  }
  const Tensor first = kernels::as_contiguous(views::permute(kernels::as_truths(self), in_front));
  const int64_t width = slices == 0 ? 0 : self.numel() / slices;
  if (slices != 0 && width == 0) {
    fail(ErrorKind::Runtime, op,
         "There are 0 sized dimensions, and they aren't selected, so "
         "unique cannot be applied");
  }
  std::vector<int64_t> order = plain_order(slices);
  std::vector<int64_t> kept;
  Triple made;
  kernels::by_real_dtype(self.dtype(), op, [&]<typename T>(T) {
    const T* values = static_cast<const T*>(first.data());
    auto compare = [&](int64_t a, int64_t b) {
      for (int64_t i = 0; i < width; ++i) {
        const auto x = kernels::sort_key(values[a * width + i]);
        const auto y = kernels::sort_key(values[b * width + i]);
        if (x != y) {
          return x < y ? -1 : 1;
        }
      }
      return 0;
    };
    if (!neighbours) {
      std::stable_sort(order.begin(), order.end(),
                       [&](int64_t a, int64_t b) { return compare(a, b) < 0; });
    }
    const Runs runs(order, [&](int64_t a, int64_t b) { return compare(a, b) == 0; });
    for (int64_t start : runs.starts) {
      kept.push_back(order[static_cast<size_t>(start)]);
    }
    made = {Tensor(), inverse ? int_tensor(runs.run_of) : nothing(),
            counts ? counts_of(runs, order.size()) : nothing()};
  });
  const DoorGuard guard(0, ~0U);
  std::get<0>(made) = index_select(self, at, int_tensor(kept));
  return made;
}

}  // namespace

RUSHLIGHT_OPERATORS(sort_unique) {
  op("_unique2(Tensor self, bool sorted=True, bool return_inverse=False, "
     "bool return_counts=False) -> (Tensor, Tensor, Tensor)",
     kFunction)
      .doc(
          "The distinct elements in ascending order; for each element, which of them it is; how "
          "often each occurs.")
      .kernel([](const Tensor& self, bool, bool inverse, bool counts) {
        return unique_elements(self, false, inverse, counts, "unique");
      })
      .gradient("", missing_gradient);
  op("_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)",
     kFunction)
      .doc("The distinct elements in ascending order; for each element, which of them it is.")
      .kernel([](const Tensor& self, bool, bool inverse) {
        const auto [distinct, where, counts] =
            unique_elements(self, false, inverse, false, "unique");
        return std::tuple<Tensor, Tensor>(distinct, where);
      })
      .gradient("", missing_gradient);
  op("unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, "
     "bool return_counts=False) -> (Tensor, Tensor, Tensor)",
     kFunction)
      .doc("The distinct slices along a dimension in lexicographic order.")
      .kernel([](const Tensor& self, int64_t dim, bool, bool inverse, bool counts) {
        return unique_slices(self, dim, false, inverse, counts, "unique_dim");
      })
      .gradient("", missing_gradient);
  op("unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, "
     "int? dim=None) -> (Tensor, Tensor, Tensor)",
     kFunction)
      .doc("The first of each run of equal elements, or of equal slices along a dimension.")
      .kernel([](const Tensor& self, bool inverse, bool counts, std::optional<int64_t> dim) {
        return dim ? unique_slices(self, *dim, true, inverse, counts, "unique_consecutive")
                   : unique_elements(self, true, inverse, counts, "unique_consecutive");
      })
      .gradient("", missing_gradient);
}

}  // namespace rushlight
