#include "kernels/linalg/schur.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/linalg/householder.h"
#include "kernels/linalg/vectors.h"

namespace rushlight::kernels {
namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr int kIterations = 60;  // for one block; about three are usual
constexpr int kExceptional = 10;

}  // namespace

Schur::Schur(int64_t size, std::vector<double> a, bool vectors)
    : n(size),
      t(std::move(a)),
      values(static_cast<size_t>(size)),
      failed(0),
      low_(0),
      high_(size),
      scales_(static_cast<size_t>(size), 1.0) {
  if (vectors) {
    z.assign(static_cast<size_t>(n * n), 0.0);
    for (int64_t i = 0; i < n; ++i) {
      z[static_cast<size_t>(i + i * n)] = 1;
    }
  }
  isolate();
  scale();
  reduce();
  iterate();
  undo_balance();
}

// Exchanges rows i and j, and columns.
void Schur::exchange(int64_t i, int64_t j) {
  if (i == j) {
    return;
  }
  exchanges_.emplace_back(i, j);
  for (int64_t k = 0; k < n; ++k) {
    std::swap(at(k, i), at(k, j));
  }
  for (int64_t k = 0; k < n; ++k) {
    std::swap(at(i, k), at(j, k));
  }
}

// Moves rows that are zero beside the diagonal to the end and such columns to the front: their
// eigenvalues are known exactly.
void Schur::isolate() {
  const auto empty_row = [&](int64_t i) {
    for (int64_t j = low_; j < high_; ++j) {
      if (j != i && at(i, j) != 0) {
        return false;
      }
    }
    return true;
  };
  const auto empty_column = [&](int64_t j) {
    for (int64_t i = low_; i < high_; ++i) {
      if (i != j && at(i, j) != 0) {
        return false;
      }
    }
    return true;
  };
  for (bool found = true; found && high_ > 1;) {
    found = false;
    for (int64_t i = high_ - 1; i >= 0 && !found; --i) {
      if (empty_row(i)) {
        exchange(i, --high_);
        found = true;
      }
    }
  }
  for (bool found = true; found && low_ + 1 < high_;) {
    found = false;
    for (int64_t j = low_; j < high_ && !found; ++j) {
      if (empty_column(j)) {
        exchange(j, low_++);
        found = true;
      }
    }
  }
}

// Scales by powers of two until rows and columns have lengths alike.
void Schur::scale() {
  constexpr double kRadix = 2;
  for (bool changed = true; changed;) {
    changed = false;
    for (int64_t i = low_; i < high_; ++i) {
      double column = 0;
      double row = 0;
      for (int64_t k = low_; k < high_; ++k) {
        column = std::hypot(column, at(k, i));
        row = std::hypot(row, at(i, k));
      }
      if (column == 0 || row == 0) {
        continue;
      }
      const double sum = column + row;
      double factor = 1;
      while (column * factor < row / factor / kRadix && factor < 1e100) {
        factor *= kRadix;
      }
      while (column * factor > row / factor * kRadix && factor > 1e-100) {
        factor /= kRadix;
      }
      if (column * factor + row / factor >= 0.95 * sum || factor == 1) {
        continue;
      }
      changed = true;
      scales_[static_cast<size_t>(i)] *= factor;
      for (int64_t k = 0; k < n; ++k) {
        at(i, k) /= factor;
      }
      for (int64_t k = 0; k < n; ++k) {
        at(k, i) *= factor;
      }
    }
  }
}

void Schur::undo_balance() {
  if (z.empty()) {
    return;
  }
  for (int64_t j = 0; j < n; ++j) {
    double* column = z.data() + j * n;
    for (int64_t i = 0; i < n; ++i) {
      column[i] *= scales_[static_cast<size_t>(i)];
    }
    for (auto pair = exchanges_.rbegin(); pair != exchanges_.rend(); ++pair) {
      std::swap(column[pair->first], column[pair->second]);
    }
  }
}

// To Hessenberg form, by reflectors.
void Schur::reduce() {
  const VectorOps<double>& ops = vector_ops<double>();
  std::vector<double> v(static_cast<size_t>(n));
  std::vector<double> products(static_cast<size_t>(n));
  for (int64_t k = low_; k + 2 < high_; ++k) {
    const int64_t rest = high_ - k - 1;
    double* column = &at(k + 1, k);
    const double tau = make_reflector(rest - 1, column[0], column + 1, int64_t{1});
    if (tau == 0) {
      continue;
    }
    v[0] = 1;
    std::copy(column + 1, column + rest, v.begin() + 1);
    std::fill(column + 1, column + rest, 0.0);
    ops.dot_columns(rest, n - k - 1, &at(k + 1, k + 1), n, v.data(), products.data());
    ops.rank_one(rest, n - k - 1, -tau, v.data(), products.data(), 1, &at(k + 1, k + 1), n);
    const auto from_right = [&](int64_t rows, double* matrix) {
      std::fill(products.begin(), products.end(), 0.0);
      ops.add_columns(rows, rest, 1, matrix, n, v.data(), 1, products.data());
      ops.rank_one(rows, rest, -tau, products.data(), v.data(), 1, matrix, n);
    };
    from_right(high_, &at(0, k + 1));
    if (!z.empty()) {
      from_right(n, z.data() + (k + 1) * n);
    }
  }
}

