// Statistics over dimensions: differences, areas, covariances, histograms.
#include <rushlight/generated/functions.h>

#include <algorithm>
#include <cmath>

#include "ops/operator.h"
#include "ops/output_rule.h"

namespace rushlight {
namespace {

int64_t wrapped(const Tensor& self, int64_t dim, std::string_view op) {
  return wrap_dim(dim, self.dim(), op);
}

// All but the first index of a dimension, and all but the last.
Tensor later(const Tensor& x, int64_t dim) {
  return narrow(x, dim, 1, x.size(dim) - 1);
}
Tensor earlier(const Tensor& x, int64_t dim) {
  return narrow(x, dim, 0, x.size(dim) - 1);
}

void check_diff_part(const Tensor& self, const Tensor& part, int64_t dim) {
  if (part.dim() != self.dim()) {
    fail(ErrorKind::Runtime, "",
         "diff expects prepend or append to be the same dimension as input, got ", part.dim(),
         " and ", self.dim());
  }
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d != dim && part.size(d) != self.size(d)) {
      fail(ErrorKind::Runtime, "",
           "diff expects the shape of tensor to prepend or append to match that of input except "
           "along the differencing dimension; input.size(",
           d, ") = ", self.size(d), ", but got tensor.size(", d, ") = ", part.size(d));
    }
  }
}

Tensor diff_of(const Tensor& self, int64_t n, int64_t dim, const Tensor& prepend,
               const Tensor& append) {
  if (self.dim() == 0) {
    fail(ErrorKind::Runtime, "", "diff expects input to be at least one-dimensional");
  }
  if (n < 0) {
    fail(ErrorKind::Runtime, "", "order must be non-negative but got ", n);
  }
  const int64_t at = wrapped(self, dim, "diff");
  TensorList parts;
  for (const Tensor& part : {prepend, self, append}) {
    if (part.defined()) {
      check_diff_part(self, part, at);
      parts.push_back(part);
    }
  }
  Tensor x = parts.size() == 1 ? self : cat(parts, at);
  if (n == 0) {
    return clone(self);
  }
  n = std::min(n, x.size(at));  // more differences leave nothing, too
  for (int64_t i = 0; i < n; ++i) {
    if (x.size(at) == 0) {
      break;
    }
    x = x.dtype() == DType::Bool ? logical_xor(later(x, at), earlier(x, at))
                                 : sub(later(x, at), earlier(x, at));
  }
  return x;
}

// The differences of order 0 are a copy, which does not convert to the dtype of out=.
void diff_output(const Invocation& inv, const Tensor& made) {
  const DType given = inv.results[0].tensor().dtype();
  if (inv.arguments[1].to_int() == 0 && given != made.dtype()) {
    fail(ErrorKind::Runtime, "diff", "expected scalar_type ", scalar_type_name(made.dtype()),
         " but found ", scalar_type_name(given));
  }
}

void check_no_bool(const Tensor& y, std::string_view op) {
  if (y.dtype() == DType::Bool) {
    fail(ErrorKind::Runtime, "", op, ": received a bool input for `y`, but bool is not supported");
  }
}

// The widths of the intervals, with the dimensions of y.
Tensor widths(const Tensor& y, const Tensor& x, int64_t dim, std::string_view op) {
  if (x.dtype() == DType::Bool) {
    fail(ErrorKind::Runtime, "", op, ": received a bool input for `x`, but bool is not supported");
  }
  if (x.dim() == 0) {
    return x;
  }
  if (x.dim() != 1) {
    const int64_t at = x.dim() == y.dim() ? dim : wrap_dim(dim - y.dim(), x.dim(), op);
    return sub(later(x, at), earlier(x, at));
  }
  if (x.size(0) != y.size(dim)) {
    fail(ErrorKind::Runtime, "", op, ": There must be one `x` value for each sample point, got ",
         x.size(0), " and ", y.size(dim));
  }
  IntList shape(static_cast<size_t>(y.dim()), 1);
  shape[static_cast<size_t>(dim)] = x.size(0) - 1;
  return reshape(sub(later(x, 0), earlier(x, 0)), shape);
}

Tensor no_area(const Tensor& y, int64_t dim) {
  IntList shape(y.sizes());
  shape.erase(static_cast<size_t>(dim));
  return zeros(shape, y.options());
}

Tensor trapezoid_widths(const Tensor& y, const Tensor& x, int64_t dim) {
  const int64_t at = wrapped(y, dim, "trapezoid");
  check_no_bool(y, "trapezoid");
  if (y.size(at) == 0) {
    return no_area(y, at);
  }
  if (x.dim() == 0) {
    return zeros(no_area(y, at).sizes(), y.options());
  }
  const Tensor width = widths(y, x, at, "trapezoid");
  return div(sum(mul(width, add(later(y, at), earlier(y, at))), {at}), Scalar(2.0));
}

