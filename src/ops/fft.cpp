// The three transforms that all of rushlight.fft is made of, over any dimensions.
#include "kernels/fft.h"

#include <rushlight/generated/functions.h>

#include <algorithm>
#include <cmath>

#include "kernels/copy.h"
#include "ops/gradient.h"
#include "ops/operator.h"

namespace rushlight {
namespace {

// What `normalization` means.
enum Normalization : int64_t { kNone = 0, kByRoot = 1, kBySize = 2 };

double scale_of(int64_t normalization, IntArrayRef sizes, IntArrayRef dims) {
  double count = 1;
  for (int64_t dim : dims) {
    count *= static_cast<double>(sizes[static_cast<size_t>(dim)]);
  }
  return normalization == kNone ? 1.0 : normalization == kByRoot ? 1 / std::sqrt(count) : 1 / count;
}

DType complex_of(DType real) {
  return real == DType::Float64 ? DType::Complex128 : DType::Complex64;
}

void check_complex(const Tensor& self) {
  if (!self.is_complex()) {
    fail(ErrorKind::Runtime, "",
         "Only supports complex dtypes, but found: ", scalar_type_name(self.dtype()));
  }
}

void check_real(const Tensor& self) {
  if (!self.is_floating_point()) {
    fail(ErrorKind::Runtime, "",
         "Only supports floating-point dtypes, but found: ", scalar_type_name(self.dtype()));
  }
  if (self.dtype() != DType::Float32 && self.dtype() != DType::Float64) {
    fail(ErrorKind::Runtime, "", "Unsupported dtype ", scalar_type_name(self.dtype()));
  }
}

IntList wrap_dims(const Tensor& self, IntArrayRef dims, std::string_view op) {
  IntList wrapped;
  for (int64_t dim : dims) {
    wrapped.push_back(wrap_dim(dim, self.dim(), op));
  }
  return wrapped;
}

IntList wrap_real_dims(const Tensor& self, IntArrayRef dims, std::string_view op) {
  if (dims.empty()) {
    fail(ErrorKind::Runtime, op, "expected at least one dimension in `dim`, got none");
  }
  return wrap_dims(self, dims, op);
}

// A fresh result. In memory the transformed dimensions come last, the real one last of all
// (`real`); otherwise they follow one another as those of the argument do.
Tensor make_result(const Tensor& self, IntArrayRef dims, bool real, IntArrayRef sizes,
                   DType dtype) {
  const auto among = [](IntArrayRef list, int64_t dim) {
    return std::find(list.begin(), list.end(), dim) != list.end();
  };
  const IntArrayRef last = real ? dims.last(1) : IntArrayRef();
  const auto place = [&](int64_t dim) { return among(last, dim) ? 2 : among(dims, dim) ? 1 : 0; };
  IntList order;
  for (int64_t dim = 0; dim < self.dim(); ++dim) {
    order.push_back(dim);
  }
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return place(a) != place(b) ? place(a) < place(b) : self.stride(a) > self.stride(b);
  });
  IntList strides(sizes.size(), 1);
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    const auto dim = static_cast<size_t>(order[i]);
    strides[dim] = stride;
    stride *= std::max<int64_t>(sizes[dim], 1);
  }
  return make_strided(sizes, strides, dtype, self.device());
}

// The lines of a tensor along `dim`; real strides of complex tensors are twice their own.
struct Along {
  IntList strides;
  int64_t step = 0;

  Along(const Tensor& tensor, int64_t dim) {
    const int64_t by = tensor.is_complex() ? 2 : 1;
    for (int64_t i = 0; i < tensor.dim(); ++i) {
      if (i == dim) {
        step = by * tensor.stride(i);
      } else {
        strides.push_back(by * tensor.stride(i));
      }
    }
  }
};

// Calls function(lines) for the lines of length n from `in` to `out`, along `dim`.
template <typename T, typename F>
void with_lines(const Tensor& in, const Tensor& out, int64_t dim, int64_t n, double scale,
                F&& function) {
  const Along from(in, dim);
  const Along to(out, dim);
  IntList sizes(out.sizes());
  sizes.erase(static_cast<size_t>(dim));
  function(kernels::FftLines<T>{n, static_cast<T>(scale), static_cast<const T*>(in.data()),
                                static_cast<T*>(out.data()), from.step, to.step, sizes,
                                from.strides, to.strides});
}

template <typename F>
void with_precision(DType dtype, F&& function) {
  if (real_dtype(dtype) == DType::Float32) {
    function(float{});
  } else {
    function(double{});
  }
}

void transform_complex(const Tensor& in, const Tensor& out, IntArrayRef dims, bool forward,
                       double scale) {
  with_precision(in.dtype(), [&](auto kind) {
    using T = decltype(kind);
    Tensor from = in;
    for (size_t i = dims.size(); i-- > 0;) {
      const int64_t n = out.sizes()[static_cast<size_t>(dims[i])];
      with_lines<T>(from, out, dims[i], n, i == 0 ? scale : 1.0,
                    [&](const auto& lines) { kernels::fft_complex<T>(lines, forward); });
      from = out;
    }
  });
}

Tensor c2c(const Tensor& self, IntArrayRef given, int64_t normalization, bool forward) {
  check_complex(self);
  const IntList dims = wrap_dims(self, given, "_fft_c2c");
  const Tensor made = make_result(self, dims, false, self.sizes(), self.dtype());
  if (self.is_meta() || self.numel() == 0) {
    return made;
  }
  if (dims.empty()) {
    kernels::copy(made, self);
    return made;
  }
  transform_complex(self, made, dims, forward, scale_of(normalization, self.sizes(), dims));
  return made;
}

