#include <algorithm>

#include "kernels/convolution.h"
#include "kernels/element_type.h"
#include "runtime/parallel.h"

namespace rushlight::direct {
namespace {

using kernels::Compute;
using kernels::load_value;
using kernels::store_value;

// Sums of floats are formed in double precision.
template <typename T>
using Sum = std::conditional_t<std::is_floating_point_v<Compute<T>>, double, Compute<T>>;

// Multiplications that are worth a task of their own.
constexpr int64_t kTaskWork = 1 << 15;

int64_t grain(int64_t work) {
  return std::max<int64_t>(1, kTaskWork / std::max<int64_t>(work, 1));
}

int64_t ceil_div(int64_t a, int64_t b) {
  return a >= 0 ? (a + b - 1) / b : -(-a / b);
}

struct Range {
  int64_t first;
  int64_t last;
};

// The taps along a dimension through which output `o` sees the input.
Range taps_of(const Convolution& p, size_t d, int64_t o) {
  const int64_t start = o * p.stride[d] - p.padding[d];
  return {std::max<int64_t>(0, ceil_div(-start, p.dilation[d])),
          std::min(p.kernel[d], ceil_div(p.input[d] - start, p.dilation[d]))};
}

// The outputs along a dimension that see the input through tap `t`.
Range outputs_of(const Convolution& p, size_t d, int64_t t) {
  const int64_t start = t * p.dilation[d] - p.padding[d];
  return {std::max<int64_t>(0, ceil_div(-start, p.stride[d])),
          std::min(p.output[d], ceil_div(p.input[d] - start, p.stride[d]))};
}

Extent position(int64_t index, const Extent& extent) {
  return {index / (extent[1] * extent[2]), index / extent[2] % extent[1], index % extent[2]};
}

int64_t at(const std::array<int64_t, 5>& strides, int64_t first, int64_t second,
           const Extent& where) {
  return first * strides[0] + second * strides[1] + where[0] * strides[2] + where[1] * strides[3] +
         where[2] * strides[4];
}

template <typename T>
struct Operand {
  const T* data;
  const std::array<int64_t, 5>& strides;
  Sum<T> operator()(int64_t first, int64_t second, const Extent& where) const {
    return load_value(data[at(strides, first, second, where)]);
  }
};

template <typename T>
Operand<T> operand(const ImagesRef& images) {
  return {static_cast<const T*>(images.data), images.strides};
}

// Integers wrap around.
template <typename C>
void add_product(C a, C b, C* sum) {
  if constexpr (std::is_integral_v<C>) {
    const auto product = static_cast<uint64_t>(a) * static_cast<uint64_t>(b);
    *sum = static_cast<C>(static_cast<uint64_t>(*sum) + product);
  } else {
    *sum += a * b;
  }
}

template <typename T>
Sum<T> bias_of(const void* bias, int64_t channel) {
  return bias == nullptr ? Sum<T>{} : load_value(static_cast<const T*>(bias)[channel]);
}

// Calls `use` with each position of three ranges.
template <typename F>
void each(const Range (&ranges)[3], F use) {
  for (int64_t z = ranges[0].first; z < ranges[0].last; ++z) {
    for (int64_t y = ranges[1].first; y < ranges[1].last; ++y) {
      for (int64_t x = ranges[2].first; x < ranges[2].last; ++x) {
        use(Extent{z, y, x});
      }
    }
  }
}

Extent seen(const Convolution& p, const Extent& o, const Extent& t) {
  Extent made;
  for (size_t d = 0; d < 3; ++d) {
    made[d] = o[d] * p.stride[d] - p.padding[d] + t[d] * p.dilation[d];
  }
  return made;
}

template <typename T>
void forward(const Convolution& p, const ImagesRef& input, const ImagesRef& weight,
             const void* bias, const MutableImagesRef& output) {
  const Operand<T> x = operand<T>(input);
  const Operand<T> w = operand<T>(weight);
  const int64_t positions = count(p.output);
  const int64_t channels = p.groups * p.out_channels;
  const auto run = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = i / positions / channels;
      const int64_t c = i / positions % channels;
      const int64_t first = c / p.out_channels * p.in_channels;
      const Extent o = position(i % positions, p.output);
      const Range taps[3] = {taps_of(p, 0, o[0]), taps_of(p, 1, o[1]), taps_of(p, 2, o[2])};
      Sum<T> sum{};
      for (int64_t k = 0; k < p.in_channels; ++k) {
        each(taps, [&](const Extent& t) {
          add_product(x(n, first + k, seen(p, o, t)), w(c, k, t), &sum);
        });
      }
      sum = static_cast<Sum<T>>(sum + bias_of<T>(bias, c));
      static_cast<T*>(output.data)[at(output.strides, n, c, o)] =
          store_value<T>(static_cast<Compute<T>>(sum));
    }
  };
  parallel_for(0, p.batch * channels * positions, grain(p.in_channels * count(p.kernel)), run);
}

