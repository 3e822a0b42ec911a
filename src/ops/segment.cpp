// Reductions of segments of a dimension, which lie one behind the other.
#include <rushlight/generated/functions.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/copy.h"
#include "ops/gradient.h"
#include "ops/operator.h"

namespace rushlight {
namespace {

constexpr std::string_view kName = "segment_reduce(): ";

enum class Reduce : uint8_t { Sum, Mean, Max, Min, Prod };

Reduce reduce_named(std::string_view name) {
  constexpr std::pair<std::string_view, Reduce> kNames[] = {
      {"sum", Reduce::Sum}, {"mean", Reduce::Mean}, {"max", Reduce::Max},   {"amax", Reduce::Max},
      {"min", Reduce::Min}, {"amin", Reduce::Min},  {"prod", Reduce::Prod},
  };
  for (const auto& [text, reduce] : kNames) {
    if (text == name) {
      return reduce;
    }
  }
  fail(ErrorKind::Runtime, "", "reduce argument must be either sum, prod, mean, amax or amin, got ",
       name);
}

// data (outer..., axis, inner...) and where its segments lie.
struct Segments {
  int64_t outer = 1;
  int64_t length = 0;  // of the axis
  int64_t inner = 1;
  int64_t count = 0;            // segments of each outer index
  std::vector<int64_t> starts;  // (outer, count + 1)
  IntList result_sizes;

