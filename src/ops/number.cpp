// Arithmetic less often wanted: of integers, of powers, of parts of numbers.
#include <rushlight/generated/functions.h>

#include <cmath>
#include <numbers>

#include "kernels/copy.h"
#include "kernels/element_type.h"
#include "ops/elementwise.h"
#include "ops/gradient.h"
#include "ops/output_rule.h"
#include "ops/promotion.h"

namespace rushlight {

using loop::Expr;

namespace {

uint64_t magnitude(int64_t x) {
  return x < 0 ? uint64_t{0} - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
}

int64_t common_divisor(int64_t a, int64_t b) {
  uint64_t x = magnitude(a);
  uint64_t y = magnitude(b);
  while (y != 0) {
    x %= y;
    std::swap(x, y);
  }
  return static_cast<int64_t>(x);
}

int64_t common_multiple(int64_t a, int64_t b) {
  const int64_t divisor = common_divisor(a, b);
  return divisor == 0 ? 0
                      : static_cast<int64_t>(magnitude(static_cast<int64_t>(
                            static_cast<uint64_t>(a / divisor) * static_cast<uint64_t>(b))));
}

// Pairs of integers, broadcast and promoted.
Tensor of_integers(const Tensor& self, const Tensor& other, std::string_view op,
                   int64_t (*function)(int64_t, int64_t)) {
  const DType dtype = result_type(self, other);
  if (!is_integral(dtype, false)) {
    fail(ErrorKind::NotImplemented, "", "\"", op, "_cpu\" not implemented for '",
         scalar_type_name(dtype), "'");
  }
  const IntList shape = broadcast_shapes(self.sizes(), other.sizes(), op);
  const Tensor a = contiguous(to(to(expand(self, shape), dtype), DType::Int64));
  const Tensor b = contiguous(to(to(expand(other, shape), dtype), DType::Int64));
  const Tensor made = make_tensor(shape, DType::Int64, a.device());
  if (!made.is_meta()) {
    const auto* left = static_cast<const int64_t*>(a.data());
    const auto* right = static_cast<const int64_t*>(b.data());
    auto* out = static_cast<int64_t*>(made.data());
    for (int64_t i = 0; i < made.numel(); ++i) {
      out[i] = function(left[i], right[i]);
    }
  }
  return kernels::as_dtype(made, dtype);
}

std::tuple<Tensor, Tensor> mantissa_exponent(const Tensor& self) {
  if (!self.is_floating_point()) {
    fail(ErrorKind::Runtime, "", "torch.frexp() only supports floating-point dtypes");
  }
  const Tensor wide = contiguous(to(self, DType::Float64));
  const Tensor mantissa = make_tensor(self.sizes(), DType::Float64, self.device());
  const Tensor exponent = make_tensor(self.sizes(), DType::Int32, self.device());
  if (!self.is_meta()) {
    for (int64_t i = 0; i < self.numel(); ++i) {
      int power = 0;
      static_cast<double*>(mantissa.data())[i] =
          std::frexp(static_cast<const double*>(wide.data())[i], &power);
      static_cast<int32_t*>(exponent.data())[i] = power;
    }
  }
  return {kernels::as_dtype(mantissa, self.dtype()), exponent};
}

// The dtype of doubles for this one.
DType double_of(DType dtype) {
  return is_complex(dtype) ? DType::Complex128 : DType::Float64;
}

Tensor double_power(const Tensor& self, const Tensor& exponent) {
  const DType dtype = double_of(result_type(self, exponent));
  return pow(to(self, dtype), to(exponent, dtype));
}

Scalar double_number(const Scalar& number, DType dtype) {
  return is_complex(dtype) ? Scalar(number.to_complex()) : Scalar(number.to_double());
}

Tensor double_power_number(const Tensor& self, Scalar exponent) {
  const DType dtype = double_of(exponent.is_complex() ? DType::Complex64 : self.dtype());
  return pow(to(self, dtype), double_number(exponent, dtype));
}

Tensor double_power_of_number(Scalar self, const Tensor& exponent) {
  const DType dtype = double_of(self.is_complex() ? DType::Complex64 : exponent.dtype());
  return pow(double_number(self, dtype), to(exponent, dtype));
}

// What is written must hold doubles.
void double_output(const Invocation& inv, const Tensor& made) {
  const DType given = inv.results[0].tensor().dtype();
  if (given != made.dtype()) {
    const bool base = inv.form == Form::Inplace;
    fail(ErrorKind::Runtime, "",
         base ? "the base given to float_power_"
              : "the output given to "
                "float_power",
         " has dtype ", scalar_type_name(given),
         " but the operation's result "
         "requires dtype ",
         scalar_type_name(made.dtype()));
  }
}

// In double, by factors that are each a power that a double has; the greatest comes last, so that
// what is rounded is the result alone.
Tensor times_power_of_two(const Tensor& self, const Tensor& exponent) {
  constexpr double kLeast = -1022;
  constexpr double kMost = 1023;
  const Tensor whole = clamp(exponent, Scalar(3 * kLeast), Scalar(3 * kMost));
  const Tensor last = clamp(whole, Scalar(kLeast), Scalar(kMost));
  const Tensor rest = sub(whole, last);
  const Tensor middle = clamp(rest, Scalar(kLeast), Scalar(kMost));
  Tensor made = mul(to(self, DType::Float64), exp2(sub(rest, middle)));
  made = mul(mul(made, exp2(middle)), exp2(last));
  return to(made, self.dtype());
}

Tensor ldexp_of(const Tensor& self, const Tensor& other) {
  if (self.is_floating_point() && is_integral(other.dtype(), false)) {
    return times_power_of_two(self, to(other, DType::Float64));
  }
  const bool wider = self.is_complex() && other.is_floating_point();
  return mul(self, pow(Scalar(2.0), wider ? to(other, real_dtype(self.dtype())) : other));
}

Tensor kron_of(const Tensor& self, const Tensor& other) {
  const int64_t rank = std::max(self.dim(), other.dim());
  IntList left;
  IntList right;
  IntList shape;
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t own = d - (rank - self.dim());
    const int64_t its = d - (rank - other.dim());
    left.push_back(own < 0 ? 1 : self.size(own));
    left.push_back(1);
    right.push_back(1);
    right.push_back(its < 0 ? 1 : other.size(its));
    shape.push_back(checked_multiply(left[static_cast<size_t>(2 * d)], right.back(), "kron"));
  }
  return reshape(mul(reshape(self, left), reshape(other, right)), shape);
}

Tensor sum_to(const Tensor& self, IntArrayRef size) {
  if (!size.empty() && self.sizes() == size) {
    return self;
  }
  const auto rank = static_cast<int64_t>(size.size());
  const int64_t lead = self.dim() - rank;
  bool fits = lead >= 0;
  IntList dims;
  for (int64_t d = 0; fits && d < self.dim(); ++d) {
    const int64_t wanted = d < lead ? 1 : size[static_cast<size_t>(d - lead)];
    fits = d < lead || wanted == 1 || wanted == self.size(d);
    if (d < lead || (wanted == 1 && self.size(d) != 1)) {
      dims.push_back(d);
    }
  }
  if (!fits) {
    fail(ErrorKind::Runtime, "", "size {", size, "} is not expandable to size {", self.sizes(),
         "}.");
  }
  if (!dims.empty()) {
    return reshape(sum(self, dims, true), size);
  }
  return is_integral(self.dtype(), true) && self.dtype() != DType::Int64 ? to(self, DType::Int64)
                                                                         : clone(self);
}

}  // namespace

