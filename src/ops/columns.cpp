// Sliding windows as columns, and back: nn.functional.unfold and fold.
#include "kernels/columns.h"

#include <rushlight/generated/functions.h>

#include "kernels/copy.h"
#include "ops/gradient.h"
#include "ops/operator.h"
#include "tensor/geometry.h"

namespace rushlight {
namespace {

using kernels::WindowAxis;
using kernels::WindowSpace;

struct Sliding {
  std::string_view op;
  IntArrayRef kernel;
  IntArrayRef dilation;
  IntArrayRef padding;
  IntArrayRef stride;
};

void check_pair(const Sliding& s, IntArrayRef given, std::string_view what, int64_t least) {
  if (given.size() != 2) {
    fail(ErrorKind::Runtime, "", s.op, ": It is expected ", what, " equals to 2, but got size ",
         static_cast<int64_t>(given.size()));
  }
  if (given[0] < least || given[1] < least) {
    fail(ErrorKind::Runtime, "", s.op, ": ", what, " should be ",
         least == 0 ? "non-negative" : "greater than zero", ", but got ", given);
  }
}

// The windows over planes of `sizes`, (C, H, W) or (N, C, H, W).
WindowSpace sliding_space(const Sliding& s, IntArrayRef sizes) {
  check_pair(s, s.kernel, "kernel_size", 1);
  check_pair(s, s.dilation, "dilation", 1);
  check_pair(s, s.padding, "padding", 0);
  check_pair(s, s.stride, "stride", 1);
  WindowSpace space;
  const size_t rank = sizes.size();
  space.batch = rank == 4 ? sizes[0] : 1;
  space.channels = sizes[rank - 3];
  for (size_t i = 0; i < 2; ++i) {
    WindowAxis& axis = space.axis[i + 1];
    axis.size = sizes[rank - 2 + i];
    axis.kernel = s.kernel[i];
    axis.dilation = s.dilation[i];
    axis.pad = s.padding[i];
    axis.stride = s.stride[i];
    const int64_t reach = checked_multiply(axis.dilation, axis.kernel - 1, s.op) + 1;
    const int64_t room = checked_add(axis.size, checked_multiply(2, axis.pad, s.op), s.op) - reach;
    axis.count = room < 0 ? 0 : room / axis.stride + 1;
    if (axis.count < 1) {
      fail(ErrorKind::Runtime, "", s.op, ": Given input with spatial size (", sizes[rank - 2], ", ",
           sizes[rank - 1], "), kernel_size=", s.kernel, ", dilation=", s.dilation,
           ", padding=", s.padding, ", stride=", s.stride,
           ", calculated shape of the array of sliding blocks has no element along dimension ",
           static_cast<int64_t>(i), ", but its components must be at least one.");
    }
  }
  return space;
}

bool has_elements(IntArrayRef sizes, bool batched) {
  for (size_t d = batched ? 1 : 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) {
      return false;
    }
  }
  return true;
}

void check_movable(std::string_view op, const Tensor& self) {
  if (!is_floating(self.dtype()) && !is_complex(self.dtype()) && self.dtype() != DType::Bool) {
    fail(ErrorKind::NotImplemented, "", "\"", op, "_out_cpu\" not implemented for '",
         scalar_type_name(self.dtype()), "'");
  }
}

Tensor to_columns(const Tensor& self, IntArrayRef kernel, IntArrayRef dilation, IntArrayRef padding,
                  IntArrayRef stride) {
  const int64_t rank = self.dim();
  if ((rank != 3 && rank != 4) || !has_elements(self.sizes(), rank == 4)) {
    fail(ErrorKind::Runtime, "",
         "im2col: Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other "
         "non-zero dimensions for input, but got: ",
         self.sizes());
  }
  const WindowSpace space =
      sliding_space({"im2col", kernel, dilation, padding, stride}, self.sizes());
  check_movable("im2col", self);
  const int64_t rows =
      checked_multiply(space.channels, checked_multiply(kernel[0], kernel[1], "im2col"), "im2col");
  const IntList sizes =
      rank == 4 ? IntList{space.batch, rows, space.out_plane()} : IntList{rows, space.out_plane()};
  const Tensor made = make_tensor(sizes, self.dtype(), self.device());
  if (!made.is_meta() && made.numel() != 0) {
    kernels::planes_to_columns(made, kernels::as_contiguous(self), space);
  }
  return made;
}

Tensor from_columns(const Tensor& self, IntArrayRef output, IntArrayRef kernel,
                    IntArrayRef dilation, IntArrayRef padding, IntArrayRef stride) {
  const Sliding sliding{"col2im", kernel, dilation, padding, stride};
  check_pair(sliding, output, "output_size", 1);
  check_pair(sliding, kernel, "kernel_size", 1);
  const int64_t rank = self.dim();
  if ((rank != 2 && rank != 3) || !has_elements(self.sizes(), rank == 3)) {
    fail(ErrorKind::Runtime, "",
         "col2im: Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and "
         "non-zero dimensions for input, but got: ",
         self.sizes());
  }
  const int64_t taps = checked_multiply(kernel[0], kernel[1], "col2im");
  const int64_t rows = self.size(-2);
  if (rows % taps != 0) {
    fail(ErrorKind::Runtime, "",
         "col2im: Expected size of input's dimension 1 to be divisible by the product of "
         "kernel_size, but got input.size(1)=",
         rows, " and kernel_size=", kernel);
  }
  IntList sizes{rows / taps, output[0], output[1]};
  if (rank == 3) {
    sizes = IntList{self.size(0), rows / taps, output[0], output[1]};
  }
  const WindowSpace space = sliding_space(sliding, sizes);
  if (self.size(-1) != space.out_plane()) {
    fail(ErrorKind::Runtime, "", "col2im: Given output_size=", output, ", kernel_size=", kernel,
         ", dilation=", dilation, ", padding=", padding, ", stride=", stride,
         ", expected size of input's dimension 2 to match the calculated number of sliding blocks ",
         space.axis[1].count, " * ", space.axis[2].count, " = ", space.out_plane(),
         ", but got input.size(2)=", self.size(-1));
  }
  check_movable("col2im", self);
  const Tensor made = make_tensor(sizes, self.dtype(), self.device());
  if (!made.is_meta() && made.numel() != 0) {
    kernels::columns_to_planes(made, kernels::as_contiguous(self), space);
  }
  return made;
}

}  // namespace

RUSHLIGHT_OPERATORS(columns) {
  op("im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) "
     "-> Tensor",
     kNN | kOut)
      .doc("The patches of (N, C, H, W) under a sliding window, as columns (N, C kh kw, L).")
      .kernel(to_columns)
      .gradient("",
                [](Gradient& g) {
                  const IntList sizes(g.sizes(0).last(2));
                  g.set(0, col2im(g.grad(), sizes, g.ints(1), g.ints(2), g.ints(3), g.ints(4)));
                })
      .node("Im2ColBackward0");
  op("col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, "
     "int[2] padding, int[2] stride) -> Tensor",
     kNN | kOut)
      .doc("Adds the columns of im2col back to where their patches were.")
      .kernel(from_columns)
      .gradient("",
                [](Gradient& g) {
                  g.set(0, im2col(g.grad(), g.ints(2), g.ints(3), g.ints(4), g.ints(5)));
                })
      .node("Col2ImBackward0");
}

}  // namespace rushlight
