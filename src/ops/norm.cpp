// Norms and products of linear algebra.
#include <rushlight/generated/functions.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/copy.h"
#include "kernels/cross.h"
#include "ops/dtype_checks.h"
#include "ops/gradient.h"
#include "ops/operator.h"

namespace rushlight {
namespace {

void require_matrix(const Tensor& self, std::string_view op) {
  if (self.dim() < 2) {
    fail(ErrorKind::Runtime, "", op, ": The input tensor A must have at least 2 dimensions.");
  }
}

void check_matrix_norm(const Tensor& self, IntArrayRef dim, std::optional<DType> dtype) {
  require_matrix(self, "linalg.matrix_norm");
  if (!self.is_floating_point() && !self.is_complex()) {
    fail(ErrorKind::Runtime, "",
         "linalg.matrix_norm: Expected a floating point or complex tensor as input. Got ",
         scalar_type_name(self.dtype()));
  }
  if (dim.size() != 2) {
    fail(ErrorKind::Runtime, "", "linalg.matrix_norm: dim must be a 2-tuple. Got ", dim);
  }
  if (wrap_dim(dim[0], self.dim(), "linalg.matrix_norm") ==
      wrap_dim(dim[1], self.dim(), "linalg.matrix_norm")) {
    fail(ErrorKind::Runtime, "", "linalg.matrix_norm: dims must be different. Got (", dim[0], ", ",
         dim[1], ")");
  }
  check_norm_dtype("linalg.matrix_norm", self.dtype(), dtype);
}

// The singular values of the matrices over two dimensions, reduced by `reduce(values, keepdim)`.
template <typename F>
Tensor of_singular_values(const Tensor& self, IntArrayRef dim, bool keepdim,
                          std::optional<DType> dtype, F&& reduce) {
  const Tensor x = dtype ? to(self, *dtype) : self;
  const int64_t row = wrap_dim(dim[0], x.dim(), "linalg.matrix_norm");
  const int64_t column = wrap_dim(dim[1], x.dim(), "linalg.matrix_norm");
  const Tensor moved = movedim(x, {row, column}, {-2, -1});
  const Tensor made = reduce(linalg_svdvals(moved, {}));
  if (!keepdim) {
    return made;
  }
  return unsqueeze(unsqueeze(made, std::min(row, column)), std::max(row, column));
}

// The greatest of no sums and of no singular values is zero; there is no least one.
Tensor matrix_norm_number(const Tensor& self, Scalar ord, IntArrayRef dim, bool keepdim,
                          std::optional<DType> dtype) {
  check_matrix_norm(self, dim, dtype);
  const double order = ord.to_double();
  const double size = std::fabs(order);
  if (size != 1 && size != 2 && !std::isinf(size)) {
    fail(ErrorKind::Runtime, "", "linalg.matrix_norm: Order ", ord.to_string(), " not supported.");
  }
  if (size == 2) {
    return of_singular_values(self, dim, keepdim, dtype, [&](const Tensor& values) {
      if (order < 0) {
        return amin(values, {-1}, false);
      }
      return values.size(-1) == 0 ? sum(values, {-1}, false, std::nullopt)
                                  : amax(values, {-1}, false);
    });
  }
  int64_t summed = wrap_dim(dim[0], self.dim(), "linalg.matrix_norm");
  int64_t rest = wrap_dim(dim[1], self.dim(), "linalg.matrix_norm");
  if (std::isinf(size)) {
    std::swap(summed, rest);
  }
  if (!keepdim && rest > summed) {
    --rest;
  }
  const Tensor sums = linalg_vector_norm(self, Scalar(1.0), {summed}, keepdim, dtype);
  if (order > 0 && sums.size(rest) == 0) {
    return sum(sums, {rest}, keepdim, std::nullopt);
  }
  return order > 0 ? amax(sums, {rest}, keepdim) : amin(sums, {rest}, keepdim);
}

Tensor matrix_norm_text(const Tensor& self, std::string_view ord, IntArrayRef dim, bool keepdim,
                        std::optional<DType> dtype) {
  check_matrix_norm(self, dim, dtype);
  if (ord == "nuc") {
    return of_singular_values(self, dim, keepdim, dtype, [](const Tensor& values) {
      return sum(values, {-1}, false, std::nullopt);
    });
  }
  if (ord != "fro") {
    fail(ErrorKind::Runtime, "", "linalg.matrix_norm: Order ", ord, " not supported.");
  }
  return linalg_vector_norm(self, Scalar(2.0), dim, keepdim, dtype);
}

Tensor norm_number(const Tensor& self, const std::optional<Scalar>& ord,
                   std::optional<IntArrayRef> dim, bool keepdim, std::optional<DType> dtype) {
  if (dim && dim->size() != 1 && dim->size() != 2) {
    fail(ErrorKind::Runtime, "",
         "linalg.norm: If dim is specified, it must be of length 1 or 2. Got ", *dim);
  }
  if (!ord) {
    if (dim) {
      return linalg_vector_norm(self, Scalar(2.0), *dim, keepdim, dtype);
    }
    const Tensor whole = linalg_vector_norm(reshape(self, {-1}), Scalar(2.0), {0}, false, dtype);
    return keepdim ? reshape(whole, IntList(static_cast<size_t>(self.dim()), 1)) : whole;
  }
  if (!dim && self.dim() != 1 && self.dim() != 2) {
    fail(ErrorKind::Runtime, "",
         "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got ",
         self.dim(), "D.");
  }
  if (dim ? dim->size() == 2 : self.dim() == 2) {
    const IntList dims = dim ? IntList(*dim) : IntList{0, 1};
    return linalg_matrix_norm(self, *ord, dims, keepdim, dtype);
  }
  return linalg_vector_norm(self, *ord, dim ? IntList(*dim) : IntList{0}, keepdim, dtype);
}

Tensor norm_text(const Tensor& self, std::string_view ord, std::optional<IntArrayRef> dim,
                 bool keepdim, std::optional<DType> dtype) {
  if (dim && dim->size() != 1 && dim->size() != 2) {
    fail(ErrorKind::Runtime, "",
         "linalg.norm: If dim is specified, it must be of length 1 or 2. Got ", *dim);
  }
  if (!dim && self.dim() != 2) {
    fail(ErrorKind::Runtime, "",
         "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got ",
         self.dim(), "D.");
  }
  return linalg_matrix_norm(self, ord, dim ? IntList(*dim) : IntList{0, 1}, keepdim, dtype);
}

// Of float32 or float64 tensors of one shape.
Tensor cross_dense(const Tensor& self, const Tensor& other, int64_t given) {
  const int64_t dim = wrap_dim(given, self.dim(), "_cross");
  const bool real = self.dtype() == DType::Float32 || self.dtype() == DType::Float64;
  if (!real || other.dtype() != self.dtype() || self.sizes() != other.sizes() || self.dim() == 0 ||
      self.size(dim) != 3) {
    fail(ErrorKind::Runtime, "_cross",
         "expected float32 or float64 tensors of one shape with 3 elements along dimension ", dim,
         ", got ", self.sizes(), " of ", self.dtype(), " and ", other.sizes(), " of ",
         other.dtype());
  }
  Tensor made = make_tensor(self.sizes(), self.dtype(), self.device());
  if (made.is_meta() || made.numel() == 0) {
    return made;
  }
  const Tensor a = kernels::as_contiguous(self);
  const Tensor b = kernels::as_contiguous(other);
  int64_t inner = 1;
  for (int64_t d = dim + 1; d < self.dim(); ++d) {
    inner *= self.size(d);
  }
  const int64_t outer = self.numel() / (3 * inner);
  if (self.dtype() == DType::Float32) {
    kernels::cross(static_cast<float*>(made.data()), static_cast<const float*>(a.data()),
                   static_cast<const float*>(b.data()), outer, inner);
  } else {
    kernels::cross(static_cast<double*>(made.data()), static_cast<const double*>(a.data()),
                   static_cast<const double*>(b.data()), outer, inner);
  }
  return made;
}

Tensor cross_of(const Tensor& self, const Tensor& other, int64_t dim) {
  if (self.dim() != other.dim()) {
    fail(ErrorKind::Runtime, "",
         "linalg.cross: inputs must have the same number of dimensions, got ", self.dim(), " and ",
         other.dim());
  }
  const int64_t at = wrap_dim(dim, self.dim(), "linalg.cross");
  if (self.dim() == 0 || self.size(at) != 3 || other.size(at) != 3) {
    fail(ErrorKind::Runtime, "", "linalg.cross: inputs dimension ", dim,
         " must have length 3. Got ", self.dim() == 0 ? int64_t{1} : self.size(at), " and ",
         other.dim() == 0 ? int64_t{1} : other.size(at));
  }
  if (self.dtype() == other.dtype() &&
      (self.dtype() == DType::Float32 || self.dtype() == DType::Float64)) {
    const IntList shape = broadcast_shapes(self.sizes(), other.sizes(), "linalg.cross");
    return _cross(expand(self, shape), expand(other, shape), at);
  }
  const auto turned = [&](const Tensor& x, int64_t by) { return roll(x, {by}, {at}); };
  return sub(mul(turned(self, -1), turned(other, -2)), mul(turned(self, -2), turned(other, -1)));
}

Tensor cross_first(const Tensor& self, const Tensor& other, std::optional<int64_t> dim) {
  if (dim) {
    return linalg_cross(self, other, *dim);
  }
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (self.size(d) == 3) {
      return linalg_cross(self, other, d);
    }
  }
  fail(ErrorKind::Runtime, "", "no dimension of size 3 in input");
}

// Powers that are no product at the end, or one by squaring alone, may be given in another dtype.
void check_power_out(const Invocation& inv) {
  if (inv.form != Form::Out) {
    return;
  }
  const auto n = static_cast<uint64_t>(std::abs(inv.arguments[1].to_int()));
  const bool product = !std::has_single_bit(n) || n == 2 || inv.arguments[1].to_int() == -1;
  const DType made = inv.arguments[0].tensor().dtype();
  const DType out = inv.results[0].tensor().dtype();
  if (n != 0 && product && out != made) {
    fail(ErrorKind::Runtime, inv.op->name(), "Expected out tensor to have dtype ",
         scalar_type_name(made), ", but got ", scalar_type_name(out), " instead");
  }
}

Tensor matrix_power_of(const Tensor& self, int64_t n) {
  require_matrix(self, "linalg.matrix_power");
  if (self.size(-1) != self.size(-2)) {
    fail(ErrorKind::Runtime, "",
         "linalg.matrix_power: A must be batches of square matrices, but they are ", self.size(-2),
         " by ", self.size(-1), " matrices");
  }
  if (n < 0) {
    const Tensor inverse = linalg_inv(self);
    // The least integer has no negative.
    return n == std::numeric_limits<int64_t>::min()
               ? matmul(linalg_matrix_power(inverse, -(n + 1)), inverse)
               : linalg_matrix_power(inverse, -n);
  }
  if (n == 0) {
    // In terms of self, which so gets a gradient of zeros.
    const Tensor never = zeros({}, TensorOptions(DType::Bool).device(self.device()));
    return where(never, self, eye(self.size(-1), self.options()));
  }
  // By squaring, from the lowest bit up.
  Tensor square = self;
  Tensor made;
  for (int64_t rest = n; rest > 0; rest /= 2) {
    if (rest % 2 != 0) {
      made = made.defined() ? matmul(made, square) : square;
    }
    if (rest > 1) {
      square = matmul(square, square);
    }
  }
  return n == 1 ? clone(made) : made;
}

// The product of the matrices from `first` to `last` in the order that costs least.
Tensor chain(const TensorList& matrices, const std::vector<std::vector<size_t>>& cut, size_t first,
             size_t last) {
  if (first == last) {
    return matrices[first];
  }
  const size_t at = cut[first][last];
  return mm(chain(matrices, cut, first, at), chain(matrices, cut, at + 1, last));
}

std::vector<std::vector<size_t>> best_cuts(const TensorList& matrices) {
  const size_t n = matrices.size();
  std::vector<double> sizes{static_cast<double>(matrices[0].size(0))};
  for (const Tensor& matrix : matrices) {
    sizes.push_back(static_cast<double>(matrix.size(1)));
  }
  std::vector<std::vector<double>> cost(n, std::vector<double>(n, 0));
  std::vector<std::vector<size_t>> cut(n, std::vector<size_t>(n, 0));
  for (size_t span = 1; span < n; ++span) {
    for (size_t i = 0; i + span < n; ++i) {
      const size_t j = i + span;
      cost[i][j] = HUGE_VAL;
      for (size_t k = i; k < j; ++k) {
        const double here = cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1];
        if (here < cost[i][j]) {
          cost[i][j] = here;
          cut[i][j] = k;
        }
      }
    }
  }
  return cut;
}