RUSHLIGHT_OPERATORS(number) {
  op("gcd(Tensor self, Tensor other) -> Tensor", kUnary)
      .doc("The greatest common divisor of each pair of integers.")
      .kernel([](const Tensor& self, const Tensor& other) -> Tensor {
        return of_integers(self, other, "gcd", common_divisor);
      })
      .not_differentiable()
      .casts_out();
  op("lcm(Tensor self, Tensor other) -> Tensor", kUnary)
      .doc("The least common multiple of each pair of integers.")
      .kernel([](const Tensor& self, const Tensor& other) -> Tensor {
        return of_integers(self, other, "lcm", common_multiple);
      })
      .not_differentiable()
      .casts_out();
  op("heaviside(Tensor self, Tensor values) -> Tensor", kUnary)
      .doc("0 below zero, 1 above, `values` at zero.")
      .composition([](const Tensor& self, const Tensor& values) -> Tensor {
        if (self.dtype() != values.dtype()) {
          fail(ErrorKind::Runtime, "",
               "heaviside is not yet implemented for tensors with different dtypes.");
        }
        return _heaviside(self, values);
      });
  op("_heaviside(Tensor self, Tensor values) -> Tensor", kInternal)
      .doc("heaviside of one dtype.")
      .elementwise(Rule::Promote,
                   [](Elementwise& e) {
                     Expr x = e.in(0);
                     if (e.dtype() == DType::Bool) {
                       return x | e.in(1);
                     }
                     Expr zero = loop::constant(0, e.dtype());
                     Expr side = loop::select(x > zero, loop::constant(1, e.dtype()), zero);
                     return loop::select(x == zero, e.in(1), side);
                   })
      .gradient("", [](Gradient&) {
        fail(ErrorKind::Runtime, "", "derivative for heaviside is not implemented");
      });
  op("ldexp.Tensor(Tensor self, Tensor other) -> Tensor", kUnary)
      .doc("self * 2^other.")
      .composition(ldexp_of)
      .casts_out()
      .node("LdexpBackward0");
  op("frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)", kFunction | kMethod | kOut)
      .doc("self as mantissa * 2^exponent, the mantissa in [1/2, 1).")
      .kernel(mantissa_exponent)
      .gradient("result1", [](Gradient& g) {
        if (g.has_grad(0)) {
          g.set(0, div(g.grad(0), exp2(to(g.result(1), g.grad(0).dtype()))));
        }
      });
  op("float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
     kFunction | kMethod | kInplace | kOut)
      .doc("self to the power of exponent, in double precision.")
      .body(Kind::Composition, ruled_body(box(double_power), double_output));
  op("float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
     kFunction | kMethod | kInplace | kOut)
      .doc("self to the power of a number, in double precision.")
      .body(Kind::Composition, ruled_body(box(double_power_number), double_output));
  op("float_power.Scalar(Scalar self, Tensor exponent) -> Tensor", kFunction | kOut)
      .doc("A number to the power of exponent, in double precision.")
      .body(Kind::Composition, ruled_body(box(double_power_of_number), double_output));
  op("kron(Tensor self, Tensor other) -> Tensor", kFunction | kMethod | kOut)
      .doc("The Kronecker product.")
      .composition(kron_of)
      .casts_out()
      .node("UnsafeViewBackward0");
  op("sum_to_size(Tensor self, SymInt[] size) -> Tensor", kMethod)
      .doc("Sums the dimensions that expand would have repeated; the tensor itself where none was.")
      .composition(sum_to);
  op("isreal(Tensor self) -> Tensor", kFunction | kMethod)
      .doc("Whether the imaginary part of each element is zero.")
      .composition([](const Tensor& self) -> Tensor {
        return self.is_complex()
                   ? eq(imag(self), Scalar(0))
                   : ones(self.sizes(), TensorOptions(DType::Bool).device(self.device()));
      });
  op("conj(Tensor(a) self) -> Tensor(a)", kFunction | kMethod)
      .doc("The conjugates, as a copy; the tensor itself, where it is real.")
      .composition(
          [](const Tensor& self) -> Tensor { return self.is_complex() ? _conj(self) : self; });
  op("_conj(Tensor self) -> Tensor", kInternal)
      .doc("The conjugates.")
      .complex(ComplexRule::Own)
      .elementwise(Rule::Promote, [](Elementwise& e) { return loop::conj(e.in(0)); })
      .node("ConjBackward0");
  op("conj_physical(Tensor self) -> Tensor", kFunction | kMethod | kInplace | kOut)
      .doc("The conjugates, as a copy where they differ.")
      .composition(
          [](const Tensor& self) -> Tensor { return self.is_complex() ? _conj(self) : self; });
  op("resolve_conj(Tensor(a) self) -> Tensor(a)", kFunction)
      .doc("The tensor itself: conjugates are never left to do.")
      .composition([](const Tensor& self) -> Tensor { return self; });
  op("resolve_neg(Tensor(a) self) -> Tensor(a)", kFunction)
      .doc("The tensor itself: negation is never left to do.")
      .composition([](const Tensor& self) -> Tensor { return self; });
  op("angle(Tensor self) -> Tensor", kFunction | kMethod | kOut)
      .real_of_complex()
      .doc("The argument of each number: 0, or pi below zero.")
      .elementwise(Rule::Float, [](Elementwise& e) {
        Expr x = e.in(0);
        if (is_complex(e.dtype())) {
          return loop::binary(loop::Op::Atan2, loop::imag(x), loop::real(x));
        }
        Expr zero = loop::constant(0, e.dtype());
        Expr side = loop::where(x < 0.0, loop::constant(std::numbers::pi, e.dtype()), zero);
        return loop::where(loop::isnan(x), std::nan(""), side);
      });
}

}  // namespace rushlight
