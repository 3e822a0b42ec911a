// Products of Householder reflectors: QR and what is built of it, by blocks in the compact WY form.
//
// Reflector i is H(i) = 1 - tau[i] v v^T (v^H of complex numbers), where v is zero above element i,
// one there, and below it what is stored in column i. Q is H(0) H(1) ... H(k - 1).
#pragma once

#include "kernels/linalg/matrix.h"

namespace rushlight::kernels {

// Makes the reflector that takes (alpha, x) to (beta, 0): x becomes v without its leading one,
// alpha becomes beta. Returns tau, zero where x is zero already.
template <typename T>
T make_reflector(int64_t n, T& alpha, T* x, int64_t step);

// A = Q R of a column-major m x n matrix in place: R on and above the diagonal, the reflectors
// below. `tau` gets min(m, n) numbers.
template <typename T>
void qr_factor(int64_t m, int64_t n, T* a, int64_t lda, T* tau);

// C (m x count) becomes Q C, or Q^T C where `transpose`. Of complex numbers, Q^H C, and the rows of
// C lie one element apart.
template <typename T>
void apply_reflectors(bool transpose, int64_t m, int64_t count, int64_t k, const T* v, int64_t ldv,
                      const T* tau, Strided<T> c);

// The first n columns of Q, m x n and column-major, from its k reflectors. `q` shares no memory
// with them.
template <typename T>
void form_q(int64_t m, int64_t n, int64_t k, const T* v, int64_t ldv, const T* tau, T* q,
            int64_t ldq);

}  // namespace rushlight::kernels
