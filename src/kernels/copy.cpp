#include "kernels/copy.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "kernels/convert.h"
#include "kernels/copy_transposed.h"
#include "kernels/element.h"
#include "ops/iteration.h"
#include "runtime/parallel.h"
#include "runtime/streaming.h"
#include "tensor/scalar_range.h"

namespace rushlight::kernels {
namespace {

constexpr int64_t kGrainBytes = 256 * 1024;

#if defined(__SSE2__)
// The elements of a vector in reverse order.
template <typename T>
__m128i reversed(__m128i x) {
  if constexpr (sizeof(T) == 16) {
    return x;
  } else if constexpr (sizeof(T) == 8) {
    return _mm_shuffle_epi32(x, 0x4E);
  } else if constexpr (sizeof(T) == 4) {
    return _mm_shuffle_epi32(x, 0x1B);
  } else {
    if constexpr (sizeof(T) == 1) {
      x = _mm_or_si128(_mm_slli_epi16(x, 8), _mm_srli_epi16(x, 8));
    }
    x = _mm_shufflehi_epi16(_mm_shufflelo_epi16(x, 0x1B), 0x1B);
    return _mm_shuffle_epi32(x, 0x4E);
  }
}
#endif

// to[i] = from[-i].
template <typename T>
void copy_reversed(T* to, const T* from, int64_t count) {
  int64_t i = 0;
#if defined(__SSE2__)
  constexpr int64_t width = 16 / sizeof(T);
  for (; i + width <= count; i += width) {
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from - i - width + 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), reversed<T>(x));
  }
#endif
  for (; i < count; ++i) {
    to[i] = from[-i];
  }
}

template <typename T>
void copy_line(T* to, int64_t to_stride, const T* from, int64_t from_stride, int64_t count) {
  if (to_stride == 1 && from_stride == 1) {
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(T));
  } else if (to_stride == 1 && from_stride == 0) {
    std::fill(to, to + count, *from);
  } else if (to_stride == 1 && from_stride == -1) {
    copy_reversed(to, from, count);
  } else if (to_stride == 1) {
    for (int64_t i = 0; i < count; ++i) {
      to[i] = from[i * from_stride];
    }
  } else {
    for (int64_t i = 0; i < count; ++i) {
      to[i * to_stride] = from[i * from_stride];
    }
  }
}

// The two kernels have the form of compiled ones, so that the driver of element-wise operators
// runs them.
template <typename T>
void copy_flat(const loop::KernelArgs* args, int64_t begin, int64_t end) {
  const int64_t from_stride = args->strides[1][0];
  copy_line(static_cast<T*>(args->buffers[0]) + begin, 1,
            static_cast<const T*>(args->buffers[1]) + begin * from_stride, from_stride,
            end - begin);
}

template <typename T>
void copy_rows(const loop::KernelArgs* args, int64_t begin, int64_t end) {
  const int64_t* to_strides = args->strides[0];
  const int64_t* from_strides = args->strides[1];
  for (int64_t row = begin; row < end; ++row) {
    copy_line(static_cast<T*>(args->buffers[0]) + row * to_strides[0], to_strides[1],
              static_cast<const T*>(args->buffers[1]) + row * from_strides[0], from_strides[1],
              args->extents[1]);
  }
}

void copy_bytes(const Tensor& target, const Tensor& source) {
  Iteration space(target.sizes());
  space.add(*target.impl());
  space.add(*source.impl());
  space.fold();
  if (copy_transposed(space)) {
    return;
  }
  by_element_size(target.element_size(), [&]<typename T>(T) {
    const double cost = static_cast<double>(sizeof(T)) * 16384 / kGrainBytes;
    const bool flat = space.flat() && space.operands[0].strides[0] == 1;
    run_iteration(space, flat ? copy_flat<T> : copy_rows<T>, nullptr, std::max(cost, 0.05));
  });
}

void copy_block(const Tensor& target, const Tensor& source) {
  auto* to = static_cast<char*>(target.data());
  const auto* from = static_cast<const char*>(source.data());
  const int64_t bytes = target.nbytes();
  if (to == from) {
    return;
  }
  if (bytes <= kGrainBytes) {
    std::memmove(to, from, static_cast<size_t>(bytes));
    return;
  }
  const bool streamed = bytes >= kStreamedBytes;
  parallel_for(0, bytes, kGrainBytes, [&](int64_t begin, int64_t end) {
    const auto count = static_cast<size_t>(end - begin);
    if (streamed) {
      stream_copy(to + begin, from + begin, count);
      finish_streams();
    } else {
      std::memcpy(to + begin, from + begin, count);
    }
  });
}

}  // namespace

void copy(const Tensor& target, const Tensor& source) {
  if (target.numel() == 0 || target.is_meta() || source.is_meta()) {
    return;
  }
  if (target.dtype() != source.dtype()) {
    convert(target, source);
  } else if (target.is_contiguous() && source.is_contiguous() && target.numel() == source.numel()) {
    copy_block(target, source);
  } else {
    copy_bytes(target, source);
  }
}

void zero(const Tensor& target) {
  if (target.is_meta() || target.numel() == 0) {
    return;
  }
  if (!target.is_contiguous()) {
    fill(target, Scalar(false));
    return;
  }
  auto* to = static_cast<char*>(target.data());
  parallel_for(0, target.nbytes(), kGrainBytes, [&](int64_t begin, int64_t end) {
    std::memset(to + begin, 0, static_cast<size_t>(end - begin));
  });
}

void zero_line(const Tensor& target, int64_t offset, int64_t stride, int64_t count) {
  const int64_t item = target.element_size();
  auto* to = storage_data(target.storage()) + offset * item;
  if (stride == 1) {
    std::memset(to, 0, static_cast<size_t>(count * item));
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    std::memset(to + i * stride * item, 0, static_cast<size_t>(item));
  }
}

void fill(const Tensor& target, Scalar value) {
  check_fits(value, target.dtype());
  const Tensor one = make_scalar_tensor(value, target.dtype());
  if (!target.is_meta() && target.numel() != 0) {
    copy_bytes(target, one);
  }
}

Tensor contiguous_copy(const Tensor& source) {
  Tensor made = make_tensor(source.sizes(), source.dtype(), source.device());
  copy(made, source);
  return made;
}

Tensor as_contiguous(const Tensor& source) {
  return source.is_contiguous() ? source : contiguous_copy(source);
}

Tensor as_dtype(const Tensor& source, DType dtype) {
  if (source.dtype() == dtype) {
    return source;
  }
  Tensor made = make_tensor(source.sizes(), dtype, source.device());
  copy(made, source);
  return made;
}

Tensor as_truths(const Tensor& source) {
  if (source.dtype() != DType::Bool) {
    return source;
  }
  return as_dtype(
      make_view(source, source.sizes(), source.strides(), source.storage_offset(), DType::UInt8),
      DType::Bool);
}

Tensor make_filled(IntArrayRef sizes, const Scalar& value, DType dtype, Device device) {
  Tensor made = make_tensor(sizes, dtype, device);
  fill(made, value);
  return made;
}

Tensor make_zeros(IntArrayRef sizes, DType dtype, Device device) {
  Tensor made = make_tensor(sizes, dtype, device);
  zero(made);
  return made;
}

}  // namespace rushlight::kernels