Tensor multi_dot_of(const TensorList& given) {
  if (given.size() < 2) {
    fail(ErrorKind::Runtime, "", "multi_dot(): expected at least 2 tensors but got ",
         static_cast<int64_t>(given.size()));
  }
  TensorList matrices = given;
  const bool row = given.front().dim() == 1;
  const bool column = given.back().dim() == 1;
  if (row) {
    matrices.front() = unsqueeze(given.front(), 0);
  }
  if (column) {
    matrices.back() = unsqueeze(given.back(), -1);
  }
  for (size_t i = 0; i < matrices.size(); ++i) {
    if (matrices[i].dim() != 2) {
      const bool end = i == 0 || i + 1 == matrices.size();
      fail(ErrorKind::Runtime, "", "multi_dot(): tensor ", static_cast<int64_t>(i), " must be ",
           end ? "1D or 2D" : "2D", " but got ", given[i].dim(), "D");
    }
    if (matrices[i].dtype() != matrices[0].dtype()) {
      fail(ErrorKind::Runtime, "",
           "multi_dot(): all tensors must have be the same dtype but "
           "tensor 0 is ",
           scalar_type_name(matrices[0].dtype()), " and tensor ", static_cast<int64_t>(i), " ",
           scalar_type_name(matrices[i].dtype()));
    }
    if (i > 0 && matrices[i - 1].size(1) != matrices[i].size(0)) {
      fail(ErrorKind::Runtime, "", "multi_dot(): tensors ", static_cast<int64_t>(i - 1), " and ",
           static_cast<int64_t>(i), " with shapes ", given[i - 1].sizes(), " and ",
           given[i].sizes(), " cannot be multiplied");
    }
  }
  Tensor made = chain(matrices, best_cuts(matrices), 0, matrices.size() - 1);
  made = row ? squeeze(made, 0) : made;
  return column ? squeeze(made, -1) : made;
}

