// Searching ordered values, counting, membership.
#include <rushlight/generated/functions.h>

#include <algorithm>

#include "kernels/copy.h"
#include "kernels/counting.h"
#include "kernels/element_type.h"
#include "kernels/index_nonzero.h"
#include "kernels/sort.h"
#include "kernels/sort_key.h"
#include "ops/dtype_checks.h"
#include "ops/missing_gradient.h"
#include "ops/operator.h"
#include "ops/promotion.h"
#include "runtime/parallel.h"

namespace rushlight {
namespace {

DType common_dtype(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() ? a.dtype() : promote(a.dtype(), b.dtype());
}

// How many of `count` ordered values lie before `value`: below it, or with `right` not above it.
template <typename T>
int64_t search(const T* ordered, const int64_t* sorter, int64_t count, T value, bool right) {
  const auto wanted = kernels::load_value(value);
  int64_t low = 0;
  int64_t high = count;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    const auto at = kernels::load_value(ordered[sorter == nullptr ? middle : sorter[middle]]);
    if (right ? !(at > wanted) : !(at >= wanted)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// The same for values [begin, end) of ordered rows of `count`, `width` values to each. Which half
// it will be cannot be foreseen: without branches, several searches are under way at a time. Rows
// that end in NaN are not in order for what compares with them.
template <bool right, typename T>
void search_rows(const T* ordered, int64_t count, int64_t width, const T* values, int64_t begin,
                 int64_t end, int64_t* made) {
  while (begin < end) {
    const int64_t row = begin / width;
    const T* line = ordered + row * count;
    const int64_t stop = std::min(end, (row + 1) * width);
    const bool plain = count == 0 || kernels::is_nan(line[count - 1]);
    for (; begin < stop; ++begin) {
      if (plain) {
        made[begin] = search(line, nullptr, count, values[begin], right);
        continue;
      }
      const auto wanted = kernels::load_value(values[begin]);
      const auto before = [&](const T* place) {
        const auto at = kernels::load_value(*place);
        return right ? !(at > wanted) : !(at >= wanted);
      };
      const T* low = line;
      for (int64_t left = count; left > 1;) {
        const int64_t half = left / 2;
        low += before(low + half - 1) ? half : 0;
        left -= half;
      }
      made[begin] = low - line + (before(low) ? 1 : 0);
    }
  }
}

bool search_side(bool right, std::optional<std::string_view> side) {
  if (!side) {
    return right;
  }
  if (*side != "left" && *side != "right") {
    fail(ErrorKind::Runtime, "",
         "torch.searchsorted(): side can only be 'left' or 'right' but got ", *side);
  }
  if (right && *side == "left") {
    fail(ErrorKind::Runtime, "",
         "torch.searchsorted(): side and right can't be set to opposites, "
         "got side of left while right was True");
  }
  return right || *side == "right";
}

void check_sequences(const Tensor& sequence, const Tensor& values, const Tensor& sorter) {
  if (sequence.dim() == 0) {
    fail(ErrorKind::Runtime, "",
         "torch.searchsorted(): input value can be a scalar only when "
         "boundaries tensor dimension is 1, but we got boundaries tensor dim(0)");
  }
  bool fits = sequence.dim() == 1;
  if (!fits && sequence.dim() == values.dim()) {
    fits = true;
    for (int64_t d = 0; d + 1 < sequence.dim(); ++d) {
      fits = fits && sequence.size(d) == values.size(d);
    }
  }
  if (!fits) {
    fail(ErrorKind::Runtime, "",
         "torch.searchsorted(): boundaries tensor should be 1 dimension or "
         "the first N-1 dimensions of boundaries tensor and input value tensor must match, but we "
         "got boundaries tensor ",
         sequence.sizes(), " and input value tensor ", values.sizes());
  }
  if (sorter.defined() && sorter.sizes() != sequence.sizes()) {
    fail(ErrorKind::Runtime, "",
         "torch.searchsorted(): boundary and sorter must have the same "
         "size, but got boundary tensor ",
         sequence.sizes(), "and got sorter tensor ", sorter.sizes());
  }
  if (sorter.defined() && sorter.dtype() != DType::Int64) {
    fail(ErrorKind::Runtime, "",
         "torch.searchsorted(): sorter must be a tensor of long dtype but "
         "got dtype ",
         scalar_type_name(sorter.dtype()));
  }
}

void check_sorter(const Tensor& sorter, int64_t length) {
  const auto* at = sorter.data_ptr<int64_t>();
  for (int64_t i = 0; i < sorter.numel(); ++i) {
    if (at[i] < 0 || at[i] >= length) {
      fail(ErrorKind::Runtime, "", "torch.searchsorted(): sorter index out of range: ", at[i],
           " for a sequence of length ", length);
    }
  }
}

Tensor search_all(const Tensor& sequence, const Tensor& values, bool out_int32, bool right,
                  const Tensor& sorter) {
  const Tensor made = make_tensor(values.sizes(), DType::Int64, values.device());
  if (!made.is_meta() && made.numel() != 0) {
    const DType dtype = common_dtype(sequence, values);
    const Tensor ordered =
        kernels::as_contiguous(kernels::as_truths(kernels::as_dtype(sequence, dtype)));
    const Tensor wanted =
        kernels::as_contiguous(kernels::as_truths(kernels::as_dtype(values, dtype)));
    const Tensor given = sorter.defined() ? kernels::as_contiguous(sorter) : Tensor();
    const int64_t length = sequence.sizes().back();
    const int64_t width = sequence.dim() == 1 ? made.numel() : values.sizes().back();
    if (given.defined()) {
      check_sorter(given, length);
    }
    auto* to = made.data_ptr<int64_t>();
    kernels::by_real_dtype(dtype, "searchsorted", [&]<typename T>(T) {
      const T* from = static_cast<const T*>(wanted.data());
      const T* lines = static_cast<const T*>(ordered.data());
      parallel_for(0, made.numel(), 2048, [&](int64_t begin, int64_t end) {
        if (!given.defined()) {
          const auto rows = right ? search_rows<true, T> : search_rows<false, T>;
          return rows(lines, length, width, from, begin, end, to);
        }
        for (int64_t i = begin; i < end; ++i) {
          const int64_t row = i / width;
          to[i] = search(lines + row * length, given.data_ptr<int64_t>() + row * length, length,
                         from[i], right);
        }
      });
    });
  }
  return out_int32 ? kernels::as_dtype(made, DType::Int32) : made;
}

Tensor searchsorted_tensor(const Tensor& sequence, const Tensor& values, bool out_int32, bool right,
                           std::optional<std::string_view> side, const Tensor& sorter) {
  const bool from_right = search_side(right, side);
  check_sequences(sequence, values, sorter);
  return search_all(sequence, values, out_int32, from_right, sorter);
}

Tensor number_like(const Scalar& number, const Tensor& other) {
  const bool same = number.is_floating_point() ? is_floating(other.dtype()) : true;
  return make_scalar_tensor(number, same ? other.dtype() : default_dtype());
}

Tensor bucketize_tensor(const Tensor& self, const Tensor& boundaries, bool out_int32, bool right) {
  if (boundaries.dim() != 1) {
    fail(ErrorKind::Runtime, "", "boundaries tensor must be 1 dimension, but got dim(",
         boundaries.dim(), ")");
  }
  return search_all(boundaries, self, out_int32, right, Tensor());
}

void check_bincount(const Tensor& self, const Tensor& weights, int64_t minlength) {
  if (!is_integral(self.dtype(), false)) {
    fail(ErrorKind::NotImplemented, "", "\"bincount_cpu\" not implemented for '",
         scalar_type_name(self.dtype()), "'");
  }
  if (minlength < 0) {
    fail(ErrorKind::Runtime, "bincount", "minlength should be >= 0, got ", minlength);
  }
  if (self.dim() != 1 && !(self.numel() == 0)) {
    fail(ErrorKind::Runtime, "", "bincount only supports 1-d non-negative integral inputs.");
  }
  if (weights.defined() && (weights.dim() != 1 || weights.numel() != self.numel())) {
    fail(ErrorKind::Runtime, "", "weights should be 1-d and have the same length as input");
  }
}

Tensor bincount_of(const Tensor& self, const Tensor& weights, int64_t minlength) {
  check_bincount(self, weights, minlength);
  const Tensor values = kernels::as_contiguous(kernels::as_dtype(self, DType::Int64));
  const auto greatest = static_cast<int64_t>(kernels::greatest_unsigned(values));
  if (greatest < 0) {
    fail(ErrorKind::Runtime, "", "bincount only supports 1-d non-negative integral inputs.");
  }
  const int64_t size =
      values.numel() == 0 ? minlength : std::max(minlength, checked_add(greatest, 1, "bincount"));
  if (!weights.defined()) {
    return kernels::count_values(values, size);
  }
  const DType dtype = weights.dtype() == DType::Float32 ? DType::Float32 : DType::Float64;
  return kernels::sum_by_value(values, kernels::as_contiguous(kernels::as_dtype(weights, dtype)),
                               size);
}

// Membership by search in the sorted test elements. NaN is in no set.
Tensor is_in(const Tensor& elements, const Tensor& tests, bool, bool invert) {
  const Tensor made = make_tensor(elements.sizes(), DType::Bool, elements.device());
  if (made.is_meta()) {
    return made;
  }
  const DType dtype = common_dtype(elements, tests);
  const Tensor asked =
      kernels::as_contiguous(kernels::as_truths(kernels::as_dtype(elements, dtype)));
  const Tensor known = kernels::as_contiguous(kernels::as_truths(kernels::as_dtype(tests, dtype)));
  kernels::by_real_dtype(dtype, "isin", [&]<typename T>(T) {
    std::vector<kernels::Key<T>> keys;
    for (int64_t i = 0; i < known.numel(); ++i) {
      const T value = static_cast<const T*>(known.data())[i];
      if (!kernels::is_nan(value)) {
        keys.push_back(kernels::sort_key(value));
      }
    }
    std::sort(keys.begin(), keys.end());
    const T* from = static_cast<const T*>(asked.data());
    bool* to = made.data_ptr<bool>();
    parallel_for(0, made.numel(), 4096, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const bool found = !kernels::is_nan(from[i]) &&
                           std::binary_search(keys.begin(), keys.end(), kernels::sort_key(from[i]));
        to[i] = found != invert;
      }
    });
  });
  return made;
}

Tensor count_nonzero_dims(const Tensor& self, IntArrayRef dims) {
  return sum(ne(self, Scalar(0)), dims);
}

}  // namespace

RUSHLIGHT_OPERATORS(sort_search) {
  op("searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, "
     "bool right=False, str? side=None, Tensor? sorter=None) -> Tensor",
     kFunction | kOut)
      .doc(
          "Where each value would go in its ordered row, before equal elements or with `right` "
          "behind them.")
      .kernel(searchsorted_tensor)
      .not_differentiable()
      .check(expect_not_bool);
  op("searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, "
     "bool right=False, str? side=None, Tensor? sorter=None) -> Tensor",
     kFunction | kOut)
      .doc("The same for one number.")
      .kernel([](const Tensor& sequence, Scalar value, bool out_int32, bool right,
                 std::optional<std::string_view> side, const Tensor& sorter) {
        return searchsorted_tensor(sequence, number_like(value, sequence), out_int32, right, side,
                                   sorter);
      })
      .not_differentiable();
  op("bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) "
     "-> Tensor",
     kFunction | kOut)
      .doc("The bucket of each value between ordered boundaries.")
      .kernel(bucketize_tensor)
      .not_differentiable()
      .check(expect_not_bool);
  op("bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) "
     "-> Tensor",
     kFunction)
      .doc("The same for one number.")
      .kernel([](Scalar self, const Tensor& boundaries, bool out_int32, bool right) {
        return bucketize_tensor(number_like(self, boundaries), boundaries, out_int32, right);
      })
      .not_differentiable();
  op("bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor",
     kFunction | kMethod)
      .doc("How often each number from 0 on occurs, or the sum of its weights.")
      .kernel(bincount_of)
      .gradient("", missing_gradient);
  op("isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, "
     "bool invert=False) -> Tensor",
     kFunction | kOut)
      .doc("Whether each element is one of the test elements.")
      .kernel(is_in)
      .not_differentiable();
  op("isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, "
     "bool invert=False) -> Tensor",
     kFunction | kOut)
      .doc("Whether each element is the number.")
      .kernel([](const Tensor& elements, Scalar test, bool unique, bool invert) {
        return is_in(elements, number_like(test, elements), unique, invert);
      })
      .not_differentiable();
  op("isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, "
     "bool invert=False) -> Tensor",
     kFunction | kOut)
      .doc("Whether the number is one of the test elements.")
      .kernel([](Scalar element, const Tensor& tests, bool unique, bool invert) {
        return is_in(number_like(element, tests), tests, unique, invert);
      })
      .not_differentiable();
  op("count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor", kFunction | kMethod)
      .doc("How many elements along dimensions are not zero.")
      .composition(count_nonzero_dims)
      .node("CountNonzeroBackward0");  // seen whole: nothing inside has a gradient
  op("count_nonzero(Tensor self, int? dim=None) -> Tensor", kFunction | kMethod)
      .doc("How many elements, or elements along a dimension, are not zero.")
      .composition([](const Tensor& self, std::optional<int64_t> dim) {
        return dim ? count_nonzero_dims(self, {*dim}) : sum(ne(self, Scalar(0)));
      })
      .node("CountNonzeroBackward1");
}

}  // namespace rushlight
