// Tensors whose elements follow from their position.
#pragma once

#include <rushlight/tensor.h>

#include "kernels/element_type.h"
#include "runtime/parallel.h"

namespace rushlight::kernels {

// target[i] = function(i), converted; `target` is contiguous. `function` returns an int64_t or a
// double.
template <typename F>
void fill_by_position(const Tensor& target, std::string_view op, F&& function) {
  if (target.is_meta()) {
    return;
  }
  by_real_dtype(target.dtype(), op, [&]<typename T>(T) {
    T* to = static_cast<T*>(target.data());
    parallel_for(0, target.numel(), 16384, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        to[i] = store_value<T>(static_cast<Compute<T>>(function(i)));
      }
    });
  });
}

}  // namespace rushlight::kernels
