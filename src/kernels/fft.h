// Discrete Fourier transforms of many lines, any length, f32 and f64.
#pragma once

#include <rushlight/shape.h>

#include <cstdint>

namespace rushlight::kernels {

// Complex numbers are pairs; all strides count real numbers. Lines are n elements long;
// of the transform of a real line, the other n - (n / 2 + 1) elements are conjugates of the first.
template <typename T>
struct FftLines {
  int64_t n;
  T scale;  // of the results; no other normalisation is done
  const T* in;
  T* out;
  int64_t in_step;  // from element to element of a line
  int64_t out_step;
  // Where lines start.
  IntArrayRef sizes;
  IntArrayRef in_strides;
  IntArrayRef out_strides;
};

// X[k] = scale * sum over j of x[j] exp(-2 pi i j k / n); backward: exp(+...). In place where both
// sides have the same strides.
//
// An element's error is a few units in the last place of the line's norm times log2(n). Its bits
// depend on n, the CPU's level and the number of lines, not on the number of threads.
template <typename T>
void fft_complex(const FftLines<T>& lines, bool forward);
// From real lines, forward: the first n / 2 + 1 elements, or all.
template <typename T>
void fft_from_real(const FftLines<T>& lines, bool all);
// The reverse, backward. Imaginary parts that would make the result complex are not read.
template <typename T>
void fft_to_real(const FftLines<T>& lines);

}  // namespace rushlight::kernels