Tensor trapezoid_step(const Tensor& y, Scalar dx, int64_t dim) {
  const int64_t at = wrapped(y, dim, "trapezoid");
  check_no_bool(y, "trapezoid");
  if (y.size(at) == 0) {
    return no_area(y, at);
  }
  const Tensor ends = mul(add(select(y, at, 0), select(y, at, -1)), Scalar(0.5));
  return mul(sub(sum(y, {at}), ends), dx);
}

Tensor cumulative_widths(const Tensor& y, const Tensor& x, int64_t dim) {
  const int64_t at = wrapped(y, dim, "cumulative_trapezoid");
  check_no_bool(y, "cumulative_trapezoid");
  const Tensor width = widths(y, x, at, "cumulative_trapezoid");
  return div(cumsum(mul(width, add(later(y, at), earlier(y, at))), at), Scalar(2.0));
}

Tensor cumulative_step(const Tensor& y, Scalar dx, int64_t dim) {
  const int64_t at = wrapped(y, dim, "cumulative_trapezoid");
  check_no_bool(y, "cumulative_trapezoid");
  return mul(cumsum(add(later(y, at), earlier(y, at)), at), Scalar(dx.to_double() / 2));
}

void check_weights(const Tensor& weights, std::string_view name, int64_t observations,
                   bool integral) {
  if (weights.dim() > 1) {
    fail(ErrorKind::Runtime, "", "cov(): expected ", name,
         " to have one or fewer dimensions but got ", name, " with ", weights.dim(), " dimensions");
  }
  if (integral ? !is_integral(weights.dtype(), false) : !weights.is_floating_point()) {
    fail(ErrorKind::Runtime, "", "cov(): expected ", name, " to have ",
         integral ? "integral" : "floating point", " dtype but got ", name, " with ",
         scalar_type_name(weights.dtype()), " dtype");
  }
  if (weights.numel() != observations) {
    fail(ErrorKind::Runtime, "", "cov(): expected ", name,
         " to have the same numel as there are observations in the input but got ", weights.numel(),
         " != ", observations);
  }
  if (observations != 0 && !weights.is_meta() && amin(weights).item().to_double() < 0) {
    fail(ErrorKind::Runtime, "", "cov(): ", name, " cannot be negative");
  }
}

Tensor cov_of(const Tensor& self, int64_t correction, const Tensor& fweights,
              const Tensor& aweights) {
  if (self.dim() > 2) {
    fail(ErrorKind::Runtime, "",
         "cov(): expected input to have two or fewer dimensions but got an input with ", self.dim(),
         " dimensions");
  }
  if (self.dtype() == DType::Bool) {
    fail(ErrorKind::Runtime, "", "cov(): bool dtype is not supported for input");
  }
  Tensor x = self.dim() < 2 ? reshape(self, {1, self.numel()}) : self;
  const int64_t observations = x.size(1);
  Tensor weights;
  if (fweights.defined()) {
    check_weights(fweights, "fweights", observations, true);
    weights = fweights;
  }
  if (aweights.defined()) {
    check_weights(aweights, "aweights", observations, false);
    weights = weights.defined() ? mul(weights, aweights) : aweights;
  }
  const auto number = [&](double value) {
    return full({}, Scalar(value), x.options().dtype(real_dtype(x.dtype())));
  };
  const Tensor total = weights.defined() ? sum(weights) : number(static_cast<double>(observations));
  if (weights.defined() && !weights.is_meta() && total.item().to_double() == 0) {
    fail(ErrorKind::Runtime, "", "cov(): weights sum to zero, can't be normalized");
  }
  Tensor freedom = sub(total, Scalar(correction));
  if (aweights.defined() && correction != 0) {
    const Tensor square = div(sum(mul(weights, aweights)), total);
    freedom = sub(total, mul(square, Scalar(correction)));
  }
  const Tensor mass = weights.defined() ? mul(x, weights) : x;
  x = sub(x, unsqueeze(div(sum(mass, {1}), total), 1));
  if (!freedom.is_meta() && freedom.item().to_double() <= 0) {
    warn(
        "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of "
        "observations.");
    freedom = zeros_like(freedom);  // not a product, which may be -0
  }
  const Tensor product = mm(x, t(conj(weights.defined() ? mul(x, weights) : x)));
  return squeeze(div(product, freedom));
}

Tensor corrcoef_of(const Tensor& self) {
  if (self.dim() > 2) {
    fail(ErrorKind::Runtime, "",
         "corrcoef(): expected input to have two or fewer dimensions but got an input with ",
         self.dim(), " dimensions");
  }
  const Tensor c = cov(self);
  if (c.dim() == 0) {
    return div(c, c);
  }
  const Tensor deviation = sqrt(real(diag(c)));
  const Tensor quotient = div(div(c, reshape(deviation, {-1, 1})), reshape(deviation, {1, -1}));
  const auto limited = [](const Tensor& x) { return clamp(x, Scalar(-1), Scalar(1)); };
  return quotient.is_complex() ? complex(limited(real(quotient)), limited(imag(quotient)))
                               : limited(quotient);
}

