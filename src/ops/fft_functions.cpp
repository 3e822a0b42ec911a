// rushlight.fft: transforms of one, two or any number of dimensions, padded or cut to given sizes.
#include <rushlight/generated/functions.h>

#include <algorithm>

#include "ops/gradient.h"
#include "ops/operator.h"

namespace rushlight {
namespace {

enum Normalization : int64_t { kNone = 0, kByRoot = 1, kBySize = 2 };

int64_t normalization_of(std::optional<std::string_view> norm, bool forward) {
  if (!norm || *norm == "backward") {
    return forward ? kNone : kBySize;
  }
  if (*norm == "forward") {
    return forward ? kBySize : kNone;
  }
  if (*norm == "ortho") {
    return kByRoot;
  }
  fail(ErrorKind::Runtime, "", "Invalid normalization mode: \"", *norm, "\"");
}

// Integers become the default float.
Tensor promoted(const Tensor& self) {
  if (is_integral(self.dtype(), true)) {
    return to(self, default_dtype());
  }
  const bool wide =
      real_dtype(self.dtype()) == DType::Float32 || real_dtype(self.dtype()) == DType::Float64;
  if (!wide) {
    fail(ErrorKind::Runtime, "", "Unsupported dtype ", scalar_type_name(self.dtype()));
  }
  return self;
}

Tensor as_complex_numbers(const Tensor& self) {
  return self.is_complex() ? self : complex(self, zeros_like(self));
}

Tensor conjugated(const Tensor& self) {
  if (!self.is_complex()) {
    return self;
  }
  const Tensor pairs = view_as_real(self);
  const Tensor signs = stack({select(pairs, -1, 0), neg(select(pairs, -1, 1))}, -1);
  return view_as_complex(signs);
}

void refuse_complex(const Tensor& self, std::string_view op, std::string_view kind) {
  if (self.is_complex()) {
    fail(ErrorKind::Runtime, "", op, " expects a ", kind, " input tensor, but got ",
         scalar_type_name(self.dtype()));
  }
}

void check_points(int64_t n) {
  if (n < 1) {
    fail(ErrorKind::Runtime, "", "Invalid number of data points (", n, ") specified");
  }
}

// Cut off at the end, or filled up with zeros, to n elements.
Tensor resized(const Tensor& self, int64_t dim, int64_t n) {
  const int64_t size = self.size(dim);
  if (size > n) {
    return narrow(self, dim, 0, n);
  }
  if (size == n) {
    return self;
  }
  IntList pad(static_cast<size_t>(2 * (self.dim() - dim)), 0);
  pad.back() = n - size;
  return constant_pad_nd(self, pad, Scalar(0));
}

int64_t wrap_one(const Tensor& self, int64_t dim) {
  if (self.dim() == 0) {
    fail(ErrorKind::Index, "", "Dimension specified as ", dim, " but tensor has no dimensions");
  }
  return wrap_dim(dim, self.dim(), "");
}

using MaybeNorm = std::optional<std::string_view>;

// fft and ifft. Of real numbers the transform's other half is known.
template <bool kForward>
Tensor one_complex(const Tensor& self, std::optional<int64_t> n, int64_t dim, MaybeNorm norm) {
  const Tensor x = promoted(self);
  const int64_t at = wrap_one(x, dim);
  const int64_t size = n.value_or(x.size(at));
  check_points(size);
  const Tensor line = resized(x, at, size);
  const int64_t normalization = normalization_of(norm, kForward);
  if (x.is_complex()) {
    return _fft_c2c(line, {at}, normalization, kForward);
  }
  const Tensor made = _fft_r2c(line, {at}, normalization, false);
  return kForward ? made : conjugated(made);
}

// rfft and ihfft: the same but for the direction, which is that of the norm too.
template <bool kForward>
Tensor one_from_real(const Tensor& self, std::optional<int64_t> n, int64_t dim, MaybeNorm norm) {
  refuse_complex(self, kForward ? "rfft" : "ihfft", "real");
  const Tensor x = promoted(self);
  const int64_t at = wrap_one(x, dim);
  const int64_t size = n.value_or(x.size(at));
  check_points(size);
  const Tensor made = _fft_r2c(resized(x, at, size), {at}, normalization_of(norm, kForward), true);
  return kForward ? made : conjugated(made);
}

// irfft and hfft.
template <bool kForward>
Tensor one_to_real(const Tensor& self, std::optional<int64_t> n, int64_t dim, MaybeNorm norm) {
  const Tensor x = as_complex_numbers(promoted(self));
  const int64_t at = wrap_one(x, dim);
  const int64_t size = n.value_or(2 * (x.size(at) - 1));
  check_points(size);
  const Tensor line = resized(x, at, size / 2 + 1);
  return _fft_c2r(kForward ? conjugated(line) : line, {at}, normalization_of(norm, kForward), size);
}

// Dimensions and the sizes that they are to have.
struct Extent {
  IntList dims;
  IntList sizes;
};

IntList unique_dims(const Tensor& self, IntArrayRef dims) {
  IntList wrapped;
  for (int64_t dim : dims) {
    wrapped.push_back(wrap_one(self, dim));
  }
  for (size_t i = 0; i < wrapped.size(); ++i) {
    if (std::count(wrapped.begin(), wrapped.end(), wrapped[i]) > 1) {
      fail(ErrorKind::Runtime, "", "FFT dims must be unique");
    }
  }
  return wrapped;
}

Extent extent_of(const Tensor& self, std::optional<IntArrayRef> s, std::optional<IntArrayRef> dim) {
  Extent extent;
  if (dim) {
    extent.dims = unique_dims(self, *dim);
    if (s && s->size() != dim->size()) {
      fail(ErrorKind::Runtime, "", "When given, dim and shape arguments must have the same length");
    }
  } else {
    const int64_t count = s ? static_cast<int64_t>(s->size()) : self.dim();
    if (count > self.dim()) {
      fail(ErrorKind::Runtime, "", "Got shape with ", count, " values but input tensor only has ",
           self.dim(), " dimensions.");
    }
    for (int64_t i = self.dim() - count; i < self.dim(); ++i) {
      extent.dims.push_back(i);
    }
  }
  for (size_t i = 0; i < extent.dims.size(); ++i) {
    extent.sizes.push_back(s && (*s)[i] != -1 ? (*s)[i] : self.size(extent.dims[i]));
    check_points(extent.sizes[i]);
  }
  return extent;
}

Tensor resized_all(const Tensor& self, const Extent& extent) {
  Tensor made = self;
  for (size_t i = 0; i < extent.dims.size(); ++i) {
    made = resized(made, extent.dims[i], extent.sizes[i]);
  }
  return made;
}

void check_any(const Extent& extent, std::string_view op) {
  if (extent.dims.empty()) {
    fail(ErrorKind::Runtime, "", op, " must transform at least one axis");
  }
}

template <bool kForward>
Tensor all_complex(const Tensor& self, std::optional<IntArrayRef> s, std::optional<IntArrayRef> dim,
                   MaybeNorm norm) {
  const Tensor x = promoted(self);
  const Extent extent = extent_of(x, s, dim);
  const Tensor block = resized_all(x, extent);
  const int64_t normalization = normalization_of(norm, kForward);
  if (x.is_complex() || extent.dims.empty()) {
    return _fft_c2c(as_complex_numbers(block), extent.dims, normalization, kForward);
  }
  // The dimension whose elements lie closest is that of real lines.
  IntList dims = extent.dims;
  std::stable_sort(dims.begin(), dims.end(),
                   [&](int64_t a, int64_t b) { return block.stride(a) > block.stride(b); });
  const Tensor made = _fft_r2c(block, dims, normalization, false);
  return kForward ? made : conjugated(made);
}

template <bool kForward>
Tensor all_from_real(const Tensor& self, std::optional<IntArrayRef> s,
                     std::optional<IntArrayRef> dim, MaybeNorm norm) {
  constexpr std::string_view op = kForward ? "rfftn" : "ihfftn";
  refuse_complex(self, op, "real-valued");
  const Tensor x = promoted(self);
  const Extent extent = extent_of(x, s, dim);
  check_any(extent, op);
  const Tensor made =
      _fft_r2c(resized_all(x, extent), extent.dims, normalization_of(norm, kForward), true);
  return kForward ? made : conjugated(made);
}

template <bool kForward>
Tensor all_to_real(const Tensor& self, std::optional<IntArrayRef> s, std::optional<IntArrayRef> dim,
                   MaybeNorm norm) {
  const Tensor x = as_complex_numbers(promoted(self));
  Extent extent = extent_of(x, s, dim);
  check_any(extent, kForward ? "hfftn" : "irfftn");
  const bool given = s && s->back() != -1;
  const int64_t last = given ? s->back() : 2 * (x.size(extent.dims.back()) - 1);
  check_points(last);
  extent.sizes.back() = last / 2 + 1;
  const Tensor block = resized_all(x, extent);
  return _fft_c2r(kForward ? conjugated(block) : block, extent.dims,
                  normalization_of(norm, kForward), last);
}

// With `dim` as it is.
template <Tensor (*function)(const Tensor&, std::optional<IntArrayRef>, std::optional<IntArrayRef>,
                             MaybeNorm)>
Tensor in_plane(const Tensor& self, std::optional<IntArrayRef> s, IntArrayRef dim, MaybeNorm norm) {
  return function(self, s, dim, norm);
}

Tensor shifted(const Tensor& self, std::optional<IntArrayRef> dim, bool back) {
  IntList dims;
  IntList shifts;
  if (dim) {
    for (int64_t d : *dim) {
      dims.push_back(wrap_dim(d, self.dim(), ""));
    }
  } else {
    for (int64_t d = 0; d < self.dim(); ++d) {
      dims.push_back(d);
    }
  }
  for (int64_t d : dims) {
    shifts.push_back((self.size(d) + (back ? 1 : 0)) / 2);
  }
  return roll(self, shifts, dims);
}

void check_frequencies(const TensorOptions& options, std::string_view op) {
  const DType dtype = options.dtype_.value_or(default_dtype());
  if (!is_floating(dtype)) {
    fail(ErrorKind::Runtime, "", op, " requires a floating point or complex dtype");
  }
}

Tensor frequencies(int64_t n, double d, const TensorOptions& options) {
  check_frequencies(options, "fftfreq");
  if (n < 0) {
    fail(ErrorKind::Runtime, "", "Trying to create tensor with negative dimension ", n, ": [", n,
         "]");
  }
  const int64_t positive = (n + 1) / 2;
  const Tensor low =
      arange(Scalar(positive), options.dtype(options.dtype_.value_or(default_dtype())));
  const Tensor high = arange(Scalar(positive - n), Scalar(0), low.options());
  return mul(cat({low, high}, 0), Scalar(1.0 / (static_cast<double>(n) * d)));
}

Tensor real_frequencies(int64_t n, double d, const TensorOptions& options) {
  check_frequencies(options, "rfftfreq");
  const DType dtype = options.dtype_.value_or(default_dtype());
  const Tensor at = arange(Scalar(n / 2 + 1), options.dtype(dtype));
  return mul(at, Scalar(1.0 / (static_cast<double>(n) * d)));
}

void check_complex_out(const Invocation& inv) {
  if (inv.form == Form::Out && !inv.results[0].tensor().is_complex()) {
    fail(ErrorKind::Runtime, "", inv.op->name().substr(4),
         " expects a complex output tensor, but got ",
         scalar_type_name(inv.results[0].tensor().dtype()));
  }
}

void check_real_out(const Invocation& inv) {
  if (inv.form == Form::Out && !inv.results[0].tensor().is_floating_point()) {
    fail(ErrorKind::Runtime, "", inv.op->name().substr(4),
         " expects a floating point output tensor, but got ",
         scalar_type_name(inv.results[0].tensor().dtype()));
  }
}

}  // namespace

RUSHLIGHT_OPERATORS(fft_functions) {
  op("fft_fft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", kFunction | kOut)
      .doc(
          "X[k] = sum over j of x[j] exp(-2 pi i j k / n). norm: \"backward\", \"ortho\", "
          "\"forward\".")
      .composition(one_complex<true>)
      .check(check_complex_out)
      .casts_out();
  op("fft_ifft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
     kFunction | kOut)
      .doc("The reverse of fft.")
      .composition(one_complex<false>)
      .check(check_complex_out)
      .casts_out();
  op("fft_rfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
     kFunction | kOut)
      .doc("The first n / 2 + 1 elements of the transform of real numbers.")
      .composition(one_from_real<true>)
      .check(check_complex_out)
      .casts_out();
  op("fft_irfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
     kFunction | kOut)
      .doc("The n real numbers, 2 (size - 1) by default, whose rfft this is.")
      .composition(one_to_real<false>)
      .check(check_real_out)
      .casts_out();
  op("fft_hfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
     kFunction | kOut)
      .doc(
          "The real transform of what is given by its first n / 2 + 1 elements, the others their "
          "conjugates.")
      .composition(one_to_real<true>)
      .check(check_real_out)
      .casts_out();
  op("fft_ihfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
     kFunction | kOut)
      .doc("The reverse of hfft.")
      .composition(one_from_real<false>)
      .check(check_complex_out)
      .casts_out();
  op("fft_fftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
     kFunction | kOut)
      .doc("fft over several dimensions, all by default.")
      .composition(all_complex<true>)
      .check(check_complex_out)
      .casts_out();
  op("fft_ifftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
     kFunction | kOut)
      .doc("The reverse of fftn.")
      .composition(all_complex<false>)
      .check(check_complex_out)
      .casts_out();
  op("fft_rfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
     kFunction | kOut)
      .doc("rfft over the last of several dimensions, fft over the others.")
      .composition(all_from_real<true>)
      .check(check_complex_out)
      .casts_out();
  op("fft_irfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
     kFunction | kOut)
      .doc("The reverse of rfftn.")
      .composition(all_to_real<false>)
      .check(check_real_out)
      .casts_out();
  op("fft_hfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
     kFunction | kOut)
      .doc("hfft over the last of several dimensions, fft over the others.")
      .composition(all_to_real<true>)
      .check(check_real_out)
      .casts_out();
  op("fft_ihfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
     kFunction | kOut)
      .doc("The reverse of hfftn.")
      .composition(all_from_real<false>)
      .check(check_complex_out)
      .casts_out();
  op("fft_fft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor",
     kFunction | kOut)
      .doc("fft over two dimensions.")
      .composition(in_plane<all_complex<true>>)
      .check(check_complex_out)
      .casts_out();
  op("fft_ifft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor",
     kFunction | kOut)
      .doc("The reverse of fft2.")
      .composition(in_plane<all_complex<false>>)
      .check(check_complex_out)
      .casts_out();
  op("fft_rfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor",
     kFunction | kOut)
      .doc("rfftn over two dimensions.")
      .composition(in_plane<all_from_real<true>>)
      .check(check_complex_out)
      .casts_out();
  op("fft_irfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor",
     kFunction | kOut)
      .doc("The reverse of rfft2.")
      .composition(in_plane<all_to_real<false>>)
      .check(check_real_out)
      .casts_out();
  op("fft_hfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor",
     kFunction | kOut)
      .doc("hfftn over two dimensions.")
      .composition(in_plane<all_to_real<true>>)
      .check(check_real_out)
      .casts_out();
  op("fft_ihfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor",
     kFunction | kOut)
      .doc("The reverse of hfft2.")
      .composition(in_plane<all_from_real<false>>)
      .check(check_complex_out)
      .casts_out();
  op("fft_fftfreq(int n, float d=1., *, ScalarType? dtype=None, Layout? layout=None, "
     "Device? device=None, bool? pin_memory=None) -> Tensor",
     kFunction | kOut)
      .doc(
          "The frequencies of fft's n elements, d apart in time: 0 and up, then the negative ones.")
      .composition(frequencies)
      .not_differentiable();
  op("fft_rfftfreq(int n, float d=1., *, ScalarType? dtype=None, Layout? layout=None, "
     "Device? device=None, bool? pin_memory=None) -> Tensor",
     kFunction | kOut)
      .doc("The frequencies of rfft's n / 2 + 1 elements, d apart in time.")
      .composition(real_frequencies)
      .not_differentiable();
  op("fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor", kFunction)
      .doc("Rolls the first element to the middle, of all dimensions by default.")
      .composition([](const Tensor& self, std::optional<IntArrayRef> dim) -> Tensor {
        return shifted(self, dim, false);
      });
  op("fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor", kFunction)
      .doc("The reverse of fftshift.")
      .composition([](const Tensor& self, std::optional<IntArrayRef> dim) -> Tensor {
        return shifted(self, dim, true);
      });
}

}  // namespace rushlight
