// Matrix products, over the matrix engine.
#include "ops/matmul.h"

#include <rushlight/generated/functions.h>

#include <algorithm>

#include "kernels/gemm.h"
#include "ops/gradient.h"
#include "ops/operator.h"
#include "ops/output_rule.h"
#include "ops/promotion.h"
#include "tensor/scalar_range.h"

namespace rushlight {

using namespace products;

namespace {

// Also of one device.
void check_same_dtype(std::string_view op, const Tensor& a, const Tensor& b) {
  if (!(a.device() == b.device())) {
    fail(ErrorKind::Runtime, op, "Tensor on device ", b.device().to_string(),
         " is not on the expected device ", a.device().to_string(), "!");
  }
  if (a.dtype() != b.dtype()) {
    fail(ErrorKind::Runtime, op, "expected m1 and m2 to have the same dtype, but got: ", a.dtype(),
         " != ", b.dtype());
  }
  if (!gemm_supports(a.dtype())) {
    fail(ErrorKind::NotImplemented, op, "\"", op, "\" not implemented for '",
         scalar_type_name(a.dtype()), "'");
  }
}

void check_dim(std::string_view op, std::string_view name, const Tensor& x, int64_t dim) {
  if (x.dim() != dim) {
    fail(ErrorKind::Runtime, op, name, " must be a ", dim == 1 ? "vector" : "matrix", ", got ",
         x.dim(), "-D tensor of shape ", x.sizes(), "; expected ", dim, "-D");
  }
}

[[noreturn]] void shape_fault(std::string_view op, const Tensor& a, const Tensor& b) {
  fail(ErrorKind::Runtime, op, "mat1 and mat2 shapes cannot be multiplied (",
       a.sizes()[static_cast<size_t>(a.dim() - 2)], "x",
       a.sizes()[static_cast<size_t>(a.dim() - 1)], " and ",
       b.sizes()[static_cast<size_t>(b.dim() - 2)], "x",
       b.sizes()[static_cast<size_t>(b.dim() - 1)], ")");
}

Tensor mm_kernel(const Tensor& self, const Tensor& mat2) {
  check_dim("mm", "self", self, 2);
  check_dim("mm", "mat2", mat2, 2);
  if (self.sizes()[1] != mat2.sizes()[0]) {
    shape_fault("mm", self, mat2);
  }
  check_same_dtype("mm", self, mat2);
  Tensor out = make_tensor({self.sizes()[0], mat2.sizes()[1]}, self.dtype(), self.device());
  if (!out.is_meta()) {
    mm_into(self, mat2, out);
  }
  return out;
}

void check_batches(std::string_view op, const Tensor& a, const Tensor& b) {
  if (a.dim() != 3 || b.dim() != 3) {
    fail(ErrorKind::Runtime, op, "batch1 and batch2 must be 3D tensors, got ", a.dim(), "-D ",
         a.sizes(), " and ", b.dim(), "-D ", b.sizes());
  }
  if (a.sizes()[0] != b.sizes()[0] || a.sizes()[2] != b.sizes()[1]) {
    fail(ErrorKind::Runtime, op, "Expected size for first two dimensions of batch2 tensor to be: [",
         a.sizes()[0], ", ", a.sizes()[2], "] but got: [", b.sizes()[0], ", ", b.sizes()[1], "].");
  }
  check_same_dtype(op, a, b);
}

void run_batches(const Tensor& a, const Tensor& b, const Tensor& out,
                 const GemmEpilogue& epilogue = {}, int64_t addend_batch = 0) {
  BatchStrides strides{a.strides()[0], b.strides()[0], out.strides()[0], addend_batch};
  gemm_batched(a.sizes()[0], strides, a.sizes()[1], b.sizes()[2], a.sizes()[2], matrix(a, 1, 2),
               matrix(b, 1, 2), target(out, 1, 2), epilogue);
}

Tensor bmm_kernel(const Tensor& self, const Tensor& mat2) {
  check_batches("bmm", self, mat2);
  Tensor out =
      make_tensor({self.sizes()[0], self.sizes()[1], mat2.sizes()[2]}, self.dtype(), self.device());
  if (!out.is_meta()) {
    run_batches(self, mat2, out);
  }
  return out;
}

// beta * self + alpha * product: of complex numbers, which the engine has none of.
Tensor add_product(const Tensor& self, const Tensor& product, Scalar beta, Scalar alpha) {
  const Tensor scaled = mul(product, alpha);
  return beta == Scalar(0) ? scaled : add(mul(self, beta), scaled);
}

Tensor addmm_kernel(const Tensor& self, const Tensor& mat1, const Tensor& mat2, Scalar beta,
                    Scalar alpha) {
  check_dim("addmm", "mat1", mat1, 2);
  check_dim("addmm", "mat2", mat2, 2);
  if (mat1.sizes()[1] != mat2.sizes()[0]) {
    shape_fault("addmm", mat1, mat2);
  }
  if (self.is_complex() && mat1.is_complex() && mat2.is_complex()) {
    return add_product(self, mm(mat1, mat2), beta, alpha);
  }
  check_same_dtype("addmm", mat1, mat2);
  check_same_dtype("addmm", self, mat2);
  Tensor out = make_tensor({mat1.sizes()[0], mat2.sizes()[1]}, self.dtype(), self.device());
  expand(self, out.sizes());  // checks it
  if (!out.is_meta()) {
    addmm_into(self, mat1, mat2, beta, alpha, out);
  }
  return out;
}

Tensor baddbmm_kernel(const Tensor& self, const Tensor& batch1, const Tensor& batch2, Scalar beta,
                      Scalar alpha) {
  if (self.is_complex() && batch1.is_complex() && batch2.is_complex()) {
    return add_product(self, bmm(batch1, batch2), beta, alpha);
  }
  check_batches("baddbmm", batch1, batch2);
  check_same_dtype("baddbmm", self, batch2);
  Tensor out = make_tensor({batch1.sizes()[0], batch1.sizes()[1], batch2.sizes()[2]}, self.dtype(),
                           self.device());
  Tensor view = expand(self, out.sizes());
  if (!out.is_meta()) {
    MatrixRef addend;
    run_batches(batch1, batch2, out, added(&addend, view, beta, alpha), view.strides()[0]);
  }
  return out;
}

Tensor scaled(const Tensor& x, const Scalar& factor) {
  return factor == Scalar(1) ? x : mul(x, factor);
}

void product_gradient(Gradient& g, int a, int b, const Scalar& alpha) {
  if (g.needs(a)) {
    Tensor other = transpose(g.tensor(b), -2, -1);
    g.set(a, scaled(matmul(g.grad(), other), alpha));
  }
  if (g.needs(b)) {
    Tensor other = transpose(g.tensor(a), -2, -1);
    g.set(b, scaled(matmul(other, g.grad()), alpha));
  }
}

void added_product_gradient(Gradient& g) {
  if (g.needs(0)) {
    g.set(0, scaled(g.grad(), g.scalar(3)));
  }
  product_gradient(g, 1, 2, g.scalar(4));
}

Tensor linear_kernel(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  if (weight.dim() != 2 && weight.dim() != 1) {
    fail(ErrorKind::Runtime, "linear", "weight must be 2-D or 1-D, got ", weight.dim(),
         "-D tensor of shape ", weight.sizes());
  }
  if (input.dim() == 0) {
    fail(ErrorKind::Runtime, "linear",
         "both arguments to linear need to be at least 1D, but they "
         "are ",
         input.dim(), "D and ", weight.dim(), "D");
  }
  int64_t features = weight.sizes()[static_cast<size_t>(weight.dim() - 1)];
  int64_t last = input.sizes()[static_cast<size_t>(input.dim() - 1)];
  int64_t outputs = weight.dim() == 2 ? weight.sizes()[0] : 1;
  int64_t count = 1;
  for (int64_t i = 0; i + 1 < input.dim(); ++i) {
    count *= input.sizes()[static_cast<size_t>(i)];
  }
  if (last != features) {
    fail(ErrorKind::Runtime, "linear", "mat1 and mat2 shapes cannot be multiplied (", count, "x",
         last, " and ", features, "x", outputs, ")");
  }
  check_same_dtype("linear", input, weight);
  IntList shape(input.sizes());
  shape.pop_back();
  if (weight.dim() == 2) {
    shape.push_back(outputs);
  }
  Tensor out = make_tensor(shape, input.dtype(), input.device());
  if (bias.defined()) {
    check_same_dtype("linear", bias, weight);
    expand(bias, shape);  // checks it
    if (bias.dim() > 1 && !out.is_meta()) {
      fail(ErrorKind::Runtime, "linear", "bias must be 1-D, got ", bias.dim(),
           "-D tensor of shape ", bias.sizes());
    }
  }
  if (!out.is_meta()) {
    linear_into(input, weight, bias, out);
  }
  return out;
}

void linear_gradient(Gradient& g) {
  Tensor grad = g.grad();
  if (g.sizes(1).size() == 1) {  // a vector of weights: the product of each row with it
    grad = unsqueeze(grad, -1);
  }
  if (g.needs(0)) {
    Tensor weight = g.tensor(1);
    g.set(0, matmul(grad, weight.dim() == 1 ? unsqueeze(weight, 0) : weight));
  }
  Tensor rows = grad.dim() == 1 ? unsqueeze(grad, 0) : rows_of(grad);
  if (g.needs(1)) {
    Tensor input = g.tensor(0);
    input = input.dim() == 1 ? unsqueeze(input, 0) : rows_of(input);
    Tensor weight_grad = mm(transpose(rows, 0, 1), input);
    g.set(1, g.sizes(1).size() == 1 ? squeeze(weight_grad, 0) : weight_grad);
  }
  if (!g.is_none(2) && g.needs(2)) {
    g.set(2, sum(rows, {0}, false, std::nullopt));
  }
}

void check_vectors(std::string_view op, const Tensor& a, const Tensor& b) {
  if (a.dim() != 1 || b.dim() != 1) {
    fail(ErrorKind::Runtime, op, "1D tensors expected, but got ", a.dim(), "D and ", b.dim(),
         "D tensors");
  }
  if (a.sizes()[0] != b.sizes()[0]) {
    fail(ErrorKind::Runtime, op, "inconsistent tensor size, expected tensor [", a.sizes()[0],
         "] and src [", b.sizes()[0], "] to have the same number of elements, but got ",
         a.sizes()[0], " and ", b.sizes()[0], " elements respectively");
  }
  if (a.dtype() != b.dtype()) {
    fail(ErrorKind::Runtime, op, "expected both vectors to have same dtype, but found ",
         scalar_type_name(a.dtype()), " and ", scalar_type_name(b.dtype()));
  }
}

Tensor dot_of(const Tensor& a, const Tensor& b) {
  check_vectors("dot", a, b);
  return reshape(mm(unsqueeze(a, 0), unsqueeze(b, 1)), {});
}

Tensor vdot_of(const Tensor& a, const Tensor& b) {
  return dot_of(conj(a), b);
}

Tensor mv_of(const Tensor& self, const Tensor& vec) {
  if (self.dim() != 2 || vec.dim() != 1) {
    fail(ErrorKind::Runtime, "mv", "vector + matrix @ vector expected, got ", self.dim(), ", ",
         vec.dim());
  }
  if (self.sizes()[1] != vec.sizes()[0]) {
    fail(ErrorKind::Runtime, "mv", "size mismatch, got input (", self.sizes()[0], "), mat (",
         self.sizes()[0], "x", self.sizes()[1], "), vec (", vec.sizes()[0], ")");
  }
  return squeeze(mm(self, unsqueeze(vec, 1)), 1);
}

// Batched product of more than two dimensions, with broadcasting.
Tensor matmul_batched(const Tensor& a, const Tensor& b) {
  int64_t rows = a.sizes()[static_cast<size_t>(a.dim() - 2)];
  int64_t inner = a.sizes()[static_cast<size_t>(a.dim() - 1)];
  int64_t cols = b.sizes()[static_cast<size_t>(b.dim() - 1)];
  if (inner != b.sizes()[static_cast<size_t>(b.dim() - 2)]) {
    shape_fault("matmul", a, b);
  }
  IntArrayRef a_batch(a.sizes().data(), static_cast<size_t>(a.dim() - 2));
  IntArrayRef b_batch(b.sizes().data(), static_cast<size_t>(b.dim() - 2));
  IntList batch = broadcast_shapes(a_batch, b_batch, "matmul");
  int64_t count = checked_numel(batch, "matmul");
  auto flat = [&](const Tensor& x, int64_t m, int64_t n) {
    IntList full(batch);
    full.push_back(m);
    full.push_back(n);
    return reshape(expand(x, full), {count, m, n});
  };
  Tensor product = bmm(flat(a, rows, inner), flat(b, inner, cols));
  IntList shape(batch);
  shape.push_back(rows);
  shape.push_back(cols);
  return reshape(product, shape);
}

Tensor matmul_of(const Tensor& self, const Tensor& other) {
  if (self.dim() == 0 || other.dim() == 0) {
    fail(ErrorKind::Runtime, "matmul",
         "both arguments to matmul need to be at least 1D, but they "
         "are ",
         self.dim(), "D and ", other.dim(), "D");
  }
  if (self.dim() == 2 && other.dim() == 2) {
    return mm(self, other);
  }
  if (self.dim() == 1 && other.dim() == 1) {
    return dot(self, other);
  }
  if (other.dim() == 1) {
    if (self.dim() == 2) {
      return mv(self, other);
    }
    return squeeze(matmul(self, unsqueeze(other, 1)), -1);
  }
  if (self.dim() == 1) {
    return squeeze(matmul(unsqueeze(self, 0), other), -2);
  }
  if (other.dim() == 2) {  // one matrix for all rows: a single product
    if (self.sizes()[static_cast<size_t>(self.dim() - 1)] != other.sizes()[0]) {
      Tensor rows = rows_of(self);
      shape_fault("matmul", rows, other);
    }
    IntList shape(self.sizes());
    shape.back() = other.sizes()[1];
    return reshape(mm(rows_of(self), other), shape);
  }
  return matmul_batched(self, other);
}

Tensor outer_of(const Tensor& self, const Tensor& vec2) {
  if (self.dim() != 1 || vec2.dim() != 1) {
    fail(ErrorKind::Runtime, "outer", "outer: Expected 1-D argument ",
         self.dim() != 1 ? "self" : "vec2", ", but got ", self.dim() != 1 ? self.dim() : vec2.dim(),
         "-D");
  }
  return mul(unsqueeze(self, 1), vec2);
}

// The operator that PyTorch ends a linear layer with.
const char* linear_node(const Invocation& inv) {
  const Tensor& input = inv.arguments[0].tensor();
  bool biased = inv.arguments[2].is_tensor();
  if (input.dim() == 2) {
    return biased ? "AddmmBackward0" : "MmBackward0";
  }
  if (!biased) {
    return input.dim() == 1 ? "SqueezeBackward4" : "UnsafeViewBackward0";
  }
  return input.is_contiguous() ? "ViewBackward0" : "AddBackward0";
}

const char* matmul_node(const Invocation& inv) {
  int64_t left = inv.arguments[0].tensor().dim();
  int64_t right = inv.arguments[1].tensor().dim();
  if (left <= 2 && right <= 2) {
    if (right == 1) {
      return left == 1 ? "DotBackward0" : "MvBackward0";
    }
    return left == 1 ? "SqueezeBackward4" : "MmBackward0";
  }
  return left == 2 ? "CloneBackward0" : "UnsafeViewBackward0";
}

Tensor inner_of(const Tensor& self, const Tensor& other) {
  if (self.dim() == 0 || other.dim() == 0) {
    return mul(self, other);
  }
  if (self.sizes().back() != other.sizes().back()) {
    fail(ErrorKind::Runtime, "inner",
         "inner() the last dimension must match on both input "
         "tensors but got shapes ",
         self.sizes(), " and ", other.sizes());
  }
  return tensordot(self, other, {-1}, {-1});
}

// Only products with a number convert to the dtype of out=.
void inner_output(const Invocation& inv, const Tensor& made) {
  const bool sums = inv.arguments[0].tensor().dim() != 0 && inv.arguments[1].tensor().dim() != 0;
  const DType given = inv.results[0].tensor().dtype();
  if (sums && given != made.dtype()) {
    fail(ErrorKind::Runtime, "inner", "Expected the output tensor to have dtype ",
         scalar_type_name(made.dtype()), ", but got an output tensor with dtype ",
         scalar_type_name(given));
  }
}

// A given result of a vector is written as a row: one with gaps is laid out anew for it.
// linear as PyTorch makes it of products of matrices.
Tensor linear_by_products(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  if (weight.dim() != 2 || input.dim() == 0) {
    const Tensor product = matmul(input, weight);
    return bias.defined() ? add(product, bias) : product;
  }
  const auto product = [&](const Tensor& rows) {
    const Tensor turned = t(weight);
    return bias.defined() ? addmm(bias, rows, turned) : mm(rows, turned);
  };
  if (input.dim() == 2) {
    return product(input);
  }
  IntList sizes(input.sizes());
  sizes[sizes.size() - 1] = weight.sizes()[0];
  return view(product(reshape(input, {-1, weight.sizes()[1]})), sizes);
}

void linear_output(const Invocation& inv, const Tensor& made) {
  const Tensor& target = inv.results[0].tensor();
  if (inv.form == Form::Out && made.dim() == 1 && target.sizes() == made.sizes() &&
      target.dtype() == made.dtype() && !target.is_contiguous()) {
    resize_in_place(target, {0});
    resize_in_place(target, made.sizes());
  }
}

Tensor addbmm_of(const Tensor& self, const Tensor& batch1, const Tensor& batch2, Scalar beta,
                 Scalar alpha) {
  const bool integers = is_integral(self.dtype(), true);
  const auto taken = [&](const Scalar& x) { return integers ? Scalar(x.to_int()) : x; };
  if (self.dtype() != batch2.dtype()) {
    fail(ErrorKind::Runtime, "addbmm", "self and mat2 must have the same dtype, but got ",
         scalar_type_name(self.dtype()), " and ", scalar_type_name(batch2.dtype()));
  }
  const Tensor sums = sum(bmm(batch1, batch2), {0}, false, self.dtype());
  const Tensor base = expand(self, sums.sizes());
  const Tensor product = scaled(sums, taken(alpha));
  return taken(beta) == Scalar(0) ? product : add(scaled(base, taken(beta)), product);
}

// The in-place form gives a smaller argument the shape of the sum.
void addbmm_output(const Invocation& inv, const Tensor& made) {
  const Tensor& target = inv.results[0].tensor();
  if (inv.form == Form::Inplace && target.sizes() != made.sizes()) {
    resize_in_place(target, made.sizes());
  }
}

}  // namespace

RUSHLIGHT_OPERATORS(matmul) {
  op("mm(Tensor self, Tensor mat2) -> Tensor", kFunction | kMethod | kOut)
      .complex(ComplexRule::Product)
      .doc("Product of two matrices: (M, K) by (K, N).")
      .kernel(mm_kernel)
      .gradient("self:mat2 mat2:self", [](Gradient& g) { product_gradient(g, 0, 1, Scalar(1)); });
  op("bmm(Tensor self, Tensor mat2) -> Tensor", kFunction | kMethod | kOut)
      .complex(ComplexRule::Product)
      .doc("Products of batches: (B, M, K) by (B, K, N).")
      .kernel(bmm_kernel)
      .gradient("self:mat2 mat2:self", [](Gradient& g) { product_gradient(g, 0, 1, Scalar(1)); });
  op("addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
     kUnary)
      .complex()
      .doc("beta * self + alpha * mat1 @ mat2; NaN in self is ignored where beta is 0.")
      .kernel(addmm_kernel)
      .gradient("mat1:mat2 mat2:mat1", added_product_gradient);
  op("baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) "
     "-> Tensor",
     kUnary)
      .complex()
      .doc("beta * self + alpha * batch1 @ batch2, batch by batch.")
      .kernel(baddbmm_kernel)
      .gradient("batch1:batch2 batch2:batch1", added_product_gradient);
  op("linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", kNN | kOut)
      .complex(ComplexRule::Product)
      .doc("input @ weight^T + bias: (..., K) with (N, K) and (N) gives (..., N).")
      .body(Kind::Kernel, ruled_body(box(linear_kernel), linear_output))
      .seen_as(linear_by_products)
      .gradient("input:weight weight:input", linear_gradient)
      .node(linear_node);
  op("matmul(Tensor self, Tensor other) -> Tensor", kFunction | kMethod | kOut)
      .doc("Matrix product with NumPy's rules for vectors and batches.")
      .composition(matmul_of)
      .node(matmul_node);
  op("linalg_matmul(Tensor input, Tensor other) -> Tensor", kFunction | kOut)
      .doc("Another name of matmul.")
      .composition(matmul_of)
      .node(matmul_node);
  op("mv(Tensor self, Tensor vec) -> Tensor", kFunction | kMethod | kOut)
      .doc("Product of a matrix and a vector.")
      .composition(mv_of)
      .node("MvBackward0");
  op("dot(Tensor self, Tensor tensor) -> Tensor", kFunction | kMethod | kOut)
      .doc("Inner product of two vectors.")
      .composition(dot_of)
      .node("DotBackward0");
  op("vdot(Tensor self, Tensor other) -> Tensor", kFunction | kMethod | kOut)
      .doc("dot of the conjugates of self.")
      .composition(vdot_of)
      .node("VdotBackward0");
  op("inner(Tensor self, Tensor other) -> Tensor", kFunction | kMethod | kOut)
      .doc("Sums of products along the last dimension of both.")
      .body(Kind::Composition, ruled_body(box(inner_of), inner_output))
      .casts_out();
  op("outer(Tensor self, Tensor vec2) -> Tensor", kFunction | kMethod | kOut)
      .doc("All products of the elements of two vectors.")
      .composition(outer_of)
      .casts_out();
  op("ger(Tensor self, Tensor vec2) -> Tensor", kFunction | kMethod | kOut)
      .doc("Another name of outer.")
      .composition(outer_of)
      .casts_out();
  op("addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
     kUnary)
      .doc("beta * self + alpha * mat @ vec.")
      .composition([](const Tensor& self, const Tensor& mat, const Tensor& vec, Scalar beta,
                      Scalar alpha) -> Tensor {
        if (mat.dim() != 2 || vec.dim() != 1) {
          fail(ErrorKind::Runtime, "addmv", "vector + matrix @ vector expected, got ", self.dim(),
               ", ", mat.dim(), ", ", vec.dim());
        }
        Tensor column = unsqueeze(self.dim() == 0 ? expand(self, {1}) : self, 1);
        return squeeze(addmm(column, mat, unsqueeze(vec, 1), beta, alpha), 1);
      })
      .node("AddmvBackward0");
  op("addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
     kUnary)
      .doc("beta * self + alpha * outer(vec1, vec2).")
      .composition([](const Tensor& self, const Tensor& vec1, const Tensor& vec2, Scalar beta,
                      Scalar alpha) -> Tensor {
        const DType dtype = promote(self.dtype(), promote(vec1.dtype(), vec2.dtype()));
        if (is_integral(dtype, true) && (!beta.is_integral(true) || !alpha.is_integral(true))) {
          fail(ErrorKind::Runtime, "addr", "For integral input tensors, argument ",
               beta.is_integral(true) ? "alpha" : "beta", " must not be a floating point number.");
        }
        check_fits(beta, dtype);
        check_fits(alpha, dtype);
        const Tensor whole = outer(to(vec1, dtype), to(vec2, dtype));
        const Tensor base = expand(to(self, dtype), whole.sizes());
        const Tensor product = scaled(whole, alpha);
        // Numbers do not widen truth values.
        return to(beta == Scalar(0) ? product : add(scaled(base, beta), product), dtype);
      })
      .casts_out()
      .node("AddrBackward0");
  op("addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) "
     "-> Tensor",
     kUnary)
      .doc("beta * self + alpha * the sum of the products of batches.")
      .body(Kind::Composition, ruled_body(box(addbmm_of), addbmm_output))
      .node("AddbmmBackward0");
}

}  // namespace rushlight