  int64_t start(int64_t row, int64_t segment) const {
    return starts[static_cast<size_t>(row * (count + 1) + segment)];
  }
};

std::vector<int64_t> integers_of(const Tensor& x) {
  if (x.dtype() != DType::Int64 && x.dtype() != DType::Int32) {
    fail(ErrorKind::NotImplemented, "", "\"_segment_reduce_lengths_cpu_kernel1\" not implemented ",
         "for '", scalar_type_name(x.dtype()), "'");
  }
  const Tensor dense = contiguous(to(x, DType::Int64));
  const auto* data = static_cast<const int64_t*>(dense.data());
  return {data, data + dense.numel()};
}

void set_starts_by_length(Segments& made, const Tensor& lengths, bool checks) {
  const std::vector<int64_t> given = integers_of(lengths);
  for (int64_t row = 0; row < made.outer; ++row) {
    int64_t at = 0;
    made.starts.push_back(at);
    for (int64_t i = 0; i < made.count; ++i) {
      const int64_t length = given[static_cast<size_t>(row * made.count + i)];
      if (length < 0) {
        fail(ErrorKind::Runtime, "", "lengths contains negative value!");
      }
      at += length;
      made.starts.push_back(at);
    }
    if (at > made.length || (checks && at != made.length)) {
      fail(ErrorKind::Runtime, "", kName,
           "Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when "
           "!unsafe.");
    }
  }
}

void set_starts_by_offset(Segments& made, const Tensor& offsets) {
  made.starts = integers_of(offsets);
  for (int64_t row = 0; row < made.outer; ++row) {
    for (int64_t i = 0; i <= made.count; ++i) {
      const int64_t before = i == 0 ? 0 : made.start(row, i - 1);
      if (made.start(row, i) < before || made.start(row, i) > made.length) {
        fail(ErrorKind::Runtime, "", kName, "Expected offsets to ascend from 0 to at most ",
             made.length, ", got ", made.start(row, i), " after ", before);
      }
    }
  }
}

Segments segments_of(const Tensor& data, const Tensor& lengths, const Tensor& offsets, int64_t axis,
                     bool checks) {
  if (!lengths.defined() && !offsets.defined()) {
    fail(ErrorKind::Runtime, "", kName, "Either lengths or offsets must be defined.");
  }
  const Tensor& given = offsets.defined() ? offsets : lengths;
  const int64_t at = wrap_dim(axis, data.dim(), "segment_reduce");
  const char* name = offsets.defined() ? "offsets" : "lengths";
  if (at != given.dim() - 1) {
    fail(ErrorKind::Runtime, "", kName, "Expected axis to be the last dimension of ", name,
         " but got ", at, ".");
  }
  Segments made;
  made.length = data.size(at);
  for (int64_t dim = 0; dim < data.dim(); ++dim) {
    if (dim < at && given.size(dim) != data.size(dim)) {
      fail(ErrorKind::Runtime, "", kName, "Expected ", name, " of the sizes of data before axis ",
           at, ", got ", given.sizes(), " beside ", data.sizes());
    }
    (dim < at ? made.outer : made.inner) *= dim == at ? 1 : data.size(dim);
  }
  made.count = given.size(-1) - (offsets.defined() ? 1 : 0);
  if (made.count < 0) {
    fail(ErrorKind::Runtime, "", kName, "Expected offsets to have at least one element, got ",
         given.sizes());
  }
  made.result_sizes = IntList(data.sizes());
  made.result_sizes[static_cast<size_t>(at)] = made.count;
  if (given.is_meta() || data.is_meta()) {
    return made;
  }
  if (offsets.defined()) {
    set_starts_by_offset(made, offsets);
  } else {
    set_starts_by_length(made, lengths, checks);
  }
  return made;
}

double first_value(Reduce reduce, const std::optional<Scalar>& initial) {
  if (initial) {
    return initial->to_double();
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (reduce) {
    case Reduce::Max:
      return -kInfinity;
    case Reduce::Min:
      return kInfinity;
    case Reduce::Prod:
      return 1;
    case Reduce::Sum:
    case Reduce::Mean:
      break;
  }
  return 0;
}

double combined(Reduce reduce, double so_far, double x) {
  switch (reduce) {
    case Reduce::Max:
      return std::isnan(so_far) || so_far > x ? so_far : x;
    case Reduce::Min:
      return std::isnan(so_far) || so_far < x ? so_far : x;
    case Reduce::Prod:
      return so_far * x;
    case Reduce::Sum:
    case Reduce::Mean:
      break;
  }
  return so_far + x;
}

double reduced(Reduce reduce, const double* line, int64_t count, int64_t step,
               const std::optional<Scalar>& initial) {
  double value = first_value(reduce, initial);
  for (int64_t i = 0; i < count; ++i) {
    value = combined(reduce, value, line[i * step]);
  }
  if (reduce != Reduce::Mean || (count == 0 && initial)) {
    return value;
  }
  return count == 0 ? std::numeric_limits<double>::quiet_NaN() : value / static_cast<double>(count);
}

// Calls `visit(first element, elements, first position of the result)` for each segment of each
// inner index.
template <typename F>
void each_segment(const Segments& s, F&& visit) {
  for (int64_t row = 0; row < s.outer; ++row) {
    for (int64_t segment = 0; segment < s.count; ++segment) {
      const int64_t start = s.start(row, segment);
      const int64_t count = s.start(row, segment + 1) - start;
      for (int64_t i = 0; i < s.inner; ++i) {
        visit((row * s.length + start) * s.inner + i, count,
              (row * s.count + segment) * s.inner + i);
      }
    }
  }
}

Tensor wide(const Tensor& x) {
  return contiguous(to(x, DType::Float64));
}

const double* doubles(const Tensor& x) {
  return static_cast<const double*>(x.data());
}

Tensor segment_reduce_of(const Tensor& data, std::string_view reduce, const Tensor& lengths,
                         const Tensor& indices, const Tensor& offsets, int64_t axis, bool unsafe,
                         std::optional<Scalar> initial) {
  DoorGuard guard(0, ~uint32_t{0});
  const Reduce kind = reduce_named(reduce);
  if (!data.is_floating_point()) {
    fail(ErrorKind::NotImplemented, "", "\"_segment_reduce_cpu\" not implemented for '",
         scalar_type_name(data.dtype()), "'");
  }
  if (indices.defined()) {
    fail(ErrorKind::Runtime, "", kName, "indices based reduction is not supported yet.");
  }
  const Segments s = segments_of(data, lengths, offsets, axis, !unsafe);
  if (data.is_meta()) {
    return make_tensor(s.result_sizes, data.dtype(), data.device());
  }
  const Tensor from = wide(data);
  const Tensor made = make_tensor(s.result_sizes, DType::Float64);
  each_segment(s, [&](int64_t first, int64_t count, int64_t at) {
    static_cast<double*>(made.data())[at] =
        reduced(kind, doubles(from) + first, count, s.inner, initial);
  });
  return kernels::as_dtype(made, data.dtype());
}

// The product of the other elements of a segment, so that zeros do no harm.
double product_but(const double* line, int64_t count, int64_t step, int64_t left_out,
                   double initial) {
  double product = initial;
  for (int64_t i = 0; i < count; ++i) {
    product *= i == left_out ? 1.0 : line[i * step];
  }
  return product;
}

// Gradients of the elements of one segment, from that of its result.
struct SegmentGradient {
  Reduce reduce;
  double initial;
  int64_t step;

  void set(const double* line, int64_t count, double result, double grad, double* into) const {
    int64_t equals = 0;
    for (int64_t i = 0; i < count; ++i) {
      equals += is_extreme(line[i * step], result) ? 1 : 0;
    }
    for (int64_t i = 0; i < count; ++i) {
      const double x = line[i * step];
      double share = grad;
      if (reduce == Reduce::Mean) {
        share = grad / static_cast<double>(count);
      } else if (reduce == Reduce::Prod) {
        share = grad * (x == 0 || !std::isfinite(x) ? product_but(line, count, step, i, initial)
                                                    : result / x);
      } else if (reduce != Reduce::Sum) {
        share = is_extreme(x, result) ? grad / static_cast<double>(equals) : 0;
      }
      into[i * step] = share;
    }
  }

  static bool is_extreme(double x, double result) { return std::isnan(x) || x == result; }
};

Tensor segment_gradient(const Tensor& grad, const Tensor& output, const Tensor& data,
                        std::string_view reduce, const Tensor& lengths, const Tensor& offsets,
                        int64_t axis, std::optional<Scalar> initial) {
  DoorGuard guard(0, ~uint32_t{0});
  const Segments s = segments_of(data, lengths, offsets, axis, false);
  if (data.is_meta()) {
    return make_tensor(data.sizes(), data.dtype(), data.device());
  }
  const Tensor from = wide(data);
  const Tensor results = wide(output);
  const Tensor grads = wide(grad);
  const Tensor made = kernels::make_zeros(data.sizes(), DType::Float64);
  const Reduce kind = reduce_named(reduce);
  const SegmentGradient rule{kind, first_value(kind, initial), s.inner};
  each_segment(s, [&](int64_t first, int64_t count, int64_t at) {
    rule.set(doubles(from) + first, count, doubles(results)[at], doubles(grads)[at],
             static_cast<double*>(made.data()) + first);
  });
  return kernels::as_dtype(made, data.dtype());
}

std::optional<Scalar> initial_of(const Gradient& g) {
  return g.is_none(7) ? std::nullopt : std::optional<Scalar>(g.scalar(7));
}

}  // namespace

RUSHLIGHT_OPERATORS(segment) {
  op("segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, "
     "Tensor? offsets=None, int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor",
     kFunction)
      .doc(
          "Reduces segments of a dimension (\"sum\", \"mean\", \"max\", \"min\", \"prod\"), "
          "given by their lengths or by where they begin and end.")
      .kernel(segment_reduce_of)
      .gradient("data result lengths offsets", [](Gradient& g) {
        g.set(0, _segment_reduce_backward(g.grad(), g.result(), g.tensor(0), g.text(1), g.tensor(2),
                                          g.tensor(4), g.integer(5), initial_of(g)));
      });
  op("_segment_reduce_backward(Tensor grad, Tensor output, Tensor data, str reduce, *, "
     "Tensor? lengths=None, Tensor? offsets=None, int axis=0, Scalar? initial=None) -> Tensor",
     kInternal)
      .doc("The gradient of segment_reduce by its data.")
      .kernel(segment_gradient)
      .not_differentiable();
}

}  // namespace rushlight
