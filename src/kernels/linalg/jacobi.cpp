#include "kernels/linalg/jacobi.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace rushlight::kernels {
namespace {

using C = std::complex<double>;

constexpr int kSweeps = 60;  // six to ten are usual
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

// Columns (x, y) become (c x - s conj(p) y, s p x + c y), with |p| = 1.
struct Rotation {
  double c;
  double s;
  C p;

  // What makes `off` zero in the Hermitian matrix (first, off; conj(off), second).
  Rotation(double first, double second, C off) {
    const double size = std::abs(off);
    const double ratio = (second - first) / (2 * size);
    const double tangent = std::copysign(1.0, ratio) / (std::fabs(ratio) + std::hypot(1.0, ratio));
    c = 1 / std::hypot(1.0, tangent);
    s = c * tangent;
    p = off / size;
  }

  void apply(int64_t n, C* x, C* y, int64_t step = 1, bool conjugate = false) const {
    const C turn = conjugate ? std::conj(p) : p;
    const C right = s * std::conj(turn);
    const C left = s * turn;
    for (int64_t i = 0; i < n * step; i += step) {
      const C first = x[i];
      x[i] = c * first - right * y[i];
      y[i] = left * first + c * y[i];
    }
  }
};

bool all_finite(const ComplexMatrix& a) {
  return std::all_of(a.begin(), a.end(),
                     [](C x) { return std::isfinite(x.real()) && std::isfinite(x.imag()); });
}

// The columns of `a` (rows long) in the order of `at`.
void reorder(int64_t rows, const std::vector<int64_t>& at, ComplexMatrix& a) {
  ComplexMatrix made;
  for (int64_t j : at) {
    made.insert(made.end(), a.begin() + j * rows, a.begin() + (j + 1) * rows);
  }
  a = std::move(made);
}

ComplexMatrix identity(int64_t n) {
  ComplexMatrix made(static_cast<size_t>(n * n));
  for (int64_t i = 0; i < n; ++i) {
    made[static_cast<size_t>(i * n + i)] = 1;
  }
  return made;
}

double square(int64_t n, const C* x) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    sum += std::norm(x[i]);
  }
  return sum;
}

C inner(int64_t n, const C* x, const C* y) {
  C sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    sum += std::conj(x[i]) * y[i];
  }
  return sum;
}

// Columns from `first` on become orthonormal to one another and to those before.
void complete(int64_t m, int64_t first, int64_t columns, ComplexMatrix& u) {
  for (int64_t k = first; k < columns; ++k) {
    // The unit vector that the columns so far hold least of.
    int64_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (int64_t i = 0; i < m; ++i) {
      double held = 0;
      for (int64_t j = 0; j < k; ++j) {
        held += std::norm(u[static_cast<size_t>(i + j * m)]);
      }
      if (held < least) {
        least = held;
        best = i;
      }
    }
    C* column = u.data() + k * m;
    std::fill(column, column + m, C(0));
    column[best] = 1;
    for (int pass = 0; pass < 2; ++pass) {
      for (int64_t j = 0; j < k; ++j) {
        const C* other = u.data() + j * m;
        const C along = inner(m, other, column);
        for (int64_t i = 0; i < m; ++i) {
          column[i] -= along * other[i];
        }
      }
    }
    const double length = std::sqrt(square(m, column));
    for (int64_t i = 0; i < m; ++i) {
      column[i] /= length;
    }
  }
}

// Makes the columns of `a` orthogonal; `v` gets the rotations.
bool orthogonalise(int64_t m, int64_t n, ComplexMatrix& a, ComplexMatrix& v) {
  bool turned = true;
  for (int sweep = 0; sweep < kSweeps && turned; ++sweep) {
    turned = false;
    for (int64_t p = 0; p < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) {
        C* x = a.data() + p * m;
        C* y = a.data() + q * m;
        const double first = square(m, x);
        const double second = square(m, y);
        const C off = inner(m, x, y);
        if (std::abs(off) <= kEpsilon * std::sqrt(first) * std::sqrt(second)) {
          continue;
        }
        turned = true;
        const Rotation rotation(first, second, off);
        rotation.apply(m, x, y);
        rotation.apply(n, v.data() + p * n, v.data() + q * n);
      }
    }
  }
  return !turned;
}

}  // namespace

int32_t eigen_hermitian(int64_t n, ComplexMatrix& a, double* values) {
  if (!all_finite(a)) {
    return static_cast<int32_t>(n);
  }
  ComplexMatrix v = identity(n);
  const double limit = kEpsilon * std::sqrt(square(n * n, a.data())) / static_cast<double>(n);
  bool turned = true;
  for (int sweep = 0; sweep < kSweeps && turned; ++sweep) {
    turned = false;
    for (int64_t p = 0; p < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) {
        const C off = a[static_cast<size_t>(p + q * n)];
        if (std::abs(off) <= limit * 1e-3) {
          continue;
        }
        turned = true;
        const Rotation rotation(a[static_cast<size_t>(p + p * n)].real(),
                                a[static_cast<size_t>(q + q * n)].real(), off);
        rotation.apply(n, a.data() + p * n, a.data() + q * n);
        rotation.apply(n, a.data() + p, a.data() + q, n, true);
        rotation.apply(n, v.data() + p * n, v.data() + q * n);
      }
    }
  }
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  const auto value = [&](int64_t i) { return a[static_cast<size_t>(i + i * n)].real(); };
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t i, int64_t j) { return value(i) < value(j); });
  for (int64_t i = 0; i < n; ++i) {
    values[i] = value(order[static_cast<size_t>(i)]);
  }
  reorder(n, order, v);
  a = std::move(v);
  return turned ? 1 : 0;
}

int32_t svd_complex(int64_t m, int64_t n, ComplexMatrix a, SvdVectors vectors, ComplexMatrix& u,
                    double* values, ComplexMatrix& v) {
  if (!all_finite(a)) {
    return static_cast<int32_t>(n);
  }
  v = identity(n);
  const bool converged = orthogonalise(m, n, a, v);
  std::vector<double> lengths;
  for (int64_t j = 0; j < n; ++j) {
    lengths.push_back(std::sqrt(square(m, a.data() + j * m)));
  }
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
    return lengths[static_cast<size_t>(i)] > lengths[static_cast<size_t>(j)];
  });
  reorder(m, order, a);
  reorder(n, order, v);
  int64_t rank = 0;
  for (int64_t j = 0; j < n; ++j) {
    values[j] = lengths[static_cast<size_t>(order[static_cast<size_t>(j)])];
    rank += values[j] > 0 ? 1 : 0;
    for (int64_t i = 0; values[j] > 0 && i < m; ++i) {
      a[static_cast<size_t>(i + j * m)] /= values[j];
    }
  }
  for (C& x : v) {
    x = std::conj(x);
  }
  u = std::move(a);
  const int64_t columns = vectors == SvdVectors::Full ? m : n;
  u.resize(static_cast<size_t>(m * columns));
  complete(m, rank, columns, u);
  return converged ? 0 : 1;
}

}  // namespace rushlight::kernels