// Applies 1 - tau v v^T, `count` long, to rows and columns k, k + 1, ...: of the columns from
// `low`, of the rows before `high`, and to Z.
void Schur::reflect(int64_t k, int64_t count, const double* v, double tau, int64_t low,
                    int64_t high) {
  for (int64_t j = low; j < n; ++j) {
    double* x = &at(k, j);
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) {
      sum += v[i] * x[i];
    }
    sum *= tau;
    for (int64_t i = 0; i < count; ++i) {
      x[i] -= sum * v[i];
    }
  }
  const auto from_right = [&](int64_t rows, double* x) {
    double* y = x + n;
    double* w = x + 2 * n;
    if (count == 2) {
      for (int64_t i = 0; i < rows; ++i) {
        const double sum = tau * (v[0] * x[i] + v[1] * y[i]);
        x[i] -= sum * v[0];
        y[i] -= sum * v[1];
      }
      return;
    }
    for (int64_t i = 0; i < rows; ++i) {
      const double sum = tau * (v[0] * x[i] + v[1] * y[i] + v[2] * w[i]);
      x[i] -= sum * v[0];
      y[i] -= sum * v[1];
      w[i] -= sum * v[2];
    }
  };
  from_right(high, &at(0, k));
  if (!z.empty()) {
    from_right(n, z.data() + k * n);
  }
}

// Whether the element below the diagonal in row k is as good as zero beside its neighbours, by
// Ahues' and Tisseur's criterion.
bool Schur::negligible(int64_t k) const {
  const double tiny =
      std::numeric_limits<double>::min() * static_cast<double>(high_ - low_) / kEpsilon;
  const double below = std::fabs(at(k, k - 1));
  if (below <= tiny) {
    return true;
  }
  const double here = std::fabs(at(k, k));
  double beside = std::fabs(at(k - 1, k - 1)) + here;
  if (beside == 0) {
    beside += k >= low_ + 2 ? std::fabs(at(k - 1, k - 2)) : 0;
    beside += k + 1 < high_ ? std::fabs(at(k + 1, k)) : 0;
  }
  if (below > kEpsilon * beside) {
    return false;
  }
  const double above = std::fabs(at(k - 1, k));
  const double gap = std::fabs(at(k - 1, k - 1) - at(k, k));
  const double sum = std::max(here, gap) + std::max(below, above);
  const double product = std::min(below, above) * (std::max(below, above) / sum);
  const double diagonal = std::min(here, gap) * (std::max(here, gap) / sum);
  return product <= std::max(tiny, kEpsilon * diagonal);
}

// The eigenvalues of the last block of two. Of real ones that which is nearer to the last element,
// twice.
Schur::Shifts Schur::choose_shifts(int64_t first, int64_t last, int iteration) const {
  double a = at(last - 1, last - 1);
  double b = at(last - 1, last);
  double c = at(last, last - 1);
  double d = at(last, last);
  if (iteration % kExceptional == 0) {  // others, where the usual ones go in a circle
    const bool top = iteration % (2 * kExceptional) != 0;
    const double size = top ? std::fabs(at(first + 1, first)) + std::fabs(at(first + 2, first + 1))
                            : std::fabs(c) + std::fabs(at(last - 1, last - 2));
    a = d = 0.75 * size + (top ? at(first, first) : d);
    b = -0.4375 * size;
    c = size;
  }
  const double size = std::fabs(a) + std::fabs(b) + std::fabs(c) + std::fabs(d);
  if (size == 0) {
    return {0, 0};
  }
  const double middle = (a / size + d / size) / 2;
  const double under = (a / size - middle) * (d / size - middle) - (b / size) * (c / size);
  const double root = std::sqrt(std::fabs(under));
  if (under >= 0) {
    return {middle * size, root * size};
  }
  const double one = middle + root;
  const double other = middle - root;
  const bool nearer = std::fabs(one - d / size) <= std::fabs(other - d / size);
  return {(nearer ? one : other) * size, 0};
}

