#include "kernels/linalg/eigen_general.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/linalg/matrix.h"
#include "kernels/linalg/schur.h"

namespace rushlight::kernels {
namespace {

using Complex = std::complex<double>;

// The block that row i ends: whether rows i - 1 and i belong together.
bool is_pair(const Schur& schur, int64_t i) {
  return i > 0 && schur.at(i, i - 1) != 0;
}

// An eigenvector of T for the value whose block ends at row k, by back substitution.
class Vector {
 public:
  Vector(const Schur& schur, int64_t k, Complex value)
      : schur_(schur), value_(value), x_(static_cast<size_t>(k + 1)) {
    double size = 0;
    for (int64_t j = 0; j <= k; ++j) {
      for (int64_t i = 0; i <= std::min(j + 1, k); ++i) {
        size = std::max(size, std::fabs(schur.at(i, j)));
      }
    }
    smallest_ =
        std::max(size * std::numeric_limits<double>::epsilon(), std::numeric_limits<double>::min());
    int64_t next = k - 1;
    if (is_pair(schur, k)) {
      const double above = schur.at(k - 1, k);
      const double below = schur.at(k, k - 1);
      if (std::fabs(above) >= std::fabs(below)) {
        x(k - 1) = 1;
        x(k) = (value - schur.at(k - 1, k - 1)) / above;
      } else {
        x(k) = 1;
        x(k - 1) = (value - schur.at(k, k)) / below;
      }
      eliminate(k - 1, k - 1);
      eliminate(k, k - 1);
      --next;
    } else {
      x(k) = 1;
      eliminate(k, k);
    }
    while (next >= 0) {
      next -= is_pair(schur, next) ? solve_pair(next) : solve_one(next);
    }
  }
  const std::vector<Complex>& elements() const { return x_; }

 private:
  Complex& x(int64_t i) { return x_[static_cast<size_t>(i)]; }

  // Takes x(j) times column j from the rows before `rows`; keeps all in range.
  void eliminate(int64_t j, int64_t rows) {
    if (const double size = std::abs(x(j)); size > 1e100) {
      for (Complex& element : x_) {
        element /= size;
      }
    }
    const double* column = schur_.t.data() + j * schur_.n;
    const double re = x(j).real();
    const double im = x(j).imag();
    auto* parts = reinterpret_cast<double*>(x_.data());
    for (int64_t i = 0; i < rows; ++i) {
      parts[2 * i] -= column[i] * re;
      parts[2 * i + 1] -= column[i] * im;
    }
  }

  Complex kept_away(Complex divisor) const {
    return std::abs(divisor) < smallest_ ? Complex(smallest_) : divisor;
  }

  int64_t solve_one(int64_t i) {
    x(i) /= kept_away(schur_.at(i, i) - value_);
    eliminate(i, i);
    return 1;
  }

  int64_t solve_pair(int64_t i) {
    const Complex a = schur_.at(i - 1, i - 1) - value_;
    const Complex d = schur_.at(i, i) - value_;
    const double b = schur_.at(i - 1, i);
    const double c = schur_.at(i, i - 1);
    // Scaled, since the determinant has the square of the size.
    const double size = std::max({std::abs(a), std::abs(d), std::fabs(b), std::fabs(c)});
    Complex determinant = (a / size) * (d / size) - (b / size) * (c / size);
    if (std::abs(determinant) * size < smallest_) {
      determinant = smallest_ / size;
    }
    const Complex first = x(i - 1) / size;
    const Complex second = x(i) / size;
    x(i - 1) = ((d / size) * first - (b / size) * second) / determinant;
    x(i) = ((a / size) * second - (c / size) * first) / determinant;
    eliminate(i, i - 1);
    eliminate(i - 1, i - 1);
    return 2;
  }

  const Schur& schur_;
  Complex value_;
  double smallest_;
  std::vector<Complex> x_;
};

void normalise(int64_t n, Complex* x) {
  double largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    largest = std::max(largest, std::abs(x[i]));
  }
  if (largest == 0 || !std::isfinite(largest)) {
    return;
  }
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    x[i] /= largest;
    sum += std::norm(x[i]);
  }
  const double length = std::sqrt(sum);
  for (int64_t i = 0; i < n; ++i) {
    x[i] /= length;
  }
}

void make_largest_real(int64_t n, Complex* x) {
  int64_t at = 0;
  for (int64_t i = 1; i < n; ++i) {
    at = std::norm(x[i]) > std::norm(x[at]) ? i : at;
  }
  const double size = std::abs(x[at]);
  if (size == 0) {
    return;
  }
  const Complex turn = std::conj(x[at]) / size;
  for (int64_t i = 0; i < n; ++i) {
    x[i] *= turn;
  }
  x[at] = size;
}

void make_vectors(const Schur& schur, Complex* vectors) {
  const int64_t n = schur.n;
  const auto area = static_cast<size_t>(n * n);
  std::vector<double> real(area, 0.0);
  std::vector<double> imaginary(area, 0.0);
  for (int64_t k = n - 1; k >= 0; --k) {
    const bool pair = is_pair(schur, k);
    const int64_t first = pair ? k - 1 : k;  // the value with the positive imaginary part
    const Vector vector(schur, k, schur.values[static_cast<size_t>(first)]);
    for (size_t i = 0; i < vector.elements().size(); ++i) {
      real[static_cast<size_t>(first * n) + i] = vector.elements()[i].real();
      imaginary[static_cast<size_t>(first * n) + i] = vector.elements()[i].imag();
    }
    k = first;
  }
  std::vector<double> products(area);
  for (int part = 0; part < 2; ++part) {
    const std::vector<double>& x = part == 0 ? real : imaginary;
    multiply<double>(n, n, n, 1, by_columns(schur.z.data(), n), by_columns(x.data(), n), 0,
                     by_columns(products.data(), n));
    for (size_t i = 0; i < area; ++i) {
      reinterpret_cast<double*>(vectors)[2 * i + static_cast<size_t>(part)] = products[i];
    }
  }
  for (int64_t k = 0; k < n; ++k) {
    Complex* column = vectors + k * n;
    normalise(n, column);
    if (schur.values[static_cast<size_t>(k)].imag() != 0) {
      make_largest_real(n, column);
      std::transform(column, column + n, column + n, [](Complex x) { return std::conj(x); });
      ++k;
    }
  }
}

}  // namespace

int32_t eigen_general(int64_t n, std::vector<double> a, Complex* values, Complex* vectors) {
  const bool finite = std::all_of(a.begin(), a.end(), [](double x) { return std::isfinite(x); });
  if (!finite) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    std::fill(values, values + n, Complex(nan, nan));
    return static_cast<int32_t>(std::max<int64_t>(n, 1));
  }
  const Schur schur(n, std::move(a), vectors != nullptr);
  std::copy(schur.values.begin(), schur.values.end(), values);
  if (vectors != nullptr && schur.failed == 0) {
    make_vectors(schur, vectors);
  }
  return schur.failed;
}

}  // namespace rushlight::kernels
