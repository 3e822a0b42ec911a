// Least squares.
#include <rushlight/generated/functions.h>

#include <algorithm>
#include <limits>

#include "kernels/copy.h"
#include "ops/gradient.h"
#include "ops/linalg.h"
#include "ops/operator.h"

namespace rushlight {

using namespace matrices;

namespace {

constexpr std::string_view kName = "torch.linalg.lstsq";

struct Solution {
  Tensor x;
  Tensor residuals;
  Tensor rank;
  Tensor values;
};

void check_operands(const Tensor& a, const Tensor& b) {
  if (a.dim() < 2) {
    fail(ErrorKind::Runtime, "", kName, ": input must have at least 2 dimensions.");
  }
  if (b.dim() < 1) {
    fail(ErrorKind::Runtime, "", kName, ": other must have at least 1 dimension.");
  }
  if (a.dim() < b.dim() || a.dim() - b.dim() > 1) {
    fail(ErrorKind::Runtime, "", kName,
         ": input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) "
         "<= 1");
  }
  const bool vector = is_vector_for(a, b.sizes());
  const int64_t rows = vector ? b.sizes().back() : rows_of(b);
  if (rows != rows_of(a)) {
    fail(ErrorKind::Runtime, "", kName, ": input.size(-2) should match other.size(",
         vector ? -1 : -2, "), but got ", rows_of(a), " and ", rows);
  }
  check_field(a, kName);
  check_same_dtype(a, b, kName, "input", "other");
}

std::string_view parse_driver(const std::optional<std::string_view>& driver) {
  const std::string_view name = driver.value_or("gelsy");
  if (name != "gels" && name != "gelsy" && name != "gelsd" && name != "gelss") {
    fail(ErrorKind::Runtime, "", kName, ": parameter `driver` should be one of ",
         "(gels, gelsy, gelsd, gelss), but got ", name);
  }
  return name;
}

std::string deficient_text(int32_t code) {
  return cat("The least squares solution could not be computed because the input matrix does not ",
             "have full rank (error code: ", code, ").");
}

// Of full rank: by QR, or for the solution of least length where there are fewer rows.
Tensor solve_full_rank(const Tensor& a, const Tensor& b) {
  const bool tall = rows_of(a) >= columns_of(a);
  const auto [q, r] = linalg_qr(tall ? a : turned(a), "reduced");
  const Tensor zero = eq(diagonal(r, 0, -2, -1), Scalar(0));
  const Tensor info = to(any(zero, -1, false), DType::Int32);
  check_info(info, kName, deficient_text);
  return tall ? linalg_solve_triangular(r, matmul(turned(q), b), true, true, false)
              : matmul(q, linalg_solve_triangular(turned(r), b, false, true, false));
}

// The share of the largest singular value that smaller ones need to count.
double threshold(const Tensor& a, std::optional<double> given) {
  const double epsilon = real_dtype(a.dtype()) == DType::Float32
                             ? std::numeric_limits<float>::epsilon()
                             : std::numeric_limits<double>::epsilon();
  const double usual = epsilon * static_cast<double>(std::max(rows_of(a), columns_of(a)));
  return given.value_or(usual) < 0 ? epsilon : given.value_or(usual);
}

// By QR, where R shows that the matrices are far from losing rank: its condition is at most the
// product of bounds of the largest singular values of R and of its inverse, each the fourth root of
// the sum of the fourth powers of all. Without a solution where one of them is not.
Solution solve_well_conditioned(const Tensor& a, const Tensor& b, double rcond) {
  const bool tall = rows_of(a) >= columns_of(a);
  const auto [q, r] = linalg_qr(tall ? a : turned(a), "reduced");
  const int64_t rank = columns_of(r);
  const auto bound = [](const Tensor& x) {
    const Tensor squares = matmul(turned(x), x);
    const Tensor sizes = squares.is_complex() ? abs(squares) : squares;
    return sqrt(sqrt(sum(square(sizes), {-2, -1}, false, std::nullopt)));
  };
  const Tensor inverse = linalg_solve_triangular(r, eye(rank, a.options()), true, true, false);
  const Tensor condition = mul(bound(r), bound(inverse));
  if (!all(lt(mul(condition, Scalar(rcond)), Scalar(0.5))).item<bool>()) {
    return {};
  }
  const Tensor x = tall ? linalg_solve_triangular(r, matmul(turned(q), b), true, true, false)
                        : matmul(q, linalg_solve_triangular(turned(r), b, false, true, false));
  return {x, {}, full_like(condition, Scalar(rank), TensorOptions(DType::Int64)), {}};
}

// Of any rank: the solution of least length, by singular values. Those, and the rank, are one for
// each matrix of `a`, however many right-hand sides its batch is broadcast to.
Solution solve_any_rank(const Tensor& a, const Tensor& b, double rcond) {
  const auto [u, s, vh] = linalg_svd(a, false);
  const Tensor kept = gt(s, mul(amax(s, {-1}, true), Scalar(rcond)));
  const Tensor inverted = masked_fill(reciprocal(s), logical_not(kept), Scalar(0));
  const Tensor products = mul(matmul(turned(u), b), unsqueeze(inverted, -1));
  return {matmul(turned(vh), products), {}, sum(kept, {-1}, false, std::nullopt), s};
}

Tensor none(DType dtype, const Tensor& like) {
  return make_tensor({0}, dtype, like.device());
}

bool all_full(const Tensor& rank, int64_t n) {
  if (rank.is_meta()) {
    fail(ErrorKind::NotImplemented, kName,
         "whether there are residuals depends on the ranks of the matrices, which meta tensors do "
         "not have");
  }
  return all(eq(rank, Scalar(n))).item<bool>();
}

std::tuple<Tensor, Tensor, Tensor, Tensor> lstsq_of(const Tensor& given_a, const Tensor& given_b,
                                                    std::optional<double> rcond,
                                                    std::optional<std::string_view> driver) {
  check_operands(given_a, given_b);
  const std::string_view name = parse_driver(driver);
  const DoorGuard guard(0, ~0U);
  const bool vector = is_vector_for(given_a, given_b.sizes());
  const Tensor columns = vector ? unsqueeze(given_b, -1) : given_b;
  const IntList batch = common_batch(given_a, columns, "linalg.lstsq");
  const Tensor a = expand_batch(given_a, batch);
  const Tensor b = expand_batch(columns, batch);
  const int64_t n = columns_of(a);
  const bool by_values = name == "gelsd" || name == "gelss";
  Solution made;
  if (a.numel() == 0) {
    const IntList own = batch_sizes(given_a);
    made.x = zeros(with_tail(batch, {n, columns_of(b)}), a.options());
    made.rank = zeros(own, TensorOptions(DType::Int64).device(a.device()));
    made.values =
        make_tensor(with_tail(own, {std::min(rows_of(a), n)}), real_dtype(a.dtype()), a.device());
  } else if (name == "gels") {
    made.x = solve_full_rank(a, b);
  } else {
    const double least = threshold(a, rcond);
    if (name == "gelsy" && !a.is_meta()) {
      made = solve_well_conditioned(given_a, b, least);
    }
    if (!made.x.defined()) {
      made = solve_any_rank(given_a, b, least);
    }
  }
  const bool asked =
      rows_of(a) > n && name != "gelsy" && (name == "gels" || all_full(made.rank, n));
  const auto lengths = [](const Tensor& x) { return square(x.is_complex() ? abs(x) : x); };
  made.residuals = asked ? sum(lengths(sub(matmul(a, made.x), b)), {-2}, false, std::nullopt)
                         : none(real_dtype(a.dtype()), a);
  return {vector ? squeeze(made.x, -1) : copy_columns(made.x), made.residuals,
          name == "gels" ? none(DType::Int64, a) : made.rank,
          by_values ? made.values : none(real_dtype(a.dtype()), a)};
}

void lstsq_gradient(Gradient& g) {
  const Tensor a = g.tensor(0);
  const Tensor given = g.tensor(1);
  const bool vector = is_vector_for(a, given.sizes());
  const Tensor b = vector ? unsqueeze(given, -1) : given;
  const auto matrix = [&](const Tensor& x) { return vector ? unsqueeze(x, -1) : x; };
  Tensor of_a;
  Tensor of_b;
  if (g.has_grad(0)) {
    const Tensor p = linalg_pinv(a, Tensor(), Tensor(), false);
    const Tensor grad = matrix(g.grad(0));
    of_b = matmul(turned(p), grad);
    if (g.needs(0)) {
      of_a = pinv_gradient(matmul(grad, turned(b)), p, a);
    }
  }
  if (g.has_grad(1) && g.grad(1).numel() != 0) {
    // A^T (A X - B) is zero, so that X counts as constant.
    const Tensor x = matrix(g.result(0));
    const Tensor part = mul(sub(matmul(a, x), b), mul(unsqueeze(g.grad(1), -2), Scalar(2)));
    of_b = of_b.defined() ? sub(of_b, part) : neg(part);
    const Tensor product = matmul(part, turned(x));
    of_a = of_a.defined() ? add(of_a, product) : product;
  }
  if (of_a.defined() && g.needs(0)) {
    g.set(0, of_a);
  }
  if (of_b.defined() && g.needs(1)) {
    g.set(1, vector ? squeeze(of_b, -1) : of_b);
  }
}

}  // namespace

RUSHLIGHT_OPERATORS(linalg_lstsq) {
  op("_linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> "
     "(Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)",
     kInternal)
      .doc("linalg.lstsq; the singular values have no gradient.")
      .kernel(lstsq_of)
      .gradient("self b result0", lstsq_gradient)
      .node("LinalgLstsqBackward0");
  op("linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> "
     "(Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)",
     kFunction | kOut)
      .doc("X that makes the columns of A X - B shortest, and of those the shortest.")
      .composition(
          [](const Tensor& self, const Tensor& b, std::optional<double> rcond,
             std::optional<std::string_view> driver) -> std::tuple<Tensor, Tensor, Tensor, Tensor> {
            auto [solution, residuals, rank, values] = _linalg_lstsq(self, b, rcond, driver);
            return {solution, residuals, rank, values.requires_grad() ? values.detach() : values};
          })
      .casts_out();
}

}  // namespace rushlight
