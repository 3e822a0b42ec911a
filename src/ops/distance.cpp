// Distances between vectors.
#include <rushlight/generated/functions.h>

#include <cmath>

#include "ops/operator.h"
#include "ops/promotion.h"
#include "ops/wide_gradient.h"

namespace rushlight {
namespace {

// The p-norm of the last dimension.
Tensor last_norm(const Tensor& gap, double p) {
  if (p == 0) {
    // A count, whose gradient is zero, not missing.
    const Tensor never = zeros({}, TensorOptions(DType::Bool).device(gap.device()));
    return where(never, sum(gap, {-1}), to(sum(ne(gap, Scalar(0)), {-1}), gap.dtype()));
  }
  return linalg_vector_norm(gap, Scalar(p), {-1}, false);
}

void check_cdist(const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t> mode) {
  for (const Tensor* x : {&x1, &x2}) {
    if (!x->is_floating_point()) {
      fail(ErrorKind::Runtime, "", "cdist only supports floating-point dtypes, X", x == &x1 ? 1 : 2,
           " got: ", scalar_type_name(x->dtype()));
    }
    if (x->dim() < 2) {
      fail(ErrorKind::Runtime, "", "cdist only supports at least 2D tensors, X", x == &x1 ? 1 : 2,
           " got: ", x->dim(), "D");
    }
  }
  if (x1.size(-1) != x2.size(-1)) {
    fail(ErrorKind::Runtime, "",
         "X1 and X2 must have the same number of columns. X1: ", x1.size(-1), " X2: ", x2.size(-1));
  }
  if (!(p >= 0)) {
    fail(ErrorKind::Runtime, "", "cdist only supports non-negative p values");
  }
  if (mode.value_or(0) < 0 || mode.value_or(0) > 2) {
    fail(ErrorKind::Runtime, "", "possible modes: 0, 1, 2, but was: ", *mode);
  }
}

// |a - b|^2 = |a|^2 + |b|^2 - 2 a b, by one product of rows that carry their squares along. Small
// distances of large rows lose digits, as PyTorch's do. Where a distance is zero, so is its
// gradient.
Tensor euclidean_distance(const Tensor& x1, const Tensor& x2) {
  const Tensor squares1 = sum(square(x1), {-1}, true);
  const Tensor squares2 = sum(square(x2), {-1}, true);
  const Tensor left = cat({mul(x1, Scalar(-2)), squares1, ones_like(squares1)}, -1);
  const Tensor right = cat({x2, ones_like(squares2), squares2}, -1);
  const Tensor squares = matmul(left, transpose(right, -2, -1));
  const Tensor none = le(squares, Scalar(0));
  return masked_fill(sqrt(masked_fill(squares, none, Scalar(1))), none, Scalar(0));
}

// PyTorch's rule: mode 0 takes a product where either side has more than 25 rows, 1 always.
bool takes_product(const Tensor& x1, const Tensor& x2, double p, int64_t mode) {
  constexpr int64_t kFewRows = 25;
  const bool many = x1.size(-2) > kFewRows || x2.size(-2) > kFewRows;
  const bool single = x1.dtype() == DType::Float32 || x1.dtype() == DType::Float64;
  return p == 2 && (mode == 1 || (mode == 0 && many)) && single && x1.dtype() == x2.dtype() &&
         x1.numel() > 0 && x2.numel() > 0;
}

Tensor cdist_of(const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t> mode) {
  check_cdist(x1, x2, p, mode);
  if (takes_product(x1, x2, p, mode.value_or(0))) {
    return euclidean_distance(x1, x2);
  }
  return last_norm(sub(unsqueeze(x1, -2), unsqueeze(x2, -3)), p);
}

Tensor pdist_of(const Tensor& self, double p) {
  if (self.dim() != 2) {
    fail(ErrorKind::Runtime, "", "pdist only supports 2D tensors, got: ", self.dim(), "D");
  }
  if (!self.is_floating_point()) {
    fail(ErrorKind::Runtime, "", "pdist only supports floating-point dtypes");
  }
  if (!(p >= 0)) {
    fail(ErrorKind::Runtime, "", "pdist only supports non-negative p values");
  }
  const int64_t n = self.size(0);
  if (n <= 1) {
    return reshape(narrow(self, 0, 0, 0), {0});
  }
  if (self.size(1) == 0) {
    return zeros({n * (n - 1) / 2}, self.options());
  }
  const Tensor pairs = triu_indices(n, n, 1, TensorOptions(self.device()));
  return last_norm(
      sub(index_select(self, 0, select(pairs, 0, 0)), index_select(self, 0, select(pairs, 0, 1))),
      p);
}

Tensor bilinear_of(const Tensor& input1, const Tensor& input2, const Tensor& weight,
                   const Tensor& bias) {
  if (weight.dim() != 3) {
    fail(ErrorKind::Runtime, "bilinear", "weight must be 3-D, got ", weight.dim(), "-D");
  }
  if (input1.dim() != input2.dim()) {
    fail(ErrorKind::Runtime, "", "bilinear(): input dimensions do not match: got ", input1.dim(),
         " and ", input2.dim());
  }
  for (int64_t d = 0; d + 1 < input1.dim(); ++d) {
    if (input1.size(d) != input2.size(d)) {
      fail(ErrorKind::Runtime, "", "bilinear(): input batch dimensions do not match at dim ", d,
           ": got ", input1.size(d), " and ", input2.size(d));
    }
  }
  for (int i : {1, 2}) {
    const Tensor& input = i == 1 ? input1 : input2;
    if (input.dim() == 0 || input.size(-1) != weight.size(i)) {
      fail(ErrorKind::Runtime, "", "bilinear(): input", i, " size does not match weight size: got ",
           input.dim() == 0 ? int64_t{1} : input.size(-1), " but expected ", weight.size(i));
    }
  }
  if (bias.defined() && bias.size(0) != weight.size(0)) {
    fail(ErrorKind::Runtime, "", "bilinear(): bias size does not match weight size: got ",
         bias.size(0), " but expected ", weight.size(0));
  }
  IntList shape(input1.sizes());
  shape.back() = weight.size(0);
  const Tensor left = reshape(input1, {-1, weight.size(1)});
  const Tensor right = reshape(input2, {-1, weight.size(2)});
  // (rows, outputs * in2): what each row of input1 makes of the weights.
  const Tensor folded = reshape(permute(weight, {1, 0, 2}), {weight.size(1), -1});
  const Tensor part = reshape(mm(left, folded), {left.size(0), weight.size(0), weight.size(2)});
  const Tensor made = reshape(bmm(part, unsqueeze(right, 2)), shape);
  return bias.defined() ? add(made, bias) : made;
}

}  // namespace

RUSHLIGHT_OPERATORS(distance) {
  op("cdist(Tensor x1, Tensor x2, float p=2., int? compute_mode=None) -> Tensor", kFunction)
      .doc("The p-norm distances between all rows of two batches of matrices.")
      .composition(cdist_of)
      .node("CdistBackward0");
  op("pdist(Tensor self, float p=2.) -> Tensor", kFunction)
      .doc("The p-norm distances between all pairs of rows.")
      .composition(pdist_of)
      .node("PdistBackward0");
  op("dist(Tensor self, Tensor other, Scalar p=2) -> Tensor", kFunction | kMethod | kOut)
      .doc("The p-norm of self - other.")
      .composition([](const Tensor& self, const Tensor& other, Scalar p) -> Tensor {
        const Tensor gap = sub(widened(self), widened(other));
        return rounded(norm(gap, p), result_type(self, other));
      })
      .node("DistBackward0");
  op("bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor",
     kFunction)
      .doc("input1^T W_k input2 + bias_k for each output k, over the last dimension.")
      .composition(bilinear_of);
}

}  // namespace rushlight
