#pragma once

#include "kernels/copy.h"
#include "kernels/element.h"
#include "kernels/element_type.h"
#include "kernels/index.h"

namespace rushlight::kernels {

// The update as a function of types and kind known at compile time.
template <Update U, typename T, typename G>
T updated(T old, G given) {
  if constexpr (U == Update::Set) {
    return given;
  } else if constexpr (std::is_same_v<T, bool>) {
    return U == Update::Add || U == Update::Max ? old || given : old && given;
  } else {
    const auto a = load_value(old);
    const auto b = load_value(given);
    if constexpr (U == Update::Add) {
      return store_value<T>(static_cast<Compute<T>>(a + b));
    } else if constexpr (U == Update::Mul) {
      return store_value<T>(static_cast<Compute<T>>(a * b));
    } else if constexpr (!std::is_same_v<T, std::complex<float>> &&
                         !std::is_same_v<T, std::complex<double>>) {
      const bool first = a != a || (b == b && (U == Update::Max ? a >= b : a <= b));
      return first ? old : given;
    } else {
      fail(ErrorKind::NotImplemented, "", "complex numbers have no order");
    }
  }
}

template <typename F>
void by_update(Update update, F&& function) {
  switch (update) {
    case Update::Set:
      return function(std::integral_constant<Update, Update::Set>());
    case Update::Add:
      return function(std::integral_constant<Update, Update::Add>());
    case Update::Mul:
      return function(std::integral_constant<Update, Update::Mul>());
    case Update::Max:
      return function(std::integral_constant<Update, Update::Max>());
    case Update::Min:
      return function(std::integral_constant<Update, Update::Min>());
  }
}

// Calls function(T{}, constant of the update): Set by element size, the others by dtype.
template <typename F>
void by_update_and_type(Update update, DType dtype, F&& function) {
  if (update == Update::Set) {
    const std::integral_constant<Update, Update::Set> set;
    by_element_size(element_size(dtype), [&]<typename T>(T tag) { function(tag, set); });
    return;
  }
  by_update(update, [&]<Update U>(std::integral_constant<Update, U> constant) {
    if constexpr (U != Update::Set) {
      switch (dtype) {
#define RUSHLIGHT_CASE(name, type, text, alias, ir, category) \
  case DType::name:                                           \
    return function(type{}, constant);
        RUSHLIGHT_DTYPES(RUSHLIGHT_CASE)
#undef RUSHLIGHT_CASE
      }
    }
  });
}

// Whether sums and products in `base` are taken in float and rounded at the end: those of halves,
// where there is a given value for each place or more.
inline bool updates_in_float(const Tensor& base, const Tensor& given, Update update) {
  return (update == Update::Add || update == Update::Mul) && is_reduced_floating(base.dtype()) &&
         base.is_contiguous() && given.numel() >= base.numel();
}

// Calls function(float copy of base, type of the halves, constant of the update), then rounds.
template <typename F>
void update_in_float(const Tensor& base, Update update, F&& function) {
  const Tensor wide = as_dtype(base, DType::Float32);
  const auto by_type = [&]<Update U>(std::integral_constant<Update, U> constant) {
    base.dtype() == DType::Float16 ? function(wide, Half{}, constant)
                                   : function(wide, BFloat16{}, constant);
  };
  update == Update::Add ? by_type(std::integral_constant<Update, Update::Add>())
                        : by_type(std::integral_constant<Update, Update::Mul>());
  copy(base, wide);
}

}  // namespace rushlight::kernels
