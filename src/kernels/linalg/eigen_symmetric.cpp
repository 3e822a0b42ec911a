// Householder's reduction to tridiagonal form by panels, then implicit QL with Wilkinson's shift.
#include "kernels/linalg/eigen_symmetric.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>
#include <vector>

#include "kernels/linalg/householder.h"
#include "kernels/linalg/rotations.h"
#include "kernels/linalg/vectors.h"
#include "runtime/parallel.h"

namespace rushlight::kernels {
namespace {

constexpr int64_t kPanel = 32;
constexpr int64_t kTask = 1 << 15;  // elements of a product worth a task
constexpr int kIterations = 60;     // for one eigenvalue; two or three are usual

// y = A x of a symmetric matrix given whole.
template <typename T>
void symmetric_product(int64_t n, const T* a, int64_t lda, const T* x, T* y) {
  const int64_t grain = std::max<int64_t>(4, kTask / std::max<int64_t>(n, 1) / 4 * 4);
  parallel_for(0, n, grain, [&](int64_t first, int64_t last) {
    vector_ops<T>().dot_columns(n, last - first, a + first * lda, lda, x, y + first);
  });
}

// A = Q T Q^T. Reflectors of what is below the subdiagonal stay in A; d and e are T's diagonals.
template <typename T>
class Tridiagonal {
 public:
  Tridiagonal(int64_t n, T* a, int64_t lda)
      : diagonal(static_cast<size_t>(n)),
        beside(static_cast<size_t>(n)),
        tau(static_cast<size_t>(n)),
        n_(n),
        a_(a),
        lda_(lda),
        // [V W W' V']: the update V W^T + W V^T is one product of two neighbours with the others.
        work_(static_cast<size_t>(n * 4 * kPanel)),
        products_(static_cast<size_t>(2 * kPanel)) {
    for (int64_t at = 0; at < n; at += kPanel) {
      reduce(at, std::min(kPanel, n - at));
    }
  }
  std::vector<double> diagonal;
  std::vector<double> beside;  // e[i] joins i and i + 1
  std::vector<T> tau;

 private:
  T* v(int64_t k) { return work_.data() + k * n_; }
  T* w(int64_t k) { return work_.data() + (kPanel + k) * n_; }

  void reduce(int64_t at, int64_t width) {
    for (int64_t k = 0; k < width; ++k) {
      step(at, k);
    }
    const int64_t next = at + width;
    if (next < n_) {
      T* left = work_.data() + next;
      T* right = work_.data() + 2 * kPanel * n_ + next;
      for (int64_t k = 0; k < kPanel; ++k) {
        std::copy_n(w(k) + next, n_ - next, right + k * n_);
        std::copy_n(v(k) + next, n_ - next, right + (kPanel + k) * n_);
      }
      multiply<T>(n_ - next, n_ - next, 2 * kPanel, -1, by_columns<const T>(left, n_),
                  by_columns<const T>(right, n_).transposed(), 1,
                  by_columns(a_ + next * lda_ + next, lda_));
    }
  }

  void step(int64_t at, int64_t k) {
    const VectorOps<T>& ops = vector_ops<T>();
    const int64_t j = at + k;
    T* column = a_ + j * lda_;
    // The panel's earlier reflectors have not been applied yet.
    ops.add_columns(n_ - j, k, T(-1), v(0) + j, n_, w(0) + j, n_, column + j);
    ops.add_columns(n_ - j, k, T(-1), w(0) + j, n_, v(0) + j, n_, column + j);
    const auto at_j = static_cast<size_t>(j);
    diagonal[at_j] = column[j];
    if (j + 1 >= n_) {
      return;
    }
    const int64_t rest = n_ - j - 1;
    tau[at_j] = make_reflector(rest - 1, column[j + 1], column + j + 2, int64_t{1});
    beside[at_j] = column[j + 1];
    T* reflector = v(k);
    std::fill(reflector, reflector + j + 1, T(0));
    reflector[j + 1] = T(1);
    std::copy(column + j + 2, column + n_, reflector + j + 2);
    T* made = w(k);
    std::fill(made, made + j + 1, T(0));
    const T* x = reflector + j + 1;
    T* y = made + j + 1;
    symmetric_product(rest, a_ + (j + 1) * lda_ + j + 1, lda_, x, y);
    ops.dot_columns(rest, k, w(0) + j + 1, n_, x, products_.data());
    ops.add_columns(rest, k, T(-1), v(0) + j + 1, n_, products_.data(), 1, y);
    ops.dot_columns(rest, k, v(0) + j + 1, n_, x, products_.data());
    ops.add_columns(rest, k, T(-1), w(0) + j + 1, n_, products_.data(), 1, y);
    for (int64_t i = 0; i < rest; ++i) {
      y[i] *= tau[at_j];
    }
    ops.axpy(rest, T(-0.5) * tau[at_j] * ops.dot(rest, x, y), x, y);
  }

