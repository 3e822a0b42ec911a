#include "kernels/index_masked.h"

#include <cstring>

#include "kernels/element.h"
#include "ops/iteration.h"

namespace rushlight::kernels {
namespace {

// The element to fill with travels to the kernel as two scalar words.
template <typename T>
T fill_element(const loop::KernelArgs* args) {
  T value;
  std::memcpy(&value, args->scalars, sizeof(T));
  return value;
}

// By bits, for branches on elements of a mask are foreseen badly.
template <typename T>
T chosen(uint8_t mask, T value, T old) {
  if constexpr (std::is_same_v<T, Bytes16>) {
    return {chosen(mask, value.low, old.low), chosen(mask, value.high, old.high)};
  } else {
    const T all = static_cast<T>(-static_cast<T>(mask != 0));
    return static_cast<T>((value & all) | (old & ~all));
  }
}

// `to` may be `from`: then the compiler knows that they do not overlap otherwise.
template <typename T>
void fill_line(T* __restrict to, int64_t to_stride, const T* from, int64_t from_stride,
               const uint8_t* __restrict mask, int64_t mask_stride, int64_t count, T value) {
  if (to_stride != 1 || from_stride != 1 || mask_stride != 1) {
    for (int64_t i = 0; i < count; ++i) {
      to[i * to_stride] = chosen(mask[i * mask_stride], value, from[i * from_stride]);
    }
  } else if (to == from) {
    for (int64_t i = 0; i < count; ++i) {
      to[i] = chosen(mask[i], value, to[i]);
    }
  } else {
    for (int64_t i = 0; i < count; ++i) {
      to[i] = chosen(mask[i], value, from[i]);
    }
  }
}

template <typename T>
void fill_rows(const loop::KernelArgs* args, int64_t begin, int64_t end) {
  const int64_t* to = args->strides[0];
  const int64_t* from = args->strides[1];
  const int64_t* mask = args->strides[2];
  for (int64_t row = begin; row < end; ++row) {
    fill_line(static_cast<T*>(args->buffers[0]) + row * to[0], to[1],
              static_cast<const T*>(args->buffers[1]) + row * from[0], from[1],
              static_cast<const uint8_t*>(args->buffers[2]) + row * mask[0], mask[1],
              args->extents[1], fill_element<T>(args));
  }
}

template <typename T>
void fill_flat(const loop::KernelArgs* args, int64_t begin, int64_t end) {
  const int64_t from = args->strides[1][0];
  const int64_t mask = args->strides[2][0];
  fill_line(static_cast<T*>(args->buffers[0]) + begin * args->strides[0][0], args->strides[0][0],
            static_cast<const T*>(args->buffers[1]) + begin * from, from,
            static_cast<const uint8_t*>(args->buffers[2]) + begin * mask, mask, end - begin,
            fill_element<T>(args));
}

}  // namespace

void masked_fill(const Tensor& target, const Tensor& self, const Tensor& mask,
                 const Tensor& number) {
  if (target.is_meta() || target.numel() == 0) {
    return;
  }
  Iteration space(target.sizes());
  space.add(*target.impl());
  space.add(*self.impl());
  space.add(*mask.impl());
  space.fold();
  uint64_t words[2] = {0, 0};
  std::memcpy(words, number.data(), static_cast<size_t>(number.element_size()));
  by_element_size(target.element_size(), [&]<typename T>(T) {
    run_iteration(space, space.flat() ? fill_flat<T> : fill_rows<T>, words, 0.7);
  });
}

}  // namespace rushlight::kernels