Tensor vander_of(const Tensor& given, std::optional<int64_t> columns) {
  if (given.dtype() == DType::Bool) {
    fail(ErrorKind::Runtime, "",
         "linalg.vander supports floating point, complex, and integer tensors, but got Bool");
  }
  const Tensor x = given.dim() == 0 ? unsqueeze(given, 0) : given;
  const int64_t n = columns.value_or(x.size(-1));
  if (n <= 1) {
    fail(ErrorKind::Runtime, "", "N must be greater than 1.");
  }
  IntList shape(x.sizes());
  shape.push_back(n - 1);
  const DType dtype = is_integral(x.dtype(), false) ? DType::Int64 : x.dtype();
  const Tensor powers = cumprod(expand(unsqueeze(x, -1), shape), -1);
  shape.back() = 1;
  return cat({ones(shape, TensorOptions(dtype).device(x.device())), powers}, -1);
}

}  // namespace

RUSHLIGHT_OPERATORS(norm) {
  op("linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2, -1], bool keepdim=False, *, "
     "ScalarType? dtype=None) -> Tensor",
     kFunction | kOut)
      .doc("The matrix norm of order 1, -1, 2, -2, inf or -inf over two dimensions.")
      .composition(matrix_norm_number);
  op("linalg_matrix_norm.str_ord(Tensor self, str ord='fro', int[] dim=[-2, -1], "
     "bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
     kFunction | kOut)
      .doc("The Frobenius norm, or the nuclear one, over two dimensions.")
      .composition(matrix_norm_text);
  op("nuclear_norm(Tensor self, bool keepdim=False) -> Tensor", kFunction | kOut)
      .doc("The sum of the singular values of a matrix.")
      .composition([](const Tensor& self, bool keepdim) {
        return linalg_matrix_norm(self, std::string_view("nuc"), {-2, -1}, keepdim, {});
      });
  op("nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor", kFunction | kOut)
      .doc("The same of matrices over two dimensions.")
      .composition([](const Tensor& self, IntArrayRef dim, bool keepdim) {
        return linalg_matrix_norm(self, std::string_view("nuc"), dim, keepdim, {});
      });
  op("linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, "
     "ScalarType? dtype=None) -> Tensor",
     kFunction | kOut)
      .doc("The norm of vectors over one dimension, of matrices over two.")
      .composition(norm_number);
  op("linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, "
     "ScalarType? dtype=None) -> Tensor",
     kFunction | kOut)
      .doc("The norm of matrices over two dimensions.")
      .composition(norm_text);
  op("_cross(Tensor self, Tensor other, int dim) -> Tensor", kInternal)
      .doc("Cross products of real vectors in tensors of one shape.")
      .kernel(cross_dense)
      .gradient("self other", [](Gradient& g) {
        const int64_t dim = g.integer(2);
        if (g.needs(0)) {
          g.set(0, linalg_cross(g.tensor(1), g.grad(), dim));
        }
        if (g.needs(1)) {
          g.set(1, linalg_cross(g.grad(), g.tensor(0), dim));
        }
      });
  op("linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor", kFunction | kOut)
      .doc("The cross products of vectors of three elements along a dimension.")
      .composition(cross_of)
      .node("LinalgCrossBackward0")
      .check(expect_one_dtype);
  op("cross(Tensor self, Tensor other, int? dim=None) -> Tensor", kFunction | kMethod | kOut)
      .doc("Cross products along `dim`, or the first dimension of size 3.")
      .composition(cross_first)
      .node("LinalgCrossBackward0")
      .check(expect_one_dtype);
  op("linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor", kFunction | kOut)
      .doc("The inner products along a dimension.")
      .composition([](const Tensor& x, const Tensor& y, int64_t dim) -> Tensor {
        if (!x.is_floating_point() && !x.is_complex()) {
          fail(ErrorKind::Runtime, "linalg.vecdot",
               "Expected a floating point or complex tensor as input. Got ",
               scalar_type_name(x.dtype()));
        }
        if (x.dtype() != y.dtype()) {
          fail(ErrorKind::Runtime, "linalg.vecdot",
               "Expected x and y to have the same dtype, but found x of type ",
               scalar_type_name(x.dtype()), " and y of type ", scalar_type_name(y.dtype()));
        }
        const Tensor product = mul(conj(x), y);
        return sum(product, {dim}, false, product.dtype());
      })
      .node("SumBackward1");
  op("linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)",
     kFunction)
      .doc("diagonal, of the last two dimensions.")
      .composition([](const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) -> Tensor {
        return diagonal(self, offset, dim1, dim2);
      });
  op("linalg_matrix_power(Tensor self, int n) -> Tensor", kFunction | kOut)
      .doc("The n-th power of square matrices.")
      .composition(matrix_power_of)
      .casts_out()
      .check(check_power_out);
  op("matrix_power(Tensor self, int n) -> Tensor", kFunction | kMethod | kOut)
      .doc("Another name of linalg.matrix_power.")
      .composition(matrix_power_of)
      .casts_out()
      .check(check_power_out);
  op("linalg_multi_dot(Tensor[] tensors) -> Tensor", kFunction | kOut)
      .doc("The product of many matrices, in the order that costs least.")
      .composition(multi_dot_of)
      .node("ViewBackward0");
  op("linalg_vander(Tensor x, *, SymInt? N=None) -> Tensor", kFunction)
      .doc("The powers 0 ... N - 1 of each element, along a new last dimension.")
      .composition(vander_of);
}

}  // namespace rushlight