// Whether input `i` of a dimension is seen through tap `t`, and by which output.
bool seen_by(const Convolution& p, size_t d, int64_t i, int64_t t, int64_t* o) {
  const int64_t scaled = i + p.padding[d] - t * p.dilation[d];
  *o = scaled / p.stride[d];
  return scaled >= 0 && scaled % p.stride[d] == 0 && *o < p.output[d];
}

template <typename T>
void transposed(const Convolution& p, const ImagesRef& output, const ImagesRef& weight,
                const void* bias, const MutableImagesRef& input) {
  const Operand<T> y = operand<T>(output);
  const Operand<T> w = operand<T>(weight);
  const int64_t positions = count(p.input);
  const int64_t channels = p.groups * p.in_channels;
  const Range taps[3] = {{0, p.kernel[0]}, {0, p.kernel[1]}, {0, p.kernel[2]}};
  const auto run = [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      const int64_t n = index / positions / channels;
      const int64_t c = index / positions % channels;
      const int64_t first = c / p.in_channels * p.out_channels;
      const Extent i = position(index % positions, p.input);
      Sum<T> sum{};
      for (int64_t k = 0; k < p.out_channels; ++k) {
        each(taps, [&](const Extent& t) {
          Extent o;
          if (seen_by(p, 0, i[0], t[0], &o[0]) && seen_by(p, 1, i[1], t[1], &o[1]) &&
              seen_by(p, 2, i[2], t[2], &o[2])) {
            add_product(y(n, first + k, o), w(first + k, c % p.in_channels, t), &sum);
          }
        });
      }
      sum = static_cast<Sum<T>>(sum + bias_of<T>(bias, c));
      static_cast<T*>(input.data)[at(input.strides, n, c, i)] =
          store_value<T>(static_cast<Compute<T>>(sum));
    }
  };
  parallel_for(0, p.batch * channels * positions, grain(p.out_channels * count(p.kernel)), run);
}

template <typename T>
void for_weight(const Convolution& p, const ImagesRef& input, const ImagesRef& output,
                const MutableImagesRef& weight) {
  const Operand<T> x = operand<T>(input);
  const Operand<T> y = operand<T>(output);
  const int64_t taps = count(p.kernel);
  const auto run = [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      const int64_t c = index / taps / p.in_channels;
      const int64_t k = index / taps % p.in_channels;
      const int64_t from = c / p.out_channels * p.in_channels + k;
      const Extent t = position(index % taps, p.kernel);
      const Range outputs[3] = {outputs_of(p, 0, t[0]), outputs_of(p, 1, t[1]),
                                outputs_of(p, 2, t[2])};
      Sum<T> sum{};
      for (int64_t n = 0; n < p.batch; ++n) {
        each(outputs,
             [&](const Extent& o) { add_product(x(n, from, seen(p, o, t)), y(n, c, o), &sum); });
      }
      static_cast<T*>(weight.data)[at(weight.strides, c, k, t)] =
          store_value<T>(static_cast<Compute<T>>(sum));
    }
  };
  parallel_for(0, p.groups * p.out_channels * p.in_channels * taps,
               grain(p.batch * count(p.output)), run);
}

template <typename F>
void by_dtype(DType dtype, F&& function) {
  kernels::by_real_dtype(dtype, "convolution", [&](auto value) {
    if constexpr (std::is_same_v<decltype(value), bool>) {
      fail(ErrorKind::NotImplemented, "convolution", "not implemented for 'Bool'");
    } else {
      function(value);
    }
  });
}

}  // namespace

void convolve(const Convolution& problem, const ImagesRef& input, const ImagesRef& weight,
              const void* bias, const MutableImagesRef& output) {
  by_dtype(problem.dtype, [&]<typename T>(T) { forward<T>(problem, input, weight, bias, output); });
}

void convolve_transposed(const Convolution& problem, const ImagesRef& output,
                         const ImagesRef& weight, const void* bias, const MutableImagesRef& input) {
  by_dtype(problem.dtype,
           [&]<typename T>(T) { transposed<T>(problem, output, weight, bias, input); });
}

void convolve_for_weight(const Convolution& problem, const ImagesRef& input,
                         const ImagesRef& output, const MutableImagesRef& weight) {
  by_dtype(problem.dtype, [&]<typename T>(T) { for_weight<T>(problem, input, output, weight); });
}

}  // namespace rushlight::direct
