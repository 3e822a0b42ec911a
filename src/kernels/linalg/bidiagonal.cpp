#include "kernels/linalg/bidiagonal.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/linalg/householder.h"
#include "kernels/linalg/vectors.h"
#include "runtime/parallel.h"

namespace rushlight::kernels {
namespace {

constexpr int64_t kPanel = 32;
constexpr int64_t kTask = 1 << 15;  // elements of a product worth a task

// y = A^T x
template <typename T>
void product_transposed(int64_t m, int64_t n, const T* a, int64_t lda, const T* x, T* y) {
  const int64_t grain = std::max<int64_t>(4, kTask / std::max<int64_t>(m, 1) / 4 * 4);
  parallel_for(0, n, grain, [&](int64_t first, int64_t last) {
    vector_ops<T>().dot_columns(m, last - first, a + first * lda, lda, x, y + first);
  });
}

// y = A x, by rows, so that each of them is the same sum wherever it is cut.
template <typename T>
void product(int64_t m, int64_t n, const T* a, int64_t lda, const T* x, T* y) {
  const int64_t grain = std::max<int64_t>(64, kTask / std::max<int64_t>(n, 1) / 64 * 64);
  parallel_for(0, m, grain, [&](int64_t first, int64_t last) {
    std::fill(y + first, y + last, T(0));
    vector_ops<T>().add_columns(last - first, n, T(1), a + first, lda, x, 1, y + first);
  });
}

}  // namespace

template <typename T>
Bidiagonal<T>::Bidiagonal(int64_t m, int64_t n, T* a, int64_t lda)
    : diagonal(static_cast<size_t>(n)),
      beside(static_cast<size_t>(n)),
      left_tau(static_cast<size_t>(n)),
      right_tau(static_cast<size_t>(n)),
      rows(static_cast<size_t>(n * n)),
      m_(m),
      n_(n),
      a_(a),
      lda_(lda),
      left_(static_cast<size_t>(m * 2 * kPanel)),
      right_(static_cast<size_t>(n * 2 * kPanel)),
      row_(static_cast<size_t>(n)),
      products_(static_cast<size_t>(kPanel)) {
  for (int64_t at = 0; at < n; at += kPanel) {
    reduce(at, std::min(kPanel, n - at));
  }
}

template <typename T>
void Bidiagonal<T>::reduce(int64_t at, int64_t width) {
  for (int64_t k = 0; k < width; ++k) {
    left_reflector(at + k, k);
    if (at + k + 1 < n_) {
      right_reflector(at + k, k);
    }
  }
  const int64_t next = at + width;
  if (next < n_) {
    multiply<T>(m_ - next, n_ - next, 2 * kPanel, -1, by_columns<const T>(left_.data() + next, m_),
                by_columns<const T>(right_.data() + next, n_).transposed(), 1,
                by_columns(a_ + next * lda_ + next, lda_));
  }
}

// Column j becomes (..., beta, 0, ...); Y gets A^T v of what this panel has not yet updated.
template <typename T>
void Bidiagonal<T>::left_reflector(int64_t j, int64_t k) {
  const VectorOps<T>& ops = vector_ops<T>();
  T* v = left_.data();
  T* x = v + kPanel * m_;
  T* y = right_.data();
  T* u = y + kPanel * n_;
  T* column = a_ + j * lda_;
  ops.add_columns(m_ - j, k, T(-1), v + j, m_, y + j, n_, column + j);
  ops.add_columns(m_ - j, k, T(-1), x + j, m_, u + j, n_, column + j);
  const T tau = make_reflector(m_ - j - 1, column[j], column + j + 1, int64_t{1});
  left_tau[static_cast<size_t>(j)] = tau;
  diagonal[static_cast<size_t>(j)] = column[j];
  T* reflector = v + k * m_;
  std::fill(reflector, reflector + j, T(0));
  reflector[j] = T(1);
  std::copy(column + j + 1, column + m_, reflector + j + 1);
  T* made = y + k * n_;
  std::fill(made, made + j + 1, T(0));
  const int64_t rest = n_ - j - 1;
  if (rest == 0) {
    return;
  }
  const T* from = reflector + j;
  T* to = made + j + 1;
  product_transposed(m_ - j, rest, a_ + (j + 1) * lda_ + j, lda_, from, to);
  ops.dot_columns(m_ - j, k, v + j, m_, from, products_.data());
  ops.add_columns(rest, k, T(-1), y + j + 1, n_, products_.data(), 1, to);
  ops.dot_columns(m_ - j, k, x + j, m_, from, products_.data());
  ops.add_columns(rest, k, T(-1), u + j + 1, n_, products_.data(), 1, to);
  for (int64_t i = 0; i < rest; ++i) {
    to[i] *= tau;
  }
}

// Row j becomes (..., d, beta, 0, ...); X gets A u of what this panel has not yet updated.
template <typename T>
void Bidiagonal<T>::right_reflector(int64_t j, int64_t k) {
  const VectorOps<T>& ops = vector_ops<T>();
  T* v = left_.data();
  T* x = v + kPanel * m_;
  T* y = right_.data();
  T* u = y + kPanel * n_;
  const int64_t rest = n_ - j - 1;
  T* row = row_.data();
  for (int64_t i = 0; i < rest; ++i) {
    row[i] = a_[(j + 1 + i) * lda_ + j];
  }
  ops.add_columns(rest, k + 1, T(-1), y + j + 1, n_, v + j, m_, row);
  ops.add_columns(rest, k, T(-1), u + j + 1, n_, x + j, m_, row);
  const T tau = make_reflector(rest - 1, row[0], row + 1, int64_t{1});
  right_tau[static_cast<size_t>(j)] = tau;
  beside[static_cast<size_t>(j)] = row[0];
  row[0] = T(1);
  T* reflector = u + k * n_;
  std::fill(reflector, reflector + j + 1, T(0));
  std::copy(row, row + rest, reflector + j + 1);
  std::copy(reflector, reflector + n_, rows.data() + j * n_);
  T* made = x + k * m_;
  std::fill(made, made + j + 1, T(0));
  const int64_t height = m_ - j - 1;
  T* to = made + j + 1;
  product(height, rest, a_ + (j + 1) * lda_ + j + 1, lda_, row, to);
  ops.dot_columns(rest, k + 1, y + j + 1, n_, row, products_.data());
  ops.add_columns(height, k + 1, T(-1), v + j + 1, m_, products_.data(), 1, to);
  ops.dot_columns(rest, k, u + j + 1, n_, row, products_.data());
  ops.add_columns(height, k, T(-1), x + j + 1, m_, products_.data(), 1, to);
  for (int64_t i = 0; i < height; ++i) {
    to[i] *= tau;
  }
}

template class Bidiagonal<float>;
template class Bidiagonal<double>;

namespace {

constexpr int kIterations = 60;  // for one value; two or three are usual

// (c, s) with c f + s g = r and c g - s f = 0.
struct Rotation {
  double c;
  double s;
  double r;
  Rotation(double f, double g) {
    if (g == 0) {
      c = 1;
      s = 0;
      r = f;
      return;
    }
    const double sum = f * f + g * g;
    r = sum > 1e-280 && sum < 1e280 ? std::sqrt(sum) : std::hypot(f, g);
    c = f / r;
    s = g / r;
  }
};

// A block of B seen from its top, or from its bottom: there, what is transposed and has the order
// of rows and columns reversed is upper bidiagonal again, and Q and P change places.
template <typename T>
struct Chase {
  double* d;
  double* e;
  int64_t count;  // of diagonal elements
  int64_t step;   // 1 from the top, -1 from the bottom
  int64_t first;  // number of the column of Q and P where it begins
  Rotations<T>& left;
  Rotations<T>& right;

