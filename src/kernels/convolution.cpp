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

// Whether groups of one channel and one result are taken side by side. Large planes whose rows are
// adjacent in memory are summed as well where they lie.
bool by_lanes(const Windows& windows, int64_t groups, const ImagesRef& source) {
  constexpr int64_t kNear = 4096;  // positions whose lanes stay in the second-level cache
  const bool adjacent = source.strides[1] == 1 && source.strides[4] != 1;
  return groups >= kConvolutionLanes / 2 &&
         (adjacent || windows.planes() > 1 || windows.grids.size() > 1 ||
          windows.channel() <= kNear);
}

// Whether pixels are the rows of the product: where enough results fill the vectors, and windows
// would be copied otherwise.
bool by_pixels(const WindowProduct& product) {
  constexpr int64_t kFewest = 5;
  const bool adjacent = product.source.strides[1] == 1 && product.source.strides[4] != 1;
  // Few channels in planes by steps are turned for more than they save.
  const bool sparse = product.in < 8 && product.windows.planes() > 1;
  // Few pixels of single taps: factors are most of the work, and panels of them are shared out.
  constexpr int64_t kFew = 96;
  const bool few = product.batch * count(product.result_size) <= kFew;
  const bool windows = few || count(product.kernel) > 1;
  return product.out >= kFewest && (adjacent || (windows && !sparse));
}

// Whether windows cover what lies between them, so that pixels need not be sorted by steps.
bool unsplit(const Convolution& problem) {
  bool covers = true;
  for (size_t d = 0; d < 3; ++d) {
    covers = covers && problem.kernel[d] >= problem.stride[d];
  }
  return covers;
}

void run(const WindowProduct& product) {
  const bool flat = is_flat(product);
  if (product.in == 1 && product.out == 1 &&
      by_lanes(product.windows, product.groups, product.source)) {
    is_wide(product.dtype) ? sum_windows_by_lanes<double>(product)
                           : sum_windows_by_lanes<float>(product);
  } else if (by_pixels(product)) {
    is_wide(product.dtype) ? multiply_pixels<double>(product) : multiply_pixels<float>(product);
  } else if (is_wide(product.dtype)) {
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
  const auto product = [&](const Windows& seen) -> WindowProduct {
    return {problem.dtype,
            problem.batch,
            problem.groups,
            problem.in_channels,
            problem.out_channels,
            problem.kernel,
            problem.output,
            seen,
            input,
            {weight.data, problem.out_channels * w[0], w[0], w[1], {w[2], w[3], w[4]}},
            bias,
            output};
  };
  if (windows.planes() > 1 && unsplit(problem)) {
    const Windows whole = unsplit_windows_of(problem);
    if (by_pixels(product(whole))) {
      return run(product(whole));
    }
  }
  run(product(windows));
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
  if (problem.in_channels == 1 && problem.out_channels == 1 &&
      by_lanes(windows, problem.groups, input)) {
    is_wide(problem.dtype)
        ? sum_for_weight_by_lanes<double>(problem, windows, input, output, weight)
        : sum_for_weight_by_lanes<float>(problem, windows, input, output, weight);
  } else if (is_wide(problem.dtype)) {
    flat ? sum_for_weight<double>(problem, windows, input, output, weight)
         : multiply_for_weight<double>(problem, windows, input, output, weight);
  } else {
    flat ? sum_for_weight<float>(problem, windows, input, output, weight)
         : multiply_for_weight<float>(problem, windows, input, output, weight);
  }
}

}  // namespace rushlight
