// Householder's reduction to Hessenberg form, then QR steps with Wilkinson's shift down to Schur's
// triangle, whose eigenvectors follow by substitution.
#include "kernels/linalg/eigen_complex.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/linalg/householder.h"

namespace rushlight::kernels {
namespace {

using C = std::complex<double>;

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr int kIterations = 60;  // for one eigenvalue; two or three are usual

struct Square {
  int64_t n;
  std::vector<C> data;
  C& operator()(int64_t i, int64_t j) { return data[static_cast<size_t>(i + j * n)]; }
};

// A = Q H Q^H; `a` becomes H.
void reduce(Square& a, Square& q) {
  const int64_t n = a.n;
  std::vector<C> v(static_cast<size_t>(n));
  for (int64_t k = 0; k + 2 < n; ++k) {
    const int64_t m = n - k - 1;
    C* column = &a(k + 1, k);
    std::copy(column, column + m, v.begin());
    const C tau = make_reflector(m - 1, v[0], v.data() + 1, int64_t{1});
    const C beta = v[0];
    v[0] = 1;
    const auto from_left = [&](Square& x, C factor) {  // (1 - factor v v^H) X
      for (int64_t j = 0; j < n; ++j) {
        C product = 0;
        for (int64_t i = 0; i < m; ++i) {
          product += std::conj(v[static_cast<size_t>(i)]) * x(k + 1 + i, j);
        }
        for (int64_t i = 0; i < m; ++i) {
          x(k + 1 + i, j) -= factor * product * v[static_cast<size_t>(i)];
        }
      }
    };
    const auto from_right = [&](Square& x) {  // X (1 - tau v v^H)
      for (int64_t i = 0; i < n; ++i) {
        C product = 0;
        for (int64_t j = 0; j < m; ++j) {
          product += x(i, k + 1 + j) * v[static_cast<size_t>(j)];
        }
        for (int64_t j = 0; j < m; ++j) {
          x(i, k + 1 + j) -= tau * product * std::conj(v[static_cast<size_t>(j)]);
        }
      }
    };
    from_left(a, std::conj(tau));
    from_right(a);
    from_right(q);
    column[0] = beta;
    std::fill(column + 1, column + m, C(0));
  }
}

// The eigenvalue of the last 2 x 2 block that lies nearer to its last element.
C wilkinson(Square& h, int64_t last) {
  const C a = h(last - 1, last - 1);
  const C d = h(last, last);
  const C off = h(last - 1, last) * h(last, last - 1);
  const C half = 0.5 * (a - d);
  const C root = std::sqrt(half * half + off);
  const C sum = std::abs(half + root) > std::abs(half - root) ? half + root : half - root;
  return sum == 0.0 ? d : d - off / sum;
}

// Near enough to the magnitude to choose by; LAPACK's choices are made by it.
double size_of(C x) {
  return std::fabs(x.real()) + std::fabs(x.imag());
}

// Whether the element below the diagonal in row k is as good as zero beside its neighbours, by
// Ahues' and Tisseur's criterion.
bool negligible(Square& h, int64_t k) {
  const double tiny = std::numeric_limits<double>::min() * static_cast<double>(h.n) / kEpsilon;
  const double below = std::abs(h(k, k - 1));
  if (below <= tiny) {
    return true;
  }
  const double here = size_of(h(k, k));
  double beside = size_of(h(k - 1, k - 1)) + here;
  if (beside == 0) {
    beside += k >= 2 ? std::abs(h(k - 1, k - 2)) : 0;
    beside += k + 1 < h.n ? std::abs(h(k + 1, k)) : 0;
  }
  if (below > kEpsilon * beside) {
    return false;
  }
  const double above = size_of(h(k - 1, k));
  const double gap = size_of(h(k - 1, k - 1) - h(k, k));
  const double sum = std::max(here, gap) + std::max(below, above);
  const double product = std::min(below, above) * (std::max(below, above) / sum);
  const double diagonal = std::min(here, gap) * (std::max(here, gap) / sum);
  return product <= std::max(tiny, kEpsilon * diagonal);
}

// Where a step may begin, since two elements below the diagonal are small together.
int64_t start_of(Square& h, int64_t first, int64_t last, C shift) {
  for (int64_t m = last - 1; m > first; --m) {
    const double from = size_of(h(m, m) - shift);
    const double below = std::abs(h(m + 1, m));
    const double beside = size_of(h(m, m)) + size_of(h(m + 1, m + 1));
    if (std::abs(h(m, m - 1)) * (below / (from + below)) <=
        kEpsilon * (from / (from + below)) * beside) {
      return m;
    }
  }
  return first;
}

// One QR step on rows and columns first ... last of the Hessenberg matrix.
void step(Square& h, Square& q, int64_t first, int64_t last, C shift) {
  const int64_t n = h.n;
  const int64_t start = start_of(h, first, last, shift);
  C x = h(start, start) - shift;
  C y = h(start + 1, start);
  for (int64_t k = start; k < last; ++k) {
    if (k > start) {
      x = h(k, k - 1);
      y = h(k + 1, k - 1);
    }
    const double length = std::hypot(std::abs(x), std::abs(y));
    const C c = length == 0 ? C(1) : x / length;
    const C s = length == 0 ? C(0) : y / length;
    for (int64_t j = std::max<int64_t>(k - 1, 0); j < n; ++j) {
      const C upper = h(k, j);
      const C lower = h(k + 1, j);
      h(k, j) = std::conj(c) * upper + std::conj(s) * lower;
      h(k + 1, j) = c * lower - s * upper;
    }
    const auto from_right = [&](Square& m, int64_t rows) {
      for (int64_t i = 0; i < rows; ++i) {
        const C left = m(i, k);
        const C right = m(i, k + 1);
        m(i, k) = left * c + right * s;
        m(i, k + 1) = right * std::conj(c) - left * std::conj(s);
      }
    };
    if (k > 0) {
      h(k + 1, k - 1) = 0;  // where a step starts inside, it is negligible
    }
    from_right(h, std::min(k + 3, last + 1));
    from_right(q, n);
  }
}

// H becomes upper triangular. Whether it converged. Eigenvalues split off in LAPACK's order, as far
// as rounding lets them: its criteria and its shifts are taken.
bool triangulate(Square& h, Square& q) {
  int64_t last = h.n - 1;
  int tries = 0;
  while (last > 0) {
    int64_t first = last;
    while (first > 0) {
      if (negligible(h, first)) {
        h(first, first - 1) = 0;
        break;
      }
      --first;
    }
    if (first == last) {
      --last;
      tries = 0;
      continue;
    }
    if (++tries > kIterations) {
      return false;
    }
    // Now and then another shift, for matrices on which the usual one goes in circles.
    const C shift = tries % 20 == 0   ? h(last, last) + 0.75 * std::abs(h(last, last - 1))
                    : tries % 10 == 0 ? h(first, first) + 0.75 * std::abs(h(first + 1, first))
                                      : wilkinson(h, last);
    step(h, q, first, last, shift);
  }
  return true;
}

// Eigenvector k of the triangle, turned back, of length one.
void eigenvector(Square& t, Square& q, int64_t k, C* to) {
  const int64_t n = t.n;
  std::vector<C> x(static_cast<size_t>(n));
  x[static_cast<size_t>(k)] = 1;
  double scale = 0;
  for (const C& element : t.data) {
    scale = std::max(scale, std::abs(element));
  }
  const double least = std::max(kEpsilon * scale, std::numeric_limits<double>::min());
  for (int64_t i = k - 1; i >= 0; --i) {
    C sum = 0;
    for (int64_t j = i + 1; j <= k; ++j) {
      sum += t(i, j) * x[static_cast<size_t>(j)];
    }
    const C gap = t(k, k) - t(i, i);
    x[static_cast<size_t>(i)] = sum / (std::abs(gap) < least ? C(least) : gap);
  }
  std::fill(to, to + n, C(0));
  for (int64_t j = 0; j <= k; ++j) {
    for (int64_t i = 0; i < n; ++i) {
      to[i] += q(i, j) * x[static_cast<size_t>(j)];
    }
  }
  double square = 0;
  C largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    square += std::norm(to[i]);
    largest = std::abs(to[i]) > std::abs(largest) ? to[i] : largest;
  }
  const C factor = std::conj(largest) / (std::abs(largest) * std::sqrt(square));
  std::transform(to, to + n, to, [&](C element) { return element * factor; });
}

}  // namespace

int32_t eigen_complex(int64_t n, std::vector<C> a, C* values, C* vectors) {
  const auto finite = [](C x) { return std::isfinite(x.real()) && std::isfinite(x.imag()); };
  if (!std::all_of(a.begin(), a.end(), finite)) {
    return static_cast<int32_t>(n);
  }
  Square h{n, std::move(a)};
  Square q{n, std::vector<C>(static_cast<size_t>(n * n))};
  for (int64_t i = 0; i < n; ++i) {
    q(i, i) = 1;
  }
  reduce(h, q);
  if (!triangulate(h, q)) {
    return 1;
  }
  for (int64_t k = 0; k < n; ++k) {
    values[k] = h(k, k);
    if (vectors != nullptr) {
      eigenvector(h, q, k, vectors + k * n);
    }
  }
  return 0;
}

}  // namespace rushlight::kernels
