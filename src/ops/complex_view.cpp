// Complex numbers as pairs of real ones: views and copies, without arithmetic.
#include <rushlight/generated/functions.h>

#include "kernels/copy.h"
#include "ops/gradient.h"
#include "ops/operator.h"
#include "ops/views.h"

namespace rushlight {
namespace {

DType complex_of(DType real) {
  return real == DType::Float64 ? DType::Complex128 : DType::Complex64;
}

Tensor as_real(const Tensor& self) {
  if (!self.is_complex()) {
    fail(ErrorKind::Runtime, "", "view_as_real is only supported for complex tensors");
  }
  IntList sizes(self.sizes());
  IntList strides;
  for (int64_t stride : self.strides()) {
    strides.push_back(2 * stride);
  }
  sizes.push_back(2);
  strides.push_back(1);
  return make_view(self, sizes, strides, 2 * self.storage_offset(), real_dtype(self.dtype()));
}

void check_pairs(const Tensor& self) {
  if (self.dtype() == DType::Float16) {
    fail(ErrorKind::NotImplemented, "view_as_complex", "complex32 is not offered");
  }
  if (self.dtype() != DType::Float32 && self.dtype() != DType::Float64) {
    fail(ErrorKind::Runtime, "",
         "view_as_complex is only supported for half, float and double tensors, but got a tensor "
         "of scalar type: ",
         scalar_type_name(self.dtype()));
  }
  if (self.dim() == 0) {
    fail(ErrorKind::Runtime, "", "Input tensor must have one or more dimensions");
  }
  if (self.size(-1) != 2) {
    fail(ErrorKind::Runtime, "", "Tensor must have a last dimension of size 2");
  }
  if (self.stride(-1) != 1) {
    fail(ErrorKind::Runtime, "", "Tensor must have a last dimension with stride 1");
  }
  for (int64_t dim = 0; dim + 1 < self.dim(); ++dim) {
    if (self.stride(dim) % 2 != 0) {
      fail(ErrorKind::Runtime, "",
           "Tensor must have a stride divisible by 2 for all but last dimension");
    }
  }
  if (self.storage_offset() % 2 != 0) {
    fail(ErrorKind::Runtime, "", "Tensor must have a storage_offset divisible by 2");
  }
}

Tensor as_complex(const Tensor& self) {
  check_pairs(self);
  IntList sizes(self.sizes());
  IntList strides;
  sizes.pop_back();
  for (int64_t dim = 0; dim + 1 < self.dim(); ++dim) {
    strides.push_back(self.stride(dim) / 2);
  }
  return make_view(self, sizes, strides, self.storage_offset() / 2, complex_of(self.dtype()));
}

void check_parts(const Tensor& real, const Tensor& imag) {
  const auto fits = [](DType dtype) { return is_floating(dtype) && dtype != DType::BFloat16; };
  if (!fits(real.dtype()) || !fits(imag.dtype())) {
    fail(ErrorKind::Runtime, "",
         "Expected both inputs to be Half, Float or Double tensors but got ",
         scalar_type_name(real.dtype()), " and ", scalar_type_name(imag.dtype()));
  }
  if (real.dtype() != imag.dtype()) {
    fail(ErrorKind::Runtime, "", "Expected object of scalar type ", scalar_type_name(real.dtype()),
         " but got scalar type ", scalar_type_name(imag.dtype()), " for second argument");
  }
  if (!(real.device() == imag.device())) {
    fail(ErrorKind::Runtime, "", "Tensor on device ", imag.device().to_string(),
         " is not on the expected device ", real.device().to_string(),
         "! It is the imaginary part, or the angle");
  }
}

void refuse_half(const Tensor& real, std::string_view op) {
  if (real.dtype() == DType::Float16) {
    fail(ErrorKind::NotImplemented, op, "not implemented for 'Half': complex32 is not offered");
  }
}

Tensor complex_of_parts(const Tensor& real, const Tensor& imag) {
  check_parts(real, imag);
  refuse_half(real, "complex");
  const DType dtype = complex_of(real.dtype());
  const IntList sizes = broadcast_shapes(real.sizes(), imag.sizes(), "complex");
  const Tensor made = make_tensor(sizes, dtype, real.device());
  if (!made.is_meta()) {
    const Tensor pairs = as_real(made);
    kernels::copy(views::select(pairs, -1, 0), views::expand(real, sizes));
    kernels::copy(views::select(pairs, -1, 1), views::expand(imag, sizes));
  }
  return made;
}

// Checked before any arithmetic, which would promote two dtypes to one.
Tensor complex_of_polar(const Tensor& abs, const Tensor& angle) {
  check_parts(abs, angle);
  refuse_half(abs, "polar");
  return complex(mul(abs, cos(angle)), mul(abs, sin(angle)));
}

void check_complex_out(const Invocation& inv) {
  const DType dtype = complex_of(inv.arguments[0].tensor().dtype());
  if (inv.form == Form::Out && inv.results[0].tensor().dtype() != dtype) {
    check_parts(inv.arguments[0].tensor(), inv.arguments[1].tensor());
    fail(ErrorKind::Runtime, "", "Expected object of scalar type ", scalar_type_name(dtype),
         " but got scalar type ", scalar_type_name(inv.results[0].tensor().dtype()),
         " for argument 'out'");
  }
}

void refuse_real(const Tensor& self, std::string_view op) {
  if (!self.is_complex()) {
    fail(ErrorKind::Runtime, "", op, " is not implemented for tensors with non-complex dtypes.");
  }
}

}  // namespace

RUSHLIGHT_OPERATORS(complex_view) {
  op("view_as_real(Tensor(a) self) -> Tensor(a)", kFunction)
      .doc("The parts of complex numbers as a last dimension of size 2.")
      .view(as_real)
      .gradient("", [](Gradient& g) { g.set(0, view_as_complex(contiguous(g.grad()))); });
  op("view_as_complex(Tensor(a) self) -> Tensor(a)", kFunction)
      .doc("A last dimension of size 2 as the parts of complex numbers.")
      .view(as_complex)
      .gradient("", [](Gradient& g) { g.set(0, view_as_real(g.grad())); });
  op("view_as_real_copy(Tensor self) -> Tensor", kFunction | kOut)
      .doc("What view_as_real shows, as a copy.")
      .composition([](const Tensor& self) -> Tensor {
        return clone(view_as_real(self), MemoryFormat::Contiguous);
      });
  op("view_as_complex_copy(Tensor self) -> Tensor", kFunction | kOut)
      .doc("What view_as_complex shows, as a copy.")
      .composition([](const Tensor& self) -> Tensor {
        return clone(view_as_complex(self), MemoryFormat::Contiguous);
      });
  op("complex(Tensor real, Tensor imag) -> Tensor", kFunction | kOut)
      .doc("Complex numbers of given parts.")
      .kernel(complex_of_parts)
      .gradient("",
                [](Gradient& g) {
                  const Tensor pairs = view_as_real(g.grad());
                  g.set(0, select(pairs, -1, 0));
                  g.set(1, select(pairs, -1, 1));
                })
      .check(check_complex_out);
  op("polar(Tensor abs, Tensor angle) -> Tensor", kFunction | kOut)
      .doc("Complex numbers of given absolute values and angles (radians).")
      .composition(complex_of_polar)
      .node("PolarBackward0")
      .check(check_complex_out);
  op("real(Tensor(a) self) -> Tensor(a)", kFunction)
      .doc("The real parts: a view; the tensor itself, where it is real.")
      .composition([](const Tensor& self) -> Tensor {
        return self.is_complex() ? select(view_as_real(self), -1, 0) : self;
      });
  op("imag(Tensor(a) self) -> Tensor(a)", kFunction)
      .doc("The imaginary parts: a view.")
      .composition([](const Tensor& self) -> Tensor {
        refuse_real(self, "imag");
        return select(view_as_real(self), -1, 1);
      });
}

}  // namespace rushlight
