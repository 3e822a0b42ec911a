// Comparisons, logic and bits.
#include <rushlight/generated/functions.h>

#include "ops/elementwise.h"

namespace rushlight {

using loop::Expr;

namespace {

void expect_integers(Elementwise& e, const char* op) {
  if (is_floating(e.dtype())) {
    fail(ErrorKind::NotImplemented, op, "\"", op, "_cpu\" not implemented for '",
         scalar_type_name(e.dtype()), "': expected bool or integer tensors");
  }
}

void expect_tolerance(const char* name, double value) {
  if (!(value >= 0)) {
    fail(ErrorKind::Runtime, "isclose", name, " must be greater than or equal to zero, but got ",
         value);
  }
}

void expect_shiftable(Elementwise& e, const char* op) {
  expect_integers(e, op);
  if (e.dtype() == DType::Bool) {
    fail(ErrorKind::NotImplemented, op, "\"", op, "_cpu\" not implemented for 'Bool'");
  }
}

}  // namespace

RUSHLIGHT_OPERATORS(comparison) {
  op("eq.Tensor(Tensor self, Tensor other) -> Tensor", kBinary | kLeafOut)
      .complex(ComplexRule::Own)
      .doc("Whether each pair is equal.")
      .elementwise(Rule::Compare, [](Elementwise& e) { return e.in(0) == e.in(1); });
  op("ne.Tensor(Tensor self, Tensor other) -> Tensor", kBinary | kLeafOut)
      .complex(ComplexRule::Own)
      .doc("Whether each pair differs.")
      .elementwise(Rule::Compare, [](Elementwise& e) { return e.in(0) != e.in(1); });
  op("lt.Tensor(Tensor self, Tensor other) -> Tensor", kBinary | kLeafOut)
      .doc("self < other.")
      .elementwise(Rule::Compare, [](Elementwise& e) { return e.in(0) < e.in(1); });
  op("le.Tensor(Tensor self, Tensor other) -> Tensor", kBinary | kLeafOut)
      .doc("self <= other.")
      .elementwise(Rule::Compare, [](Elementwise& e) { return e.in(0) <= e.in(1); });
  op("gt.Tensor(Tensor self, Tensor other) -> Tensor", kBinary | kLeafOut)
      .doc("self > other.")
      .elementwise(Rule::Compare, [](Elementwise& e) { return e.in(0) > e.in(1); });
  op("ge.Tensor(Tensor self, Tensor other) -> Tensor", kBinary | kLeafOut)
      .doc("self >= other.")
      .elementwise(Rule::Compare, [](Elementwise& e) { return e.in(0) >= e.in(1); });
  op("not_equal.Tensor(Tensor self, Tensor other) -> Tensor", kBinary | kLeafOut)
      .complex(ComplexRule::Own)
      .doc("Another name of ne.")
      .elementwise(Rule::Compare, [](Elementwise& e) { return e.in(0) != e.in(1); });
  op("less.Tensor(Tensor self, Tensor other) -> Tensor", kBinary | kLeafOut)
      .doc("Another name of lt.")
      .elementwise(Rule::Compare, [](Elementwise& e) { return e.in(0) < e.in(1); });
  op("less_equal.Tensor(Tensor self, Tensor other) -> Tensor", kBinary | kLeafOut)
      .doc("Another name of le.")
      .elementwise(Rule::Compare, [](Elementwise& e) { return e.in(0) <= e.in(1); });
  op("greater.Tensor(Tensor self, Tensor other) -> Tensor", kBinary | kLeafOut)
      .doc("Another name of gt.")
      .elementwise(Rule::Compare, [](Elementwise& e) { return e.in(0) > e.in(1); });
  op("greater_equal.Tensor(Tensor self, Tensor other) -> Tensor", kBinary | kLeafOut)
      .doc("Another name of ge.")
      .elementwise(Rule::Compare, [](Elementwise& e) { return e.in(0) >= e.in(1); });
  op("logical_and(Tensor self, Tensor other) -> Tensor", kUnary | kLeafOut)
      .complex(ComplexRule::Own)
      .doc("Whether both are non-zero.")
      .elementwise(Rule::Logical, [](Elementwise& e) { return e.in(0) & e.in(1); });
  op("logical_or(Tensor self, Tensor other) -> Tensor", kUnary | kLeafOut)
      .complex(ComplexRule::Own)
      .doc("Whether either is non-zero.")
      .elementwise(Rule::Logical, [](Elementwise& e) { return e.in(0) | e.in(1); });
  op("logical_xor(Tensor self, Tensor other) -> Tensor", kUnary | kLeafOut)
      .complex(ComplexRule::Own)
      .doc("Whether exactly one is non-zero.")
      .elementwise(Rule::Logical, [](Elementwise& e) { return e.in(0) ^ e.in(1); });
  op("bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor", kBinaryEither)
      .doc("Bits set in both.")
      .elementwise(Rule::Promote,
                   [](Elementwise& e) {
                     expect_integers(e, "bitwise_and");
                     return e.in(0) & e.in(1);
                   })
      .not_differentiable();
  op("bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor", kBinaryEither)
      .doc("Bits set in either.")
      .elementwise(Rule::Promote,
                   [](Elementwise& e) {
                     expect_integers(e, "bitwise_or");
                     return e.in(0) | e.in(1);
                   })
      .not_differentiable();
  op("bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor", kBinaryEither)
      .doc("Bits set in exactly one.")
      .elementwise(Rule::Promote,
                   [](Elementwise& e) {
                     expect_integers(e, "bitwise_xor");
                     return e.in(0) ^ e.in(1);
                   })
      .not_differentiable();
  op("bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor", kBinaryEither)
      .doc("self shifted left by other bits; 0 past the width.")
      .elementwise(Rule::Promote,
                   [](Elementwise& e) {
                     expect_shiftable(e, "lshift");
                     return loop::binary(loop::Op::Shl, e.in(0), e.in(1));
                   })
      .not_differentiable();
  op("bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor", kBinaryEither)
      .doc("self shifted right by other bits, keeping the sign.")
      .elementwise(Rule::Promote,
                   [](Elementwise& e) {
                     expect_shiftable(e, "rshift");
                     return loop::binary(loop::Op::Shr, e.in(0), e.in(1));
                   })
      .not_differentiable();
  op("_isclose(Tensor self, Tensor other, float rtol, float atol, bool equal_nan) -> Tensor",
     kInternal)
      .complex(ComplexRule::Own)
      .doc("isclose, without a check of the tolerances.")
      .elementwise(Rule::Compare, [](Elementwise& e) {
        Expr a = e.in(0);
        Expr b = e.in(1);
        Expr equal = a == b;
        if (is_integral(e.dtype(), true)) {
          DType real = DType::Float64;
          Expr gap = loop::abs(loop::cast(a, real) - loop::cast(b, real));
          return equal |
                 (gap <= e.scalar(3, real) + e.scalar(2, real) * loop::abs(loop::cast(b, real)));
        }
        if (e.flag(4)) {
          equal = equal | (loop::isnan(a) & loop::isnan(b));
        }
        Expr gap = loop::abs(a - b);
        const DType real = real_dtype(e.dtype());
        Expr within = gap <= e.scalar(3, real) + e.scalar(2, real) * loop::abs(b);
        return equal | (within & ~(loop::isinf(gap) | loop::isnan(gap)));
      });
  op("isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, "
     "bool equal_nan=False) -> Tensor",
     kFunction | kMethod)
      .doc("|self - other| <= atol + rtol * |other|; equal infinities are close.")
      .composition([](const Tensor& self, const Tensor& other, double rtol, double atol,
                      bool equal_nan) -> Tensor {
        if (self.dtype() != other.dtype()) {
          fail(ErrorKind::Runtime, "isclose", scalar_type_name(self.dtype()), " did not match ",
               scalar_type_name(other.dtype()));
        }
        expect_tolerance("rtol", rtol);
        expect_tolerance("atol", atol);
        return _isclose(self, other, rtol, atol, equal_nan);
      });
  op("allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, "
     "bool equal_nan=False) -> bool",
     kFunction | kMethod)
      .doc("Whether all elements are close: see isclose.")
      .composition([](const Tensor& self, const Tensor& other, double rtol, double atol,
                      bool equal_nan) -> bool {
        return all(isclose(self, other, rtol, atol, equal_nan)).item().to_bool();
      });
  op("equal(Tensor self, Tensor other) -> bool", kFunction | kMethod)
      .doc("Whether two tensors have the same shape and elements.")
      .composition([](const Tensor& self, const Tensor& other) -> bool {
        return self.sizes() == other.sizes() && all(eq(self, other)).item().to_bool();
      });
}

}  // namespace rushlight