// Where a double step may begin, since two elements below the diagonal are small together; `v`
// becomes the first column of (T - s1)(T - s2) there, scaled.
int64_t Schur::first_column(int64_t first, int64_t last, Shifts shifts, double* v) const {
  for (int64_t m = last - 2;; --m) {
    const double from = at(m, m) - shifts.real;
    const double scale = std::fabs(from) + std::fabs(shifts.imaginary) + std::fabs(at(m + 1, m));
    const double below = at(m + 1, m) / scale;
    v[0] = below * at(m, m + 1) + from * (from / scale) +
           shifts.imaginary * (shifts.imaginary / scale);
    v[1] = below * (at(m, m) + at(m + 1, m + 1) - 2 * shifts.real);
    v[2] = below * at(m + 2, m + 1);
    const double sum = std::fabs(v[0]) + std::fabs(v[1]) + std::fabs(v[2]);
    for (int i = 0; i < 3; ++i) {
      v[i] /= sum;
    }
    if (m == first) {
      return m;
    }
    const double beside =
        std::fabs(at(m - 1, m - 1)) + std::fabs(at(m, m)) + std::fabs(at(m + 1, m + 1));
    if (std::fabs(at(m, m - 1)) * (std::fabs(v[1]) + std::fabs(v[2])) <=
        kEpsilon * std::fabs(v[0]) * beside) {
      return m;
    }
  }
}

// A double step over rows first ... last.
void Schur::sweep(int64_t first, int64_t last, Shifts shifts) {
  double v[3];
  const int64_t start = first_column(first, last, shifts, v);
  for (int64_t k = start; k < last; ++k) {
    const int64_t count = std::min<int64_t>(3, last - k + 1);
    if (k > start) {
      for (int64_t i = 0; i < count; ++i) {
        v[i] = at(k + i, k - 1);
      }
    }
    double alpha = v[0];
    const double tau = make_reflector(count - 1, alpha, v + 1, int64_t{1});
    v[0] = 1;
    if (k > start) {
      at(k, k - 1) = alpha;
      for (int64_t i = 1; i < count; ++i) {
        at(k + i, k - 1) = 0;
      }
    } else if (k > first) {
      at(k, k - 1) *= 1 - tau;
    }
    if (tau != 0) {
      reflect(k, count, v, tau, k, std::min(last, k + 3) + 1);
    }
  }
}

// The last block of rows last - 1 and last, split off: makes it triangular where its eigenvalues
// are real. False where they are complex.
bool Schur::split(int64_t& last) {
  const int64_t k = last - 1;
  const double a = at(k, k);
  const double b = at(k, last);
  const double c = at(last, k);
  const double d = at(last, last);
  const double half = (a - d) / 2;
  const double size = std::max({std::fabs(half), std::fabs(b), std::fabs(c)});
  const double under = (half / size) * (half / size) + (b / size) * (c / size);
  const double root = size * std::sqrt(std::fabs(under));
  if (under < 0) {
    const double middle = d + half;
    values[static_cast<size_t>(k)] = {middle, root};
    values[static_cast<size_t>(last)] = {middle, -root};
    return false;
  }
  // (z, c) is an eigenvector of d + z, the other eigenvalue is d - b c / z.
  const double far = half + std::copysign(root, half);
  const double length = std::hypot(far, c);
  // The reflection that takes it to the first axis.
  double v[2] = {far, c};
  double alpha = v[0];
  double tau = 0;
  if (length != 0) {
    tau = make_reflector(1, alpha, v + 1, int64_t{1});
    v[0] = 1;
  }
  if (tau != 0) {
    reflect(k, 2, v, tau, k, last + 1);
  }
  at(last, k) = 0;
  values[static_cast<size_t>(k)] = at(k, k);
  values[static_cast<size_t>(last)] = at(last, last);
  return true;
}

// The order in which eigenvalues split off is LAPACK's, as far as rounding lets it be: its criteria
// and its shifts are taken.
void Schur::iterate() {
  int iteration = 0;
  for (int64_t last = n - 1; last >= 0;) {
    int64_t first = last;
    for (; first > 0; --first) {
      if (negligible(first)) {
        at(first, first - 1) = 0;
        break;
      }
    }
    if (first == last) {
      values[static_cast<size_t>(last)] = at(last, last);
      --last;
      iteration = 0;
      continue;
    }
    if (first == last - 1) {
      split(last);
      last -= 2;
      iteration = 0;
      continue;
    }
    if (iteration++ == kIterations) {
      failed = static_cast<int32_t>(last + 1);
      return;
    }
    sweep(first, last, choose_shifts(first, last, iteration));
  }
}

}  // namespace rushlight::kernels
