#include "kernels/convolution.h"

#include <algorithm>

#include "kernels/convolution_engine.h"
#include "kernels/convolution_windows.h"
#include "kernels/element.h"
#include "runtime/parallel.h"

namespace rushlight {
namespace {

using namespace convolutions;

bool is_wide(DType dtype) {
  return dtype == DType::Float64;
}

bool has_engine(DType dtype) {
  return is_wide(dtype) || dtype == DType::Float32 || dtype == DType::Float16 ||
         dtype == DType::BFloat16;
}

// Few results for each window: packing it would cost more than summing it.
bool is_flat(const WindowProduct& product) {
  return product.out <= kFlatRows;
}

void run(const WindowProduct& product) {
  const bool flat = is_flat(product);
  if (is_wide(product.dtype)) {
    flat ? sum_windows<double>(product) : multiply_windows<double>(product);
  } else {
    flat ? sum_windows<float>(product) : multiply_windows<float>(product);
  }
}

// Gives all elements of each channel its bias, or zero.
void fill(const WindowProduct& product) {
  const auto& strides = product.result.strides;
  const Extent& size = product.result_size;
  const int64_t channels = product.groups * product.out;
  kernels::by_element_size(element_size(product.dtype), [&](auto sample) {
    using T = decltype(sample);
    parallel_for(0, product.batch * channels, 4, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t c = i % channels;
        const T value = product.bias == nullptr ? T{} : static_cast<const T*>(product.bias)[c];
        T* to = static_cast<T*>(product.result.data) + i / channels * strides[0] + c * strides[1];
        for (int64_t z = 0; z < size[0]; ++z) {
          for (int64_t y = 0; y < size[1]; ++y) {
            for (int64_t x = 0; x < size[2]; ++x) {
              to[z * strides[2] + y * strides[3] + x * strides[4]] = value;
            }
          }
        }
      }
    });
  });
}

}  // namespace

void convolve(const Convolution& problem, const ImagesRef& input, const ImagesRef& weight,
              const void* bias, const MutableImagesRef& output) {
  const bool offered = has_engine(problem.dtype);
  const Windows windows = offered ? windows_of(problem) : Windows{};
  if (!offered || windows.wasteful()) {
    return direct::convolve(problem, input, weight, bias, output);
  }
  const auto& w = weight.strides;
  run({problem.dtype,
       problem.batch,
       problem.groups,
       problem.in_channels,
       problem.out_channels,
       problem.kernel,
       problem.output,
       windows,
       input,
       {weight.data, problem.out_channels * w[0], w[0], w[1], {w[2], w[3], w[4]}},
       bias,
       output});
}

void convolve_transposed(const Convolution& problem, const ImagesRef& output,
                         const ImagesRef& weight, const void* bias, const MutableImagesRef& input) {
  const bool offered = has_engine(problem.dtype);
  const Windows windows = offered ? transposed_windows_of(problem) : Windows{};
  if (!offered || windows.wasteful()) {
    return direct::convolve_transposed(problem, output, weight, bias, input);
  }
  const auto& w = weight.strides;
  const WindowProduct product{
      problem.dtype,
      problem.batch,
      problem.groups,
      problem.out_channels,
      problem.in_channels,
      problem.kernel,
      problem.input,
      windows,
      output,
      {weight.data, problem.out_channels * w[0], w[1], w[0], {w[2], w[3], w[4]}},
      bias,
      input};
  if (!windows.complete) {
    fill(product);
  }
  run(product);
}

void convolve_for_weight(const Convolution& problem, const ImagesRef& input,
                         const ImagesRef& output, const MutableImagesRef& weight) {
  const bool offered = has_engine(problem.dtype);
  const Windows windows = offered ? windows_of(problem) : Windows{};
  if (!offered || windows.wasteful()) {
    return direct::convolve_for_weight(problem, input, output, weight);
  }
  const bool flat = problem.in_channels == 1 && problem.out_channels <= 2;
  if (is_wide(problem.dtype)) {
    flat ? sum_for_weight<double>(problem, windows, input, output, weight)
         : multiply_for_weight<double>(problem, windows, input, output, weight);
  } else {
    flat ? sum_for_weight<float>(problem, windows, input, output, weight)
         : multiply_for_weight<float>(problem, windows, input, output, weight);
  }
}

}  // namespace rushlight
