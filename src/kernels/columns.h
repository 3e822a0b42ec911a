// Sliding windows of planes as columns, and back.
#pragma once

#include "kernels/window.h"

namespace rushlight::kernels {

// columns[n, (c, y, x of the window), window] = the elements of planes under each window of a
// row-major tensor, zero where it leaves them. Two dimensions, any dtype: bytes are moved.
void planes_to_columns(const Tensor& columns, const Tensor& input, const WindowSpace& space);

// The adjoint: planes of zeros to which each element of the columns is added where it came from,
// in the order of the window's positions, then of the windows. Halves are added up in f32; bool by
// `or`. Error(NotImplemented) for integers.
void columns_to_planes(const Tensor& made, const Tensor& columns, const WindowSpace& space);

}  // namespace rushlight::kernels
