#include "kernels/linalg/triangular.h"

#include <algorithm>

#include "kernels/linalg/vectors.h"
#include "runtime/parallel.h"

namespace rushlight::kernels {
namespace {

constexpr int64_t kBlock = 32;   // solved directly
constexpr int64_t kColumns = 4;  // fewer are solved one by one

template <typename T>
void solve_column(int64_t n, const T* l, bool unit, T* b, int64_t step) {
  for (int64_t i = 0; i < n; ++i) {
    T sum = b[i * step];
    for (int64_t j = 0; j < i; ++j) {
      sum -= l[i * n + j] * b[j * step];
    }
    b[i * step] = unit ? sum : sum / l[i * n + i];
  }
}

template <typename T>
void solve_columns(int64_t n, int64_t count, const T* l, bool unit, Strided<T> b) {
  constexpr int64_t kWide = kPanelRows<T>;
  alignas(64) T panel[kBlock * kWide];
  for (int64_t at = 0; at < count; at += kWide) {
    const int64_t width = std::min(kWide, count - at);
    const Strided<T> part = b.at(0, at);
    if (b.rows == 1 || b.rows == -1) {
      // Of an upper triangle the last row is the first: turned about in the panel.
      T* first = b.rows == 1 ? part.data : part.data - (n - 1);
      const auto turn = [&] {
        for (int64_t i = 0; b.rows < 0 && i < n / 2; ++i) {
          std::swap_ranges(panel + i * kWide, panel + (i + 1) * kWide, panel + (n - 1 - i) * kWide);
        }
      };
      vector_ops<T>().load_panel(n, width, first, b.columns, panel);
      turn();
      vector_ops<T>().solve(n, l, unit, panel);
      turn();
      vector_ops<T>().store_panel(n, width, panel, first, b.columns);
      continue;
    }
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < width; ++j) {
        panel[i * kWide + j] = part(i, j);
      }
      std::fill(panel + i * kWide + width, panel + (i + 1) * kWide, T(0));
    }
    vector_ops<T>().solve(n, l, unit, panel);
    for (int64_t j = 0; j < width; ++j) {
      for (int64_t i = 0; i < n; ++i) {
        part(i, j) = panel[i * kWide + j];
      }
    }
  }
}

template <typename T>
void solve_block(int64_t n, int64_t count, Strided<const T> l, bool unit, Strided<T> b) {
  alignas(64) T packed[kBlock * kBlock];
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      packed[i * n + j] = l(i, j);
    }
  }
  if (count < kColumns) {
    for (int64_t j = 0; j < count; ++j) {
      solve_column(n, packed, unit, b.data + j * b.columns, b.rows);
    }
    return;
  }
  constexpr int64_t kPanels = 8;  // of a task
  const int64_t wide = kPanels * kPanelRows<T>;
  parallel_for(0, (count + wide - 1) / wide, 1, [&](int64_t first, int64_t last) {
    const int64_t begin = first * wide;
    solve_columns(n, std::min(count, last * wide) - begin, packed, unit, b.at(0, begin));
  });
}

}  // namespace

template <typename T>
void solve_lower(int64_t n, int64_t count, Strided<const T> l, bool unit, Strided<T> b) {
  if (n == 0 || count == 0) {
    return;
  }
  if (n <= kBlock) {
    solve_block(n, count, l, unit, b);
    return;
  }
  const int64_t half = (n / 2 + kBlock - 1) / kBlock * kBlock;
  solve_lower<T>(half, count, l, unit, b);
  multiply<T>(n - half, count, half, -1, l.at(half, 0), b, 1, b.at(half, 0));
  solve_lower<T>(n - half, count, l.at(half, half), unit, b.at(half, 0));
}

// The products see rows and columns in their own order, for they pack those that run backwards
// element by element; only the diagonal blocks are lower triangles from behind.
template <typename T>
void solve_upper(int64_t n, int64_t count, Strided<const T> u, bool unit, Strided<T> b) {
  if (n == 0 || count == 0) {
    return;
  }
  if (n <= kBlock) {
    solve_block<T>(n, count, {&u(n - 1, n - 1), -u.rows, -u.columns}, unit,
                   {b.data + (n - 1) * b.rows, -b.rows, b.columns});
    return;
  }
  const int64_t half = (n / 2 + kBlock - 1) / kBlock * kBlock;
  solve_upper<T>(n - half, count, u.at(half, half), unit, b.at(half, 0));
  multiply<T>(half, count, n - half, -1, u.at(0, half), b.at(half, 0), 1, b);
  solve_upper<T>(half, count, u, unit, b);
}

#define RUSHLIGHT_INSTANTIATE(T)                                                      \
  template void solve_lower<T>(int64_t, int64_t, Strided<const T>, bool, Strided<T>); \
  template void solve_upper<T>(int64_t, int64_t, Strided<const T>, bool, Strided<T>)
RUSHLIGHT_INSTANTIATE(float);
RUSHLIGHT_INSTANTIATE(double);
RUSHLIGHT_INSTANTIATE(std::complex<float>);
RUSHLIGHT_INSTANTIATE(std::complex<double>);
#undef RUSHLIGHT_INSTANTIATE

}  // namespace rushlight::kernels
