#include "kernels/linalg/vectors.h"

#include <cmath>

#include "runtime/cpu.h"

namespace rushlight::kernels {
namespace {

template <typename T>
struct Plain {
  // Without the rescue of infinities that std::complex's operator does.
  static T times(T a, T b) {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  }
  static T dot(int64_t n, const T* x, const T* y) {
    T sum = 0;
    for (int64_t i = 0; i < n; ++i) {
      sum += times(x[i], y[i]);
    }
    return sum;
  }
  static int64_t largest(int64_t n, const T* x) {
    int64_t at = 0;
    auto best = size(x[0]);
    for (int64_t i = 1; i < n; ++i) {
      const auto other = size(x[i]);
      if (other > best || (std::isnan(other) && !std::isnan(best))) {
        best = other;
        at = i;
      }
    }
    return at;
  }
  static auto size(T x) { return std::fabs(x.real()) + std::fabs(x.imag()); }
  static void axpy(int64_t n, T a, const T* x, T* y) {
    for (int64_t i = 0; i < n; ++i) {
      y[i] += times(a, x[i]);
    }
  }
  static void dot_columns(int64_t m, int64_t n, const T* a, int64_t lda, const T* x, T* y) {
    for (int64_t j = 0; j < n; ++j) {
      y[j] = dot(m, a + j * lda, x);
    }
  }
  static void add_columns(int64_t m, int64_t n, T alpha, const T* a, int64_t lda, const T* x,
                          int64_t x_step, T* y) {
    for (int64_t j = 0; j < n; ++j) {
      axpy(m, times(alpha, x[j * x_step]), a + j * lda, y);
    }
  }
  static void rank_one(int64_t m, int64_t n, T alpha, const T* x, const T* y, int64_t y_step, T* a,
                       int64_t lda) {
    for (int64_t j = 0; j < n; ++j) {
      axpy(m, times(alpha, y[j * y_step]), x, a + j * lda);
    }
  }
  static void solve(int64_t n, const T* l, bool unit, T* panel) {
    constexpr int64_t kWide = kPanelRows<T>;
    for (int64_t i = 0; i < n; ++i) {
      T* row = panel + i * kWide;
      for (int64_t j = 0; j < i; ++j) {
        axpy(kWide, -l[i * n + j], panel + j * kWide, row);
      }
      for (int64_t k = 0; !unit && k < kWide; ++k) {
        row[k] /= l[i * n + i];
      }
    }
  }
  static void load_panel(int64_t n, int64_t width, const T* columns, int64_t lda, T* panel) {
    constexpr int64_t kWide = kPanelRows<T>;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t k = 0; k < kWide; ++k) {
        panel[i * kWide + k] = k < width ? columns[k * lda + i] : T(0);
      }
    }
  }
  static void store_panel(int64_t n, int64_t width, const T* panel, T* columns, int64_t lda) {
    constexpr int64_t kWide = kPanelRows<T>;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t k = 0; k < width; ++k) {
        columns[k * lda + i] = panel[i * kWide + k];
      }
    }
  }
  static constexpr VectorOps<T> kTable{dot,      largest, axpy,  dot_columns, add_columns,
                                       rank_one, nullptr, solve, load_panel,  store_panel};
};

}  // namespace

template <>
const VectorOps<std::complex<float>>& vector_ops<std::complex<float>>() {
  return Plain<std::complex<float>>::kTable;
}

template <>
const VectorOps<std::complex<double>>& vector_ops<std::complex<double>>() {
  return Plain<std::complex<double>>::kTable;
}

template <>
const VectorOps<float>& vector_ops<float>() {
#if defined(__x86_64__)
  if (cpu_level() >= CpuLevel::v3) {
    return v3::vectors_f32;
  }
#endif
  return base::vectors_f32;
}

template <>
const VectorOps<double>& vector_ops<double>() {
#if defined(__x86_64__)
  if (cpu_level() >= CpuLevel::v3) {
    return v3::vectors_f64;
  }
#endif
  return base::vectors_f64;
}

}  // namespace rushlight::kernels