  int64_t n_;
  T* a_;
  int64_t lda_;
  std::vector<T> work_;
  std::vector<T> products_;
};

// One QL sweep over rows first ... last of the tridiagonal matrix.
template <typename T>
void sweep(std::vector<double>& diagonal, std::vector<double>& beside, size_t first, size_t last,
           Rotations<T>& rotations) {
  double* d = diagonal.data();
  double* e = beside.data();
  double g = (d[first + 1] - d[first]) / (2 * e[first]);
  double r = std::hypot(g, 1.0);
  g = d[last] - d[first] + e[first] / (g + std::copysign(r, g));
  double s = 1;
  double c = 1;
  double p = 0;
  rotations.begin(static_cast<int64_t>(last), -1);
  for (size_t i = last; i-- > first;) {
    double f = s * e[i];
    const double b = c * e[i];
    r = std::sqrt(f * f + g * g);
    if (r < 1e-140 || r > 1e140) {
      r = std::hypot(f, g);
    }
    e[i + 1] = r;
    if (r == 0) {  // splits here
      d[i + 1] -= p;
      e[last] = 0;
      rotations.end();
      return;
    }
    s = f / r;
    c = g / r;
    g = d[i + 1] - p;
    r = (d[i] - g) * s + 2 * c * b;
    p = s * r;
    d[i + 1] = g + p;
    g = c * r - b;
    rotations.add(c, s);
  }
  d[first] -= p;
  e[first] = g;
  e[last] = 0;
  rotations.end();
}

template <typename T>
int32_t diagonalise(std::vector<double>& d, std::vector<double>& e, Rotations<T>& rotations) {
  // Work in double even for floats costs little, since it is done once for all rows.
  constexpr double kNegligible = std::numeric_limits<T>::epsilon() / 4;
  const size_t n = d.size();
  int32_t failed = 0;
  for (size_t first = 0; first < n; ++first) {
    for (int iteration = 0;; ++iteration) {
      size_t last = first;
      for (; last + 1 < n; ++last) {
        const double size = std::fabs(d[last]) + std::fabs(d[last + 1]);
        if (std::fabs(e[last]) <= kNegligible * size ||
            std::fabs(e[last]) < std::numeric_limits<double>::min()) {
          break;
        }
      }
      if (last == first) {
        break;
      }
      if (iteration == kIterations) {
        ++failed;
        break;
      }
      sweep(d, e, first, last, rotations);
    }
  }
  return failed;
}

constexpr int64_t kSmall = 48;

// Small matrices of floats are decomposed in double: it costs little more, and eigenvectors of
// close values keep their digits.
int32_t eigen_widened(int64_t n, float* a, int64_t lda, float* values, bool vectors) {
  std::vector<double> wide(static_cast<size_t>(n * n));
  std::vector<double> found(static_cast<size_t>(n));
  for (int64_t j = 0; j < n; ++j) {
    std::copy_n(a + j * lda, n, wide.data() + j * n);
  }
  const int32_t failed = eigen_symmetric<double>(n, wide.data(), n, found.data(), vectors);
  for (int64_t j = 0; j < n; ++j) {
    std::copy_n(wide.data() + j * n, n, a + j * lda);
  }
  std::copy(found.begin(), found.end(), values);
  return failed;
}

}  // namespace

template <typename T>
int32_t eigen_symmetric(int64_t n, T* a, int64_t lda, T* values, bool vectors) {
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i) {
      if (!std::isfinite(a[i + j * lda])) {
        std::fill(values, values + n, std::numeric_limits<T>::quiet_NaN());
        return static_cast<int32_t>(std::max<int64_t>(n - 1, 1));
      }
    }
  }
  if constexpr (std::is_same_v<T, float>) {
    if (n <= kSmall) {
      return eigen_widened(n, a, lda, values, vectors);
    }
  }
  Tridiagonal<T> reduced(n, a, lda);
  std::vector<T> q;
  if (vectors) {
    q.assign(static_cast<size_t>(n * n), T(0));
    q[0] = T(1);
    if (n > 1) {
      form_q(n - 1, n - 1, n - 1, a + 1, lda, reduced.tau.data(), q.data() + n + 1, n);
    }
  }
  Rotations<T> rotations(vectors ? n : 0, n, q.data(), n);
  const int32_t failed = diagonalise(reduced.diagonal, reduced.beside, rotations);
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  const std::vector<double>& d = reduced.diagonal;
  std::stable_sort(order.begin(), order.end(), [&](int64_t x, int64_t y) {
    return d[static_cast<size_t>(x)] < d[static_cast<size_t>(y)];
  });
  for (size_t i = 0; i < order.size(); ++i) {
    values[i] = static_cast<T>(d[static_cast<size_t>(order[i])]);
  }
  rotations.finish(order, {}, a, lda);
  return failed;
}

template int32_t eigen_symmetric<float>(int64_t, float*, int64_t, float*, bool);
template int32_t eigen_symmetric<double>(int64_t, double*, int64_t, double*, bool);

}  // namespace rushlight::kernels
