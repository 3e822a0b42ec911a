#include "kernels/copy.h"

#include <algorithm>
#include <cmath>
#include <cstring>

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

template <typename T>
void copy_line(T* to, int64_t to_stride, const T* from, int64_t from_stride, int64_t count) {
  if (to_stride == 1 && from_stride == 1) {
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(T));
  } else if (to_stride == 1 && from_stride == 0) {
    std::fill(to, to + count, *from);
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
