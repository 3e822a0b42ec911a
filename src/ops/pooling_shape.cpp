#include "kernels/copy.h"
#include "ops/pooling.h"
#include "tensor/geometry.h"

namespace rushlight::pooling {
namespace {

using kernels::WindowAxis;
using kernels::WindowSpace;

// One number a dimension.
IntList spread(const Windows& w, IntArrayRef given, std::string_view what) {
  const auto dims = static_cast<size_t>(w.dims);
  if (given.size() == dims) {
    return IntList(given);
  }
  if (given.size() != 1) {
    fail(ErrorKind::Runtime, "", w.op, ": ", what, " must either be a single int, or a tuple of ",
         w.dims, " ints");
  }
  return one_each(given, w.dims);
}

void expect_positive(const Windows& w, const IntList& values, std::string_view what) {
  for (int64_t value : values) {
    if (value <= 0) {
      fail(ErrorKind::Runtime, "", w.op, ": ", what, " must be greater than zero, but got ",
           values);
    }
  }
}

int64_t floor_div(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

int64_t window_count(const WindowAxis& axis, bool ceil_mode) {
  const int64_t reach =
      checked_add(checked_multiply(axis.dilation, axis.kernel - 1, "pool"), 1, "pool");
  const int64_t room = axis.size + 2 * axis.pad - reach + (ceil_mode ? axis.stride - 1 : 0);
  int64_t count = floor_div(room, axis.stride) + 1;
  // The last window begins inside the input or the padding before it.
  if (ceil_mode && (count - 1) * axis.stride >= axis.size + axis.pad) {
    --count;
  }
  return count;
}

void check_rank(std::string_view op, int dims, IntArrayRef sizes) {
  const auto rank = static_cast<int64_t>(sizes.size());
  bool valid = rank == dims + 1 || rank == dims + 2;
  for (int64_t d = rank == dims + 2 ? 1 : 0; d < rank; ++d) {
    valid = valid && sizes[static_cast<size_t>(d)] != 0;
  }
  if (!valid) {
    fail(ErrorKind::Runtime, "", op, ": Expected ", dims + 1, "D or ", dims + 2,
         "D (batch mode) tensor with optional 0 dim batch size for input, whose other dimensions "
         "have positive length, but got:",
         sizes);
  }
}

}  // namespace

void check_dims(std::string_view op, int64_t dims) {
  if (dims < 1 || dims > 3) {
    fail(ErrorKind::Runtime, op, "expected 1 to 3 spatial dimensions, got ", dims);
  }
}

void check_gradient(std::string_view op, const Tensor& grad, IntArrayRef sizes, DType dtype) {
  if (!(grad.sizes() == sizes) || grad.dtype() != dtype) {
    fail(ErrorKind::Runtime, op, "expected grad_output of shape ", sizes, " and dtype ", dtype,
         ", got ", grad.sizes(), " and ", grad.dtype());
  }
}

IntList one_each(IntArrayRef given, int dims) {
  return given.size() == 1 ? IntList(static_cast<size_t>(dims), given[0]) : IntList(given);
}

WindowSpace plane_space(int dims, IntArrayRef in, IntArrayRef out) {
  WindowSpace space;
  const size_t rank = in.size();
  const auto spatial = static_cast<size_t>(dims);
  space.channels = in[rank - spatial - 1];
  space.batch = rank == spatial + 2 ? in[0] : 1;
  for (size_t i = 0; i < spatial; ++i) {
    WindowAxis& axis = space.axis[3 - spatial + i];
    axis.size = in[rank - spatial + i];
    axis.count = out[out.size() - spatial + i];
  }
  return space;
}

WindowSpace regular_space(const Windows& w, IntArrayRef sizes) {
  check_dims(w.op, w.dims);
  const IntList kernel = spread(w, w.kernel, "kernel_size");
  const IntList stride = w.stride.empty() ? kernel : spread(w, w.stride, "stride");
  const IntList padding = spread(w, w.padding, "padding");
  const IntList dilation = spread(w, w.dilation, "dilation");
  expect_positive(w, kernel, "kernel_size");
  expect_positive(w, stride, "stride");
  expect_positive(w, dilation, "dilation");
  for (size_t i = 0; i < kernel.size(); ++i) {
    if (padding[i] < 0) {
      fail(ErrorKind::Runtime, "", w.op, ": pad must be non-negative, but got pad: ", padding[i]);
    }
    const int64_t reach = checked_multiply(dilation[i], kernel[i] - 1, w.op) + 1;
    if (padding[i] > reach / 2) {
      fail(ErrorKind::Runtime, "", w.op,
           ": pad should be at most half of effective kernel size, but got pad=", padding[i],
           ", kernel_size=", kernel[i], " and dilation=", dilation[i]);
    }
  }
  check_rank(w.op, w.dims, sizes);
  WindowSpace space = plane_space(w.dims, sizes, sizes);
  for (size_t i = 0; i < kernel.size(); ++i) {
    WindowAxis& axis = space.axis[3 - kernel.size() + i];
    axis.kernel = kernel[i];
    axis.stride = stride[i];
    axis.pad = padding[i];
    axis.dilation = dilation[i];
    axis.count = window_count(axis, w.ceil_mode);
    if (axis.count < 1) {
      fail(ErrorKind::Runtime, "", w.op, ": Given input size: ", sizes,
           ", calculated output size along its dimension ",
           static_cast<int64_t>(sizes.size() - kernel.size() + i), ": ", axis.count,
           ". Output size is too small");
    }
  }
  return space;
}

WindowSpace adaptive_space(std::string_view op, int dims, IntArrayRef sizes, IntArrayRef output) {
  if (static_cast<int>(output.size()) != dims) {
    fail(ErrorKind::Runtime, "", op, ": output_size must be ", dims, " numbers, but got ", output);
  }
  for (int64_t size : output) {
    if (size < 0) {
      fail(ErrorKind::Runtime, "", op,
           ": elements of output_size must be greater than or equal to 0 but received ", output,
           " (Trying to create tensor with negative dimension)");
    }
  }
  const auto rank = static_cast<int64_t>(sizes.size());
  if (rank != dims + 1 && rank != dims + 2) {
    fail(ErrorKind::Runtime, "", op, ": Expected ", dims + 1, "D or ", dims + 2,
         "D tensor, but got ", sizes);
  }
  // Averages of no channels are none.
  for (int64_t d = op.starts_with("adaptive_avg") ? rank - dims : 1; d < rank; ++d) {
    if (sizes[static_cast<size_t>(d)] == 0) {
      fail(ErrorKind::Runtime, "", op,
           ": Expected input to have non-zero size for non-batch dimensions, but input has sizes ",
           sizes, " with dimension ", d, " being empty");
    }
  }
  WindowSpace space = plane_space(dims, sizes, output);
  for (WindowAxis& axis : space.axis) {
    axis = WindowAxis::adapted(axis.size, axis.count);
  }
  return space;
}

IntList result_sizes(const WindowSpace& space, int dims, IntArrayRef sizes) {
  IntList made(sizes);
  for (int i = 0; i < dims; ++i) {
    made[made.size() - static_cast<size_t>(dims - i)] = space.axis[3 - dims + i].count;
  }
  return made;
}

MemoryFormat layout_of(const Tensor& tensor) {
  const int64_t rank = tensor.dim();
  if (rank != 4 && rank != 5) {
    return MemoryFormat::Contiguous;
  }
  // Channels, then width, height, depth, then the batch: strides grow in this order.
  const IntArrayRef sizes = tensor.sizes();
  const IntArrayRef strides = tensor.strides();
  int64_t least = 0;
  for (int64_t i = 0; i < rank; ++i) {
    const auto d = static_cast<size_t>(i == 0 ? 1 : (i == rank - 1 ? 0 : rank - i));
    const bool tie = d == 0 && least == strides[1];  // (N, 1, 1, 1) is row-major
    if (sizes[d] == 0 || strides[d] < least || (d == 1 && strides[d] == 0) || tie) {
      return MemoryFormat::Contiguous;
    }
    least = strides[d] * std::max<int64_t>(sizes[d], 1);
  }
  return rank == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
}

Tensor make_in(IntArrayRef sizes, MemoryFormat format, DType dtype, Device device) {
  return is_channels_last(format)
             ? make_strided(sizes, strides_for(sizes, format, "pool"), dtype, device)
             : make_tensor(sizes, dtype, device);
}

Tensor dense_in(const Tensor& tensor, MemoryFormat format) {
  if (tensor.is_contiguous(format)) {
    return tensor;
  }
  const Tensor made = make_in(tensor.sizes(), format, tensor.dtype(), tensor.device());
  if (!made.is_meta() && made.numel() != 0) {
    kernels::copy(made, tensor);
  }
  return made;
}

void expect_float(std::string_view op, const Tensor& tensor) {
  const DType dtype = tensor.dtype();
  if (dtype != DType::Float32 && dtype != DType::Float64 && dtype != DType::Float16 &&
      dtype != DType::BFloat16) {
    fail(ErrorKind::NotImplemented, "", "\"", op, "\" not implemented for '",
         scalar_type_name(dtype), "'");
  }
}

}  // namespace rushlight::pooling
