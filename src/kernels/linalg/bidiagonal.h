// A = Q B P^T with B upper bidiagonal, and the singular values of such.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/linalg/rotations.h"

namespace rushlight::kernels {

// Reduces a column-major m x n matrix, m >= n > 0. Its reflectors: those of Q stay below the
// diagonal of `a`, those of P, which act on elements 1 to n - 1, fill `rows` by columns, n apart,
// from element 1 of column 0 on.
template <typename T>
class Bidiagonal {
 public:
  Bidiagonal(int64_t m, int64_t n, T* a, int64_t lda);
  std::vector<double> diagonal;
  std::vector<double> beside;  // e[i] is right of d[i]
  std::vector<T> left_tau;
  std::vector<T> right_tau;
  std::vector<T> rows;

 private:
  void reduce(int64_t at, int64_t width);
  void step(int64_t at, int64_t k);
  void left_reflector(int64_t j, int64_t k);
  void right_reflector(int64_t j, int64_t k);

  int64_t m_;
  int64_t n_;
  T* a_;
  int64_t lda_;
  std::vector<T> left_;   // [V X], m rows
  std::vector<T> right_;  // [Y U], n rows
  std::vector<T> row_;
  std::vector<T> products_;
};

// Diagonalises B by implicit QR, Demmel and Kahan's zero shift where another would lose small
// values. Rotates the columns of Q and P along. `d` gets the values, some of them negative, in no
// order. Returns how many did not converge.
template <typename T>
int32_t diagonalise(std::vector<double>& d, std::vector<double>& e, Rotations<T>& q,
                    Rotations<T>& p);

}  // namespace rushlight::kernels