  double& at(int64_t i) const { return d[i * step]; }
  double& beside(int64_t i) const { return e[i * step]; }

  void zero_shift() {
    begin();
    Rotation outer(1, 0);
    Rotation inner(1, 0);
    for (int64_t i = 0; i + 1 < count; ++i) {
      outer = Rotation(at(i) * outer.c, beside(i));
      if (i > 0) {
        beside(i - 1) = inner.s * outer.r;
      }
      inner = Rotation(inner.c * outer.r, at(i + 1) * outer.s);
      at(i) = inner.r;
      right.add(outer.c, outer.s);
      left.add(inner.c, inner.s);
    }
    const double h = at(count - 1) * outer.c;
    at(count - 1) = h * inner.c;
    beside(count - 2) = h * inner.s;
    end();
  }

  void shifted(double shift) {
    begin();
    double f = (std::fabs(at(0)) - shift) * (std::copysign(1.0, at(0)) + shift / at(0));
    double g = beside(0);
    for (int64_t i = 0; i + 1 < count; ++i) {
      const Rotation outer(f, g);
      if (i > 0) {
        beside(i - 1) = outer.r;
      }
      f = outer.c * at(i) + outer.s * beside(i);
      beside(i) = outer.c * beside(i) - outer.s * at(i);
      g = outer.s * at(i + 1);
      at(i + 1) *= outer.c;
      const Rotation inner(f, g);
      at(i) = inner.r;
      f = inner.c * beside(i) + inner.s * at(i + 1);
      at(i + 1) = inner.c * at(i + 1) - inner.s * beside(i);
      if (i + 2 < count) {
        g = inner.s * beside(i + 1);
        beside(i + 1) *= inner.c;
      }
      right.add(outer.c, outer.s);
      left.add(inner.c, inner.s);
    }
    beside(count - 2) = f;
    end();
  }

