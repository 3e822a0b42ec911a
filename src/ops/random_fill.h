// Filling tensors from random streams: what the random operators share.
#pragma once

#include <optional>
#include <string_view>

#include "kernels/random.h"
#include "ops/operator.h"
#include "runtime/function_ref.h"

namespace rushlight {

// Fills `count` elements of one block of memory; `whole` tells that the block is the tensor's own
// memory in row-major order.
using RandomFill = FunctionRef<void(void* data, int64_t count, bool whole, streams::State& state)>;

// Draws a tensor's elements, in the order they have in memory, from a generator (the default one
// where there is none), holding its lock. Meta tensors draw nothing.
void fill_random(const Tensor& out, const std::optional<Generator>& generator, RandomFill fill);

// The tensor that a call writes: the given output, checked and resized, or a fresh one of `dtype`.
// With `strides` the fresh one has those.
const Tensor& random_output(Invocation& inv, IntArrayRef sizes, std::optional<DType> dtype,
                            DType fallback, Device device, IntArrayRef strides = {});

// As in-place forms fill: the given output, or a fresh tensor like the first argument.
const Tensor& random_output_like(Invocation& inv);

std::optional<Generator> generator_of(const Value& value);

// Error(NotImplemented) "name" not implemented for 'Long', unless `dtype` is floating.
void require_floating(DType dtype, std::string_view kernel);

void fill_uniform(const Tensor& out, double from, double to,
                  const std::optional<Generator>& generator);
void fill_normal(const Tensor& out, double mean, double std,
                 const std::optional<Generator>& generator);
// Integers in [from, to); `to` absent: up to the greatest that the dtype holds, which is drawn too.
void fill_integers(const Tensor& out, int64_t from, std::optional<int64_t> to,
                   const std::optional<Generator>& generator);
// `on` with probability p, else zero.
void fill_bernoulli(const Tensor& out, double p, double on,
                    const std::optional<Generator>& generator);

}  // namespace rushlight
