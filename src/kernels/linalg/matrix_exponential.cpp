#include "kernels/linalg/matrix_exponential.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "kernels/linalg/lu.h"
#include "kernels/linalg/triangular.h"

namespace rushlight::kernels {
namespace {

using Matrix = std::vector<double>;

// Coefficients of the numerators; those of the denominators have alternating signs.
constexpr double kPade3[] = {120, 60, 12, 1};
constexpr double kPade5[] = {30240, 15120, 3360, 420, 30, 1};
constexpr double kPade7[] = {17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1};
constexpr double kPade9[] = {17643225600., 8821612800., 2075673600., 302702400., 30270240.,
                             2162160.,     110880.,     3960.,       90.,        1.};
constexpr double kPade13[] = {64764752532480000.,
                              32382376266240000.,
                              7771770303897600.,
                              1187353796428800.,
                              129060195264000.,
                              10559470521600.,
                              670442572800.,
                              33522128640.,
                              1323241920.,
                              40840800.,
                              960960.,
                              16380.,
                              182.,
                              1.};

// Up to these norms each is accurate to double precision.
struct Approximation {
  double norm;
  std::span<const double> coefficients;
};
constexpr Approximation kApproximations[] = {
    {1.495585217958292e-2, kPade3}, {2.539398330063230e-1, kPade5}, {9.504178996162932e-1, kPade7},
    {2.097847961257068e0, kPade9},  {5.371920351148152e0, kPade13},
};

Matrix product(int64_t n, const Matrix& a, const Matrix& b) {
  Matrix made(a.size());
  multiply<double>(n, n, n, 1, by_columns(a.data(), n), by_columns(b.data(), n), 0,
                   by_columns(made.data(), n));
  return made;
}

double norm_of(int64_t n, const Matrix& a) {
  double largest = 0;
  for (int64_t j = 0; j < n; ++j) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) {
      sum += std::fabs(a[static_cast<size_t>(i + j * n)]);
    }
    largest = sum > largest || std::isnan(sum) ? sum : largest;
  }
  return largest;
}

// (V - U)^-1 (V + U), U and V being the odd and even parts of the polynomial.
Matrix approximate(int64_t n, const Matrix& a, std::span<const double> coefficients) {
  const auto area = a.size();
  Matrix odd(area, 0.0);
  Matrix even(area, 0.0);
  for (int64_t i = 0; i < n; ++i) {
    odd[static_cast<size_t>(i * (n + 1))] = coefficients[1];
    even[static_cast<size_t>(i * (n + 1))] = coefficients[0];
  }
  const Matrix square = product(n, a, a);
  Matrix power = square;
  for (size_t k = 2; k < coefficients.size(); k += 2) {
    if (k > 2) {
      power = product(n, power, square);
    }
    for (size_t i = 0; i < area; ++i) {
      even[i] += coefficients[k] * power[i];
      odd[i] += k + 1 < coefficients.size() ? coefficients[k + 1] * power[i] : 0.0;
    }
  }
  const Matrix u = product(n, a, odd);
  Matrix left(area);
  Matrix right(area);
  for (size_t i = 0; i < area; ++i) {
    left[i] = even[i] - u[i];
    right[i] = even[i] + u[i];
  }
  std::vector<int32_t> pivots(static_cast<size_t>(n));
  lu_factor(n, n, left.data(), n, pivots.data(), true);
  exchange_rows(n, right.data(), 1, n, pivots.data(), n, false);
  const auto factors = by_columns<const double>(left.data(), n);
  solve_lower<double>(n, n, factors, true, by_columns(right.data(), n));
  solve_upper<double>(n, n, factors, false, by_columns(right.data(), n));
  return right;
}

}  // namespace

std::vector<double> matrix_exponential(int64_t n, std::vector<double> a) {
  const double norm = norm_of(n, a);
  if (!std::isfinite(norm)) {
    std::fill(a.begin(), a.end(), std::numeric_limits<double>::quiet_NaN());
    return a;
  }
  for (const Approximation& known : kApproximations) {
    if (norm <= known.norm) {
      return approximate(n, a, known.coefficients);
    }
  }
  const Approximation& last = kApproximations[std::size(kApproximations) - 1];
  const int squarings = std::max(0, static_cast<int>(std::ceil(std::log2(norm / last.norm))));
  for (double& x : a) {
    x = std::ldexp(x, -squarings);
  }
  Matrix made = approximate(n, a, last.coefficients);
  for (int i = 0; i < squarings; ++i) {
    made = product(n, made, made);
  }
  return made;
}

}  // namespace rushlight::kernels