Tensor r2c(const Tensor& self, IntArrayRef given, int64_t normalization, bool onesided) {
  check_real(self);
  const IntList dims = wrap_real_dims(self, given, "_fft_r2c");
  IntList sizes(self.sizes());
  const int64_t last = dims.back();
  const int64_t n = self.size(last);
  if (onesided) {
    sizes[static_cast<size_t>(last)] = n / 2 + 1;
  }
  const Tensor made = make_result(self, dims, true, sizes, complex_of(self.dtype()));
  if (self.is_meta() || self.numel() == 0) {
    return made;
  }
  const double scale = scale_of(normalization, self.sizes(), dims);
  with_precision(self.dtype(), [&](auto kind) {
    using T = decltype(kind);
    with_lines<T>(self, made, last, n, scale,
                  [&](const auto& lines) { kernels::fft_from_real<T>(lines, !onesided); });
  });
  const IntArrayRef others = IntArrayRef(dims).first(dims.size() - 1);
  if (!others.empty()) {
    transform_complex(made, made, others, true, 1.0);
  }
  return made;
}

Tensor c2r(const Tensor& self, IntArrayRef given, int64_t normalization, int64_t last_size) {
  check_complex(self);
  const IntList dims = wrap_real_dims(self, given, "_fft_c2r");
  const int64_t last = dims.back();
  IntList sizes(self.sizes());
  sizes[static_cast<size_t>(last)] = last_size;
  if (last_size < 1 || self.size(last) != last_size / 2 + 1) {
    fail(ErrorKind::Runtime, "_fft_c2r", "expected last_dim_size n >= 1 where dimension ", last,
         " of self has n / 2 + 1 elements, got n = ", last_size, " and ", self.size(last),
         " elements");
  }
  const Tensor made = make_result(self, dims, true, sizes, real_dtype(self.dtype()));
  if (self.is_meta() || made.numel() == 0) {
    return made;
  }
  Tensor from = self;
  const IntArrayRef others = IntArrayRef(dims).first(dims.size() - 1);
  if (!others.empty()) {
    from = make_result(self, dims, true, self.sizes(), self.dtype());
    transform_complex(self, from, others, false, 1.0);
  }
  const double scale = scale_of(normalization, sizes, dims);
  with_precision(self.dtype(), [&](auto kind) {
    using T = decltype(kind);
    with_lines<T>(from, made, last, last_size, scale,
                  [&](const auto& lines) { kernels::fft_to_real<T>(lines); });
  });
  return made;
}

// The elements that stand for a conjugate beside themselves, of a line of n, times `factor`.
Tensor scale_paired(const Tensor& one_sided, int64_t dim, int64_t n, double factor) {
  IntList shape(static_cast<size_t>(one_sided.dim()), 1);
  shape.push_back(1);
  const int64_t count = n / 2 + 1;
  shape[static_cast<size_t>(dim)] = count;
  const Tensor pairs = view_as_real(one_sided);
  const Tensor at = arange(Scalar(count), TensorOptions(DType::Int64).device(pairs.device()));
  const Tensor alone = logical_or(eq(at, Scalar(0)), eq(mul(at, Scalar(2)), Scalar(n)));
  const Tensor factors = masked_fill(full({count}, Scalar(factor), pairs.options()), alone, 1);
  return view_as_complex(contiguous(mul(pairs, reshape(factors, shape))));
}

void c2c_gradient(Gradient& g) {
  g.set(0, _fft_c2c(g.grad(), g.ints(1), g.integer(2), !g.flag(3)));
}

void r2c_gradient(Gradient& g) {
  const IntArrayRef dims = g.ints(1);
  if (!g.flag(3)) {
    const Tensor whole = _fft_c2c(g.grad(), dims, g.integer(2), false);
    g.set(0, select(view_as_real(whole), -1, 0));
    return;
  }
  const int64_t last = wrap_dim(dims.back(), g.grad().dim(), "_fft_r2c");
  const int64_t n = g.sizes(0)[static_cast<size_t>(last)];
  const Tensor halved = scale_paired(g.grad(), last, n, 0.5);
  g.set(0, _fft_c2r(halved, dims, g.integer(2), n));
}

void c2r_gradient(Gradient& g) {
  const IntArrayRef dims = g.ints(1);
  const Tensor made = _fft_r2c(g.grad(), dims, g.integer(2), true);
  const int64_t last = wrap_dim(dims.back(), made.dim(), "_fft_c2r");
  g.set(0, scale_paired(made, last, g.integer(3), 2));
}

}  // namespace

RUSHLIGHT_OPERATORS(fft) {
  op("_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor",
     kFunction | kOut)
      .doc(
          "The discrete Fourier transform over `dim`. normalization: 0 none, 1 by the root of the "
          "number of elements, 2 by their number.")
      .kernel(c2c)
      .gradient("", c2c_gradient)
      .node("FftC2CBackward0");
  op("_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor",
     kFunction | kOut)
      .doc(
          "The forward transform of real numbers over `dim`; `onesided`: the first n / 2 + 1 "
          "elements of the last one. See _fft_c2c.")
      .kernel(r2c)
      .gradient("", r2c_gradient)
      .node("FftR2CBackward0");
  op("_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor",
     kFunction | kOut)
      .doc("The backward transform to real numbers from the n / 2 + 1 elements of _fft_r2c.")
      .kernel(c2r)
      .gradient("", c2r_gradient)
      .node("FftC2RBackward0");
}

}  // namespace rushlight
