// Triangular systems, by halves: matrix products do all but the diagonal blocks.
#pragma once

#include "kernels/linalg/matrix.h"

namespace rushlight::kernels {

// Solves L X = B in place of B: L is n x n and lower triangular (what is above its diagonal is not
// read, nor is the diagonal where `unit`), B has `count` columns. A zero on the diagonal divides.
template <typename T>
void solve_lower(int64_t n, int64_t count, Strided<const T> l, bool unit, Strided<T> b);

// The same of an upper triangular matrix.
template <typename T>
void solve_upper(int64_t n, int64_t count, Strided<const T> u, bool unit, Strided<T> b);

}  // namespace rushlight::kernels