Tensor renorm_of(const Tensor& self, Scalar p, int64_t dim, Scalar maxnorm) {
  if (p.to_double() <= 0) {
    fail(ErrorKind::Runtime, "", "renorm: non-positive-norm not supported");
  }
  if (maxnorm.to_double() < 0) {
    fail(ErrorKind::Runtime, "", "renorm: expected maxnorm to be >= 0 but got ",
         maxnorm.to_double());
  }
  if (self.dim() < 2) {
    fail(ErrorKind::Runtime, "", "renorm: input needs at least 2 dimensions, got ", self.dim(),
         " dimensions");
  }
  const int64_t at = wrapped(self, dim, "renorm");
  IntList others;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d != at) {
      others.push_back(d);
    }
  }
  const Tensor norm = linalg_vector_norm(self, p, others, true);
  const Tensor factor = div(full({}, maxnorm, norm.options()), add(norm, Scalar(1e-7)));
  return mul(self, where(gt(norm, maxnorm), factor, Scalar(1)));
}

// The positions of the next combination, in lexicographic order; false after the last.
bool advance(IntList& at, int64_t n, bool with_replacement) {
  const auto r = static_cast<int64_t>(at.size());
  int64_t i = r - 1;
  while (i >= 0 && at[static_cast<size_t>(i)] == (with_replacement ? n - 1 : n - r + i)) {
    --i;
  }
  if (i < 0) {
    return false;
  }
  const int64_t value = at[static_cast<size_t>(i)] + 1;
  for (int64_t j = i; j < r; ++j) {
    at[static_cast<size_t>(j)] = with_replacement ? value : value + j - i;
  }
  return true;
}

Tensor combinations_of(const Tensor& self, int64_t r, bool with_replacement) {
  if (self.dim() != 1) {
    fail(ErrorKind::Runtime, "", "Expect a 1D vector, but got shape ", self.sizes());
  }
  if (r < 0) {
    fail(ErrorKind::Runtime, "", "Expect a non-negative number, but got ", r);
  }
  if (r == 0) {
    return empty({0}, self.options());
  }
  const int64_t n = self.numel();
  std::vector<int64_t> positions;
  int64_t count = 0;
  if (n > 0 && (with_replacement || r <= n)) {
    IntList at(static_cast<size_t>(r), 0);
    for (int64_t i = 0; i < r && !with_replacement; ++i) {
      at[static_cast<size_t>(i)] = i;
    }
    do {
      positions.insert(positions.end(), at.begin(), at.end());
      ++count;
    } while (advance(at, n, with_replacement));
  }
  const Tensor index = make_tensor({static_cast<int64_t>(positions.size())}, DType::Int64);
  std::copy(positions.begin(), positions.end(), static_cast<int64_t*>(index.data()));
  return reshape(index_select(self, 0, index), {count, r});
}

}  // namespace

RUSHLIGHT_OPERATORS(statistics) {
  op("diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
     kFunction | kMethod | kOut)
      .doc("The n-th differences of neighbours along a dimension.")
      .body(Kind::Composition, ruled_body(box(diff_of), diff_output))
      .casts_out();
  op("trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", kFunction)
      .doc("The area below the points (x, y), by the trapezoid rule.")
      .composition(trapezoid_widths);
  op("trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", kFunction)
      .doc("The area below points `dx` apart, by the trapezoid rule.")
      .composition(trapezoid_step);
  op("trapz.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", kFunction)
      .doc("Another name of trapezoid.")
      .composition(trapezoid_widths);
  op("trapz.dx(Tensor y, *, float dx=1., int dim=-1) -> Tensor", kFunction)
      .doc("Another name of trapezoid.")
      .composition([](const Tensor& y, double dx, int64_t dim) {
        return trapezoid_step(y, Scalar(dx), dim);
      });
  op("cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", kFunction)
      .doc("The areas from the first of the points (x, y) to each of the others.")
      .composition(cumulative_widths);
  op("cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", kFunction)
      .doc("The areas from the first of points `dx` apart to each of the others.")
      .composition(cumulative_step);
  op("cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) "
     "-> Tensor",
     kFunction | kMethod)
      .doc("The covariances of the rows; weights count or weigh the columns.")
      .composition(cov_of);
  op("corrcoef(Tensor self) -> Tensor", kFunction | kMethod)
      .doc("The correlations of the rows.")
      .composition(corrcoef_of);
  op("renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor", kUnary)
      .doc("Scales the slices of a dimension whose p-norm is above maxnorm down to it.")
      .composition(renorm_of)
      .node("RenormBackward0");
  op("combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor",
     kFunction | kMethod)
      .doc("The combinations of r elements of a vector, one a row.")
      .composition(combinations_of);
}

}  // namespace rushlight