 private:
  void begin() {
    left.begin(first, step);
    right.begin(first, step);
  }
  void end() {
    left.end();
    right.end();
  }
};

// The smaller singular value of [[f, g], [0, h]].
double smaller_value(double f, double g, double h) {
  const double low = std::min(std::fabs(f), std::fabs(h));
  const double high = std::max(std::fabs(f), std::fabs(h));
  const double size = std::fabs(g);
  if (low == 0) {
    return 0;
  }
  if (size < high) {
    const double as = 1 + low / high;
    const double at = (high - low) / high;
    const double au = (size / high) * (size / high);
    return low * (2 / (std::sqrt(as * as + au) + std::sqrt(at * at + au)));
  }
  const double au = high / size;
  if (au == 0) {
    return low * high / size;
  }
  const double as = (1 + low / high) * au;
  const double at = (high - low) / high * au;
  return 2 * (low * au / (std::sqrt(1 + as * as) + std::sqrt(1 + at * at)));
}

// A zero on the diagonal at `i` inside a block: rotations of rows empty its row.
template <typename T>
void clear_row(std::vector<double>& d, std::vector<double>& e, size_t i, size_t last,
               Rotations<T>& q) {
  double f = e[i];
  e[i] = 0;
  for (size_t k = i + 1; k <= last && f != 0; ++k) {
    // Rows i and k: (0, f) and (d[k], e[k]).
    const Rotation turn(d[k], f);
    d[k] = turn.r;
    if (k < last) {
      f = -turn.s * e[k];
      e[k] *= turn.c;
    }
    q.begin(static_cast<int64_t>(k), static_cast<int64_t>(i) - static_cast<int64_t>(k));
    q.add(turn.c, turn.s);
    q.end();
  }
}

}  // namespace

template <typename T>
int32_t diagonalise(std::vector<double>& d, std::vector<double>& e, Rotations<T>& q,
                    Rotations<T>& p) {
  constexpr double kEpsilon = std::numeric_limits<T>::epsilon();
  // Relative to its neighbours in the first place, so that small values are accurate too.
  constexpr double kNegligible = std::max(kEpsilon / 4, 2 * std::numeric_limits<double>::epsilon());
  constexpr int kPatience = 20;
  const size_t n = d.size();
  double largest = 0;
  for (size_t i = 0; i < n; ++i) {
    largest = std::max({largest, std::fabs(d[i]), i + 1 < n ? std::fabs(e[i]) : 0.0});
  }
  const double tiny = largest * std::numeric_limits<double>::epsilon() * 1e-3;
  int32_t failed = 0;
  int iteration = 0;
  for (size_t last = n - 1; last > 0;) {
    size_t first = last;
    const double floor = iteration < kPatience ? tiny : largest * kEpsilon;
    while (first > 0) {
      const double size = std::fabs(e[first - 1]);
      if (size <= kNegligible * std::min(std::fabs(d[first - 1]), std::fabs(d[first])) ||
          size <= floor) {
        e[first - 1] = 0;
        break;
      }
      --first;
    }
    if (first == last || iteration == kIterations) {
      failed += first == last ? 0 : 1;
      --last;
      iteration = 0;
      continue;
    }
    ++iteration;
    size_t zero = first;
    while (zero < last && std::fabs(d[zero]) > tiny) {
      ++zero;
    }
    if (zero < last) {
      d[zero] = 0;
      clear_row(d, e, zero, last, q);
      continue;
    }
    const bool down = std::fabs(d[first]) >= std::fabs(d[last]);
    const auto count = static_cast<int64_t>(last - first + 1);
    Chase<T> chase =
        down ? Chase<T>{&d[first], &e[first], count, 1, static_cast<int64_t>(first), q, p}
             : Chase<T>{&d[last], &e[last - 1], count, -1, static_cast<int64_t>(last), p, q};
    const double shift =
        smaller_value(chase.at(count - 2), chase.beside(count - 2), chase.at(count - 1));
    const double ratio = shift / std::fabs(chase.at(0));
    if (shift == 0 || ratio * ratio < kNegligible) {
      chase.zero_shift();
    } else {
      chase.shifted(shift);
    }
  }
  return failed;
}

template int32_t diagonalise<float>(std::vector<double>&, std::vector<double>&, Rotations<float>&,
                                    Rotations<float>&);
template int32_t diagonalise<double>(std::vector<double>&, std::vector<double>&, Rotations<double>&,
                                     Rotations<double>&);

}  // namespace rushlight::kernels
