// Random streams: the numbers that PyTorch's CPU generator yields for the same seed.
//
// Each function fills `count` elements in order and draws from the generator serially, so a result
// depends on the seed and on nothing else. The caller holds the state's lock. Distributions are
// computed in double and rounded once to `dtype`, except where a comment says otherwise.
// Where PyTorch's stream depends on the maker of the processor (it draws Bernoulli and exponential
// numbers by MKL on Intel's), the stream of the others is the one given here, on every machine.
#pragma once

#include <rushlight/dtype.h>
#include <rushlight/generator.h>

#include <cstdint>

namespace rushlight::streams {

using State = Generator::State;

// Uniform in [from, to). f16, bf16 and f32 take 24 random bits, f64 53. A value that rounds up to
// `to` becomes `from`.
void uniform(void* out, DType dtype, int64_t count, double from, double to, State& state);

// Normal. 16 elements and more are filled in blocks of 16 (Box-Muller: eight radii, eight angles;
// a tail redraws the last 16); fewer come one by one, in pairs, the second of a pair being kept in
// the state. `blocks` false asks for one by one always. Complex dtypes: `count` is twice the
// elements, and each part is drawn on its own.
void normal(void* out, DType dtype, int64_t count, double mean, double std, bool blocks,
            State& state);

// Integers base + [0, range), as any real dtype. range 0 stands for 2^64.
void integers(void* out, DType dtype, int64_t count, uint64_t range, int64_t base, State& state);

// Integers from 0 to the greatest that `dtype` holds (floating: to 2^digits, inclusive).
void integers_of_type(void* out, DType dtype, int64_t count, State& state);

// `on` with probability p, else zero.
void bernoulli(void* out, DType dtype, int64_t count, double p, double on, State& state);
// One probability an element; `p_dtype` is f32 (24-bit draws) or f64 (53-bit draws).
void bernoulli_each(void* out, DType dtype, int64_t count, const void* p, DType p_dtype,
                    State& state);

void exponential(void* out, DType dtype, int64_t count, double rate, State& state);
void geometric(void* out, DType dtype, int64_t count, double p, State& state);
void cauchy(void* out, DType dtype, int64_t count, double median, double sigma, State& state);
void log_normal(void* out, DType dtype, int64_t count, double mean, double std, State& state);

// `rates` has the dtype of the result. Error(Runtime) on a negative rate.
void poisson(void* out, const void* rates, DType dtype, int64_t count, State& state);

// A permutation of 0 .. count-1.
void permutation(int64_t* out, int64_t count, State& state);

// `draws` categories for each of `rows` rows of weights, with replacement. Error(Runtime) where a
// row holds a negative, infinite or NaN weight, or sums to zero.
void multinomial(int64_t* out, const void* weights, DType dtype, int64_t rows, int64_t categories,
                 int64_t draws, State& state);

}  // namespace rushlight::streams
