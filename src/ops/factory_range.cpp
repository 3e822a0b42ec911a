// Fresh tensors of regular contents: ranges, identity matrices, indices of triangles.
#include <rushlight/generated/functions.h>

#include <algorithm>
#include <cmath>

#include "kernels/copy.h"
#include "kernels/index_sequence.h"
#include "kernels/sequence.h"
#include "ops/complex_parts.h"
#include "ops/operator.h"

namespace rushlight {
namespace {

void refuse_complex_bounds(const Scalar& a, const Scalar& b, std::string_view op) {
  if (a.is_complex() || b.is_complex()) {
    fail(ErrorKind::NotImplemented, op, "complex bounds are not offered");
  }
}

void check_range(double start, double end, double step, std::string_view op) {
  if (step == 0) {
    fail(ErrorKind::Runtime, op, "step must be nonzero");
  }
  if (!std::isfinite(start) || !std::isfinite(end)) {
    fail(ErrorKind::Runtime, op, "unsupported range: ", start, " -> ", end);
  }
  if (step > 0 ? end < start : end > start) {
    fail(ErrorKind::Runtime, op,
         "upper bound and lower bound inconsistent with step sign: start=", start, ", end=", end,
         ", step=", step);
  }
}

// The number of steps, rounded up; exact for integers.
int64_t count_steps(const Scalar& start, const Scalar& end, const Scalar& step, bool integral) {
  if (integral) {
    const int64_t span = end.to_int() - start.to_int();
    const int64_t by = step.to_int();
    if (by == 0) {  // such as 0.5
      fail(ErrorKind::Value, "arange", "step must be nonzero");
    }
    return (span + by - (by > 0 ? 1 : -1)) / by;
  }
  const double count = std::ceil((end.to_double() - start.to_double()) / step.to_double());
  if (!(count >= 0 && count < 9.2e18)) {
    fail(ErrorKind::Runtime, "arange", "invalid size, possible overflow?");
  }
  return static_cast<int64_t>(count);
}

void fill_range(const Tensor& made, const Scalar& start, const Scalar& step, std::string_view op) {
  if (made.is_complex()) {
    fail(ErrorKind::NotImplemented, op, "not implemented for '", made.dtype(), "'");
  }
  if (is_integral(made.dtype(), true)) {
    kernels::fill_range(made, start.to_int(), step.to_int());
  } else {
    kernels::fill_range(made, start.to_double(), step.to_double());
  }
}

Tensor arange_of(const Scalar& start, const Scalar& end, const Scalar& step,
                 const TensorOptions& options) {
  refuse_complex_bounds(start, end, "arange");
  check_range(start.to_double(), end.to_double(), step.to_double(), "arange");
  const bool numbers_integral =
      start.is_integral(true) && end.is_integral(true) && step.is_integral(true);
  const DType dtype = options.dtype_.value_or(numbers_integral ? DType::Int64 : default_dtype());
  const int64_t count = count_steps(start, end, step, dtype == DType::Int64);
  Tensor made = make_tensor({count}, dtype, options.device_.value_or(Device()));
  fill_range(made, start, step, "arange");
  return made;
}

Tensor range_of(Scalar start, Scalar end, Scalar step, const TensorOptions& options) {
  warn(
      "torch.range is deprecated and will be removed in a future release because its behavior is "
      "inconsistent with Python's range builtin. Instead, use torch.arange, which produces values "
      "in [start, end).");
  refuse_complex_bounds(start, end, "range");
  check_range(start.to_double(), end.to_double(), step.to_double(), "range");
  const double count = std::floor((end.to_double() - start.to_double()) / step.to_double()) + 1;
  Tensor made = make_tensor({static_cast<int64_t>(count)}, options.dtype_.value_or(default_dtype()),
                            options.device_.value_or(Device()));
  fill_range(made, start, step, "range");
  return made;
}

void check_steps(int64_t steps) {
  if (steps < 0) {
    fail(ErrorKind::Runtime, "", "number of steps must be non-negative, got steps=", steps);
  }
}

// Counted from the nearer end, so that both ends come out exactly.
auto even_steps(double start, double end, int64_t steps) {
  const double step = steps > 1 ? (end - start) / static_cast<double>(steps - 1) : 0.0;
  return [=](int64_t i) -> double {
    return i < steps / 2 || steps == 1 ? start + step * static_cast<double>(i)
                                       : end - step * static_cast<double>(steps - 1 - i);
  };
}

// The dtype of evenly spaced numbers: complex where a bound is.
DType spaced_dtype(const Scalar& start, const Scalar& end, const TensorOptions& options,
                   std::string_view op) {
  const bool complex = start.is_complex() || end.is_complex();
  const DType natural = complex ? Scalar(std::complex<double>()).dtype() : default_dtype();
  const DType dtype = options.dtype_.value_or(natural);
  if (complex && !is_complex(dtype)) {
    fail(ErrorKind::Runtime, "", "torch.", op, "(): inferred dtype ", scalar_type_name(natural),
         " can't be safely cast to passed dtype ", scalar_type_name(dtype));
  }
  return dtype;
}

// Numbers from `start` to `end`, made of their parts by `transform`.
template <typename F>
Tensor complex_space(const Scalar& start, const Scalar& end, int64_t steps, const Tensor& made,
                     F&& transform) {
  const auto real = even_steps(start.to_double(), end.to_double(), steps);
  const auto imag = even_steps(start.to_complex().imag(), end.to_complex().imag(), steps);
  const Tensor parts[] = {make_tensor({steps}, DType::Float64, made.device()),
                          make_tensor({steps}, DType::Float64, made.device())};
  kernels::fill_by_position(parts[0], "linspace",
                            [&](int64_t i) { return transform(real(i), imag(i)).real(); });
  kernels::fill_by_position(parts[1], "linspace",
                            [&](int64_t i) { return transform(real(i), imag(i)).imag(); });
  return kernels::as_dtype(join_parts(parts[0], parts[1]), made.dtype());
}

Tensor linspace_of(Scalar start, Scalar end, int64_t steps, const TensorOptions& options) {
  check_steps(steps);
  Tensor made = make_tensor({steps}, spaced_dtype(start, end, options, "linspace"),
                            options.device_.value_or(Device()));
  if (made.is_complex()) {
    return complex_space(start, end, steps, made,
                         [](double real, double imag) { return std::complex<double>(real, imag); });
  }
  const bool integral = is_integral(made.dtype(), true);
  kernels::fill_steps(made, integral ? static_cast<double>(start.to_int()) : start.to_double(),
                      integral ? static_cast<double>(end.to_int()) : end.to_double());
  return made;
}

Tensor logspace_of(Scalar start, Scalar end, int64_t steps, double base,
                   const TensorOptions& options) {
  check_steps(steps);
  Tensor made = make_tensor({steps}, spaced_dtype(start, end, options, "logspace"),
                            options.device_.value_or(Device()));
  if (made.is_complex()) {
    return complex_space(start, end, steps, made, [=](double real, double imag) {
      return std::pow(std::complex<double>(base), std::complex<double>(real, imag));
    });
  }
  // Integers go between whole powers, but for a single step.
  const bool whole = is_integral(made.dtype(), true) && steps != 1;
  const auto exponent = whole ? even_steps(static_cast<double>(start.to_int()),
                                           static_cast<double>(end.to_int()), steps)
                              : even_steps(start.to_double(), end.to_double(), steps);
  kernels::fill_by_position(made, "logspace",
                            [=](int64_t i) { return std::pow(base, exponent(i)); });
  return made;
}

Scalar bound(const Tensor& tensor, std::string_view op, std::string_view name) {
  if (tensor.dim() != 0) {
    fail(ErrorKind::Runtime, "", op, " only supports 0-dimensional start and end tensors, but got ",
         name, " with ", tensor.dim(), " dimension(s).");
  }
  return tensor.item();
}

Tensor eye_sizes(int64_t n, int64_t m, const TensorOptions& options) {
  if (n < 0 || m < 0) {
    fail(ErrorKind::Runtime, "eye", n < 0 ? "n" : "m", " must be greater or equal to 0, got ",
         n < 0 ? n : m);
  }
  const Tensor made = kernels::make_zeros({n, m}, options.dtype_.value_or(default_dtype()),
                                          options.device_.value_or(Device()));
  kernels::fill(make_view(made, {std::min(n, m)}, {m + 1}, 0), 1);
  return made;
}

// How many columns of row `i` lie in the lower triangle up to the diagonal `offset`.
int64_t lower_columns(int64_t i, int64_t columns, int64_t offset) {
  return std::clamp<int64_t>(i + offset + 1, 0, columns);
}

Tensor triangle_indices(int64_t rows, int64_t columns, int64_t offset, DType dtype,
                        const TensorOptions& options, bool lower) {
  if (rows < 0 || columns < 0) {
    fail(ErrorKind::Runtime, "", rows < 0 ? "row" : "col", " must be non-negative, got",
         rows < 0 ? rows : columns);
  }
  if (dtype != DType::Int64 && dtype != DType::Int32) {
    fail(ErrorKind::NotImplemented, "", lower ? "\"tril_indices\"" : "\"triu_indices\"",
         " not implemented for '", scalar_type_name(dtype), "'");
  }
  const std::string_view name = lower ? "tril_indices" : "triu_indices";
  checked_multiply(checked_multiply(rows, columns, name), 16, name);
  // The lower triangle up to this diagonal is what is asked for, or what is left out. Rows before
  // `first` have nothing of it, those from `last` on have all.
  const int64_t edge = std::clamp(offset, -rows - 1, columns + 1) - (lower ? 0 : 1);
  const int64_t first = std::clamp<int64_t>(-edge, 0, rows);
  const int64_t last = std::clamp<int64_t>(columns - edge - 1, first, rows);
  const int64_t partial = last - first;
  const int64_t below =
      partial * (first + edge + 1) + partial * (partial - 1) / 2 + (rows - last) * columns;
  const int64_t count = lower ? below : rows * columns - below;
  const Device device = options.device_.value_or(Device());
  const Tensor made = make_tensor({2, count}, DType::Int64, device);
  if (!device.is_meta() && count != 0) {
    auto* at = made.data_ptr<int64_t>();
    for (int64_t i = lower ? first : 0; i < (lower ? rows : last); ++i) {
      const int64_t inside = lower_columns(i, columns, edge);
      for (int64_t j = lower ? 0 : inside; j < (lower ? inside : columns); ++j) {
        at[0] = i;
        at[count] = j;
        ++at;
      }
    }
  }
  return kernels::as_dtype(made, dtype);
}

}  // namespace

RUSHLIGHT_OPERATORS(factory_range) {
  op("arange(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
     "bool? pin_memory=None) -> Tensor",
     kFunction | kOut)
      .doc("The numbers 0, 1, ... below `end`.")
      .kernel(
          [](Scalar end, const TensorOptions& options) { return arange_of(0, end, 1, options); })
      .not_differentiable();
  op("arange.start(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, "
     "Device? device=None, bool? pin_memory=None) -> Tensor",
     kFunction | kOut)
      .doc("The numbers start, start + 1, ... below `end`.")
      .kernel([](Scalar start, Scalar end, const TensorOptions& options) {
        return arange_of(start, end, 1, options);
      })
      .not_differentiable();
  op("arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, "
     "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     kFunction | kOut)
      .doc("The numbers start, start + step, ... before `end`.")
      .kernel([](Scalar start, Scalar end, Scalar step, const TensorOptions& options) {
        return arange_of(start, end, step, options);
      })
      .not_differentiable();
  op("range.step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, "
     "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     kFunction | kOut)
      .doc("Like arange, with the end included. Deprecated.")
      .kernel(range_of)
      .not_differentiable();
  op("linspace(Scalar start, Scalar end, int steps, *, ScalarType? dtype=None, "
     "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     kFunction | kOut)
      .doc("`steps` numbers evenly from `start` to `end`, both included.")
      .kernel(linspace_of)
      .not_differentiable();
  op("linspace.Tensor_Tensor(Tensor start, Tensor end, int steps, *, ScalarType? dtype=None, "
     "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     kFunction | kOut)
      .doc("The same with the bounds in 0-dim tensors.")
      .kernel([](const Tensor& start, const Tensor& end, int64_t steps, const TensorOptions& o) {
        return linspace_of(bound(start, "linspace", "start"), bound(end, "linspace", "end"), steps,
                           o);
      })
      .not_differentiable();
  op("linspace.Tensor_Scalar(Tensor start, Scalar end, int steps, *, ScalarType? dtype=None, "
     "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     kFunction | kOut)
      .doc("The same with the start in a 0-dim tensor.")
      .kernel([](const Tensor& start, Scalar end, int64_t steps, const TensorOptions& options) {
        return linspace_of(bound(start, "linspace", "start"), end, steps, options);
      })
      .not_differentiable();
  op("linspace.Scalar_Tensor(Scalar start, Tensor end, int steps, *, ScalarType? dtype=None, "
     "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     kFunction | kOut)
      .doc("The same with the end in a 0-dim tensor.")
      .kernel([](Scalar start, const Tensor& end, int64_t steps, const TensorOptions& options) {
        return linspace_of(start, bound(end, "linspace", "end"), steps, options);
      })
      .not_differentiable();
  op("logspace(Scalar start, Scalar end, int steps, float base=10.0, *, ScalarType? dtype=None, "
     "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     kFunction | kOut)
      .doc("`base` to the power of `steps` exponents evenly from `start` to `end`.")
      .kernel(logspace_of)
      .not_differentiable();
  op("logspace.Tensor_Tensor(Tensor start, Tensor end, int steps, float base=10.0, *, "
     "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> "
     "Tensor",
     kFunction | kOut)
      .doc("The same with the bounds in 0-dim tensors.")
      .kernel([](const Tensor& start, const Tensor& end, int64_t steps, double base,
                 const TensorOptions& options) {
        return logspace_of(bound(start, "logspace", "start"), bound(end, "logspace", "end"), steps,
                           base, options);
      })
      .not_differentiable();
  op("logspace.Tensor_Scalar(Tensor start, Scalar end, int steps, float base=10.0, *, "
     "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> "
     "Tensor",
     kFunction | kOut)
      .doc("The same with the start in a 0-dim tensor.")
      .kernel([](const Tensor& start, Scalar end, int64_t steps, double base,
                 const TensorOptions& options) {
        return logspace_of(bound(start, "logspace", "start"), end, steps, base, options);
      })
      .not_differentiable();
  op("logspace.Scalar_Tensor(Scalar start, Tensor end, int steps, float base=10.0, *, "
     "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> "
     "Tensor",
     kFunction | kOut)
      .doc("The same with the end in a 0-dim tensor.")
      .kernel([](Scalar start, const Tensor& end, int64_t steps, double base,
                 const TensorOptions& options) {
        return logspace_of(start, bound(end, "logspace", "end"), steps, base, options);
      })
      .not_differentiable();
  op("eye(SymInt n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
     "bool? pin_memory=None) -> Tensor",
     kFunction | kOut)
      .doc("The identity matrix of n rows.")
      .kernel([](int64_t n, const TensorOptions& options) { return eye_sizes(n, n, options); })
      .not_differentiable();
  op("eye.m(SymInt n, SymInt m, *, ScalarType? dtype=None, Layout? layout=None, "
     "Device? device=None, bool? pin_memory=None) -> Tensor",
     kFunction | kOut)
      .doc("A matrix of n rows and m columns with ones on the diagonal.")
      .kernel(eye_sizes)
      .not_differentiable();
  op("tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=long, "
     "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     kFunction)
      .doc("Row and column indices of the lower triangle of a matrix, as two rows.")
      .kernel([](int64_t row, int64_t col, int64_t offset, const TensorOptions& options) {
        return triangle_indices(row, col, offset, options.dtype_.value_or(DType::Int64), options,
                                true);
      })
      .not_differentiable();
  op("triu_indices(int row, int col, int offset=0, *, ScalarType? dtype=long, "
     "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     kFunction)
      .doc("Row and column indices of the upper triangle of a matrix, as two rows.")
      .kernel([](int64_t row, int64_t col, int64_t offset, const TensorOptions& options) {
        return triangle_indices(row, col, offset, options.dtype_.value_or(DType::Int64), options,
                                false);
      })
      .not_differentiable();
}

}  // namespace rushlight
