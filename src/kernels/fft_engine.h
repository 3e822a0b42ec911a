// The inner loops of Fourier transforms, compiled for several levels. They transform one group of
// lines at a time, a line in each lane of a vector.
//
// A group lies in memory as lanes: for each element of a line one vector of real parts, then one of
// imaginary parts. Only the forward direction is computed: swapping the parts on the way in and out
// gives the other.
#pragma once

#include <cstdint>

namespace rushlight {

inline constexpr int kFftMaxWidth = 16;
inline constexpr int kFftMaxRadix = 31;  // of a stage

// One step of a transform that sorts itself (Stockham): `radix` runs of m * s elements become m
// runs of radix * s.
template <typename T>
struct FftStage {
  int radix;
  int64_t m;
  int64_t s;
  const T* roots;     // radix complex roots of unity, exp(-2 pi i k / radix)
  const T* twiddles;  // for p in [1, m), j in [1, radix): exp(-2 pi i p j / (radix m))
};

// Where the elements of a group of lines lie: the real part of element j of line l at
// lines[l] + j * step, the imaginary part `imag` further. imag 0: there is none.
template <typename T>
struct FftAccess {
  T* lines[kFftMaxWidth];
  int64_t step;
  int64_t imag;
  int count;  // of lines
};

template <typename T>
struct FftEngine {
  int width;  // lanes of a vector
  // Elements [0, count) of the lines; lanes without a line get values of no meaning.
  void (*load)(T* lanes, const FftAccess<const T>& from, int64_t count, bool swap);
  void (*store)(const T* lanes, const FftAccess<T>& to, int64_t count, bool swap, T scale);
  // Transforms `a` with the help of `b`, as large; returns which of both holds the result.
  T* (*stages)(const FftStage<T>* stages, int count, T* a, T* b);
  // out[k] = a[k] * factors[k], in place too; `swap`: with the parts of the result swapped.
  void (*multiply)(T* out, const T* a, const T* factors, int64_t count, bool swap);
  // to[q] = from[powers[q]], q < count.
  void (*pick)(T* to, const T* from, const int32_t* powers, int64_t count);
  // to[powers[(count - q) % count]] = start + from[q] with its parts swapped.
  void (*place)(T* to, const T* from, const int32_t* powers, int64_t count, const T* start);
  // Of lines of half = n / 2 complex numbers z[j] = x[2j] + i x[2j + 1], transformed, those of x:
  // half + 1 elements in place. `roots`: exp(-2 pi i k / n).
  void (*split_real)(T* lanes, const T* roots, int64_t half);
  // The reverse, times 2: half elements from half + 1, with their parts swapped.
  void (*join_real)(T* lanes, const T* roots, int64_t half);
  // Of the first n / 2 + 1 elements of the transform of a real line, those of all; the imaginary
  // part of the first becomes 0. `swapped`: parts are.
  void (*mirror)(T* lanes, int64_t n, bool swapped);
  // Lanes of a group of columns, times each[k] (one number) and within[k] (one for each lane),
  // turned into lanes of rows: element k of column l becomes element l of row k. Rows k to k +
  // width lie `apart` elements after one another.
  void (*turn)(T* rows, int64_t apart, const T* lanes, int64_t count, int columns, const T* each,
               const T* within);
  // As split_real and join_real, for one line of complex numbers that follow one another. `all`:
  // the 2 half elements of the result, not the first half + 1. join_line does not swap.
  void (*split_line)(const T* line, T* out, const T* roots, int64_t half, bool all);
  void (*join_line)(T* line, const T* in, const T* roots, int64_t half);
};

namespace base {
extern const FftEngine<float> fft_f32;
extern const FftEngine<double> fft_f64;
}  // namespace base
namespace v3 {
extern const FftEngine<float> fft_f32;
extern const FftEngine<double> fft_f64;
}  // namespace v3
namespace v4 {
extern const FftEngine<float> fft_f32;
extern const FftEngine<double> fft_f64;
}  // namespace v4

template <typename T>
const FftEngine<T>& fft_engine();  // f32, f64

}  // namespace rushlight
