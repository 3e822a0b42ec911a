// Quantiles along a dimension.
#include <rushlight/generated/functions.h>

#include "ops/operator.h"

namespace rushlight {
namespace {

// Positions between the sorted elements, as PyTorch's `interpolation` says.
Tensor between(const Tensor& sorted, const Tensor& ranks, std::string_view interpolation) {
  const auto taken = [&](const Tensor& at) { return gather(sorted, -1, to(at, DType::Int64)); };
  if (interpolation == "lower") {
    return taken(floor(ranks));
  }
  if (interpolation == "higher") {
    return taken(ceil(ranks));
  }
  if (interpolation == "nearest") {
    return taken(round(ranks));
  }
  const Tensor below = floor(ranks);
  const Tensor weight =
      interpolation == "midpoint" ? mul(ne(below, ranks), Scalar(0.5)) : sub(ranks, below);
  return lerp(taken(below), taken(ceil(ranks)), to(weight, sorted.dtype()));
}

void check_quantile(std::string_view op, const Tensor& self, const Tensor& q,
                    std::string_view interpolation) {
  if (self.numel() == 0) {
    fail(ErrorKind::Runtime, "", op, "() input tensor must be non-empty");
  }
  if (q.dim() > 1) {
    fail(ErrorKind::Runtime, "", op, "() q must be a scalar or 1D tensor");
  }
  if (self.dtype() != DType::Float32 && self.dtype() != DType::Float64) {
    fail(ErrorKind::Runtime, "", op, "() input tensor must be either float or double dtype");
  }
  if (self.dtype() != q.dtype()) {
    fail(ErrorKind::Runtime, "", op, "() q tensor must be same dtype as the input tensor");
  }
  for (const char* known : {"linear", "lower", "higher", "midpoint", "nearest"}) {
    if (interpolation == known) {
      return;
    }
  }
  fail(ErrorKind::Runtime, "", op,
       "() interpolation must be one of linear, lower, higher, midpoint or nearest, but got ",
       interpolation);
}

Tensor quantile_of(std::string_view op, const Tensor& self, const Tensor& q,
                   std::optional<int64_t> dim, bool keepdim, std::string_view interpolation,
                   bool ignore_nan) {
  check_quantile(op, self, q, interpolation);
  if (!q.is_meta() && q.numel() != 0 &&
      !all(logical_and(ge(q, Scalar(0)), le(q, Scalar(1)))).item().to_bool()) {
    fail(ErrorKind::Runtime, "", op, "() q values must be in the range [0, 1]");
  }
  const int64_t at = dim ? wrap_dim(*dim, self.dim(), op) : 0;
  IntList shape(self.sizes());
  if (dim && self.dim() > 0) {
    shape[static_cast<size_t>(at)] = 1;
  } else {
    shape = IntList(static_cast<size_t>(self.dim()), 1);
  }
  Tensor rows = dim && self.dim() > 0 ? transpose(self, at, -1) : reshape(self, {-1});
  Tensor sorted = std::get<0>(sort(rows));
  const int64_t length = sorted.size(-1);
  const Tensor missing = isnan(sorted);
  Tensor last = full({}, Scalar(static_cast<double>(length - 1)), self.options());
  if (ignore_nan) {
    const Tensor present = sum(logical_not(missing), {-1}, true);
    last = clamp_min(to(sub(present, Scalar(1)), self.dtype()), Scalar(0));
  }
  const Tensor asked = q.dim() == 0 ? reshape(q, {1}) : q;
  Tensor ranks = mul(asked, last);
  IntList wide(sorted.sizes());
  wide.back() = asked.size(0);
  ranks = expand(ranks, wide);
  if (!ignore_nan) {  // NaN is sorted last
    ranks = where(any(missing, {-1}, true), Scalar(static_cast<double>(length - 1)), ranks);
  }
  Tensor found = movedim(between(sorted, ranks, interpolation), -1, 0);  // q first
  // Back to the dimensions of `self`, the reduced one of size 1.
  if (dim && self.dim() > 0) {
    found = transpose(unsqueeze(found, -1), at + 1, -1);
  } else {
    IntList with_q(shape);
    with_q.insert(0, asked.size(0));
    found = reshape(found, with_q);
  }
  if (!keepdim) {
    found = dim && self.dim() > 0 ? squeeze(found, at + 1) : reshape(found, {asked.size(0)});
  }
  return q.dim() == 0 ? squeeze(found, 0) : found;
}

template <bool ignore_nan>
Tensor quantile_tensor(const Tensor& self, const Tensor& q, std::optional<int64_t> dim,
                       bool keepdim, std::string_view interpolation) {
  return quantile_of(ignore_nan ? "nanquantile" : "quantile", self, q, dim, keepdim, interpolation,
                     ignore_nan);
}
template <bool ignore_nan>
Tensor quantile_number(const Tensor& self, double q, std::optional<int64_t> dim, bool keepdim,
                       std::string_view interpolation) {
  const char* op = ignore_nan ? "nanquantile" : "quantile";
  if (!(q >= 0 && q <= 1)) {
    fail(ErrorKind::Runtime, "", op, "() q must be in the range [0, 1] but got ", q);
  }
  return quantile_of(op, self, full({}, Scalar(q), self.options()), dim, keepdim, interpolation,
                     ignore_nan);
}

}  // namespace

RUSHLIGHT_OPERATORS(quantile) {
  op("quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, "
     "str interpolation='linear') -> Tensor",
     kFunction | kMethod | kOut)
      .doc("The q-th quantiles along a dimension; NaN where the row has one.")
      .composition(quantile_tensor<false>)
      .node("SqueezeBackward4");
  op("quantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, "
     "str interpolation='linear') -> Tensor",
     kFunction | kMethod | kOut)
      .doc("The q-th quantile along a dimension; NaN where the row has one.")
      .composition(quantile_number<false>)
      .node("SqueezeBackward4");
  op("nanquantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, "
     "str interpolation='linear') -> Tensor",
     kFunction | kMethod | kOut)
      .doc("The q-th quantiles of the elements that are not NaN.")
      .composition(quantile_tensor<true>)
      .node("SqueezeBackward4");
  op("nanquantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, "
     "str interpolation='linear') -> Tensor",
     kFunction | kMethod | kOut)
      .doc("The q-th quantile of the elements that are not NaN.")
      .composition(quantile_number<true>)
      .node("SqueezeBackward4");
}

}  // namespace rushlight
