// Adapts ordinary C++ functions to the boxed calling convention.
//
// Schema type -> parameter type: Tensor, Tensor? -> const Tensor& (None: undefined); Tensor[],
// Tensor?[] -> const TensorList&; Scalar -> Scalar; int -> int64_t; int[] -> IntArrayRef; float ->
// double; bool -> bool; str -> std::string_view; ScalarType -> DType; Device, Layout,
// MemoryFormat; Generator? -> std::optional<Generator>; T? -> std::optional<T>; the run
// "ScalarType? dtype, Layout? layout, Device? device, bool? pin_memory" -> const TensorOptions&.
// Results: Tensor, TensorList, std::tuple of those, Scalar, int64_t, double, bool, or void.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "ops/invocation.h"

namespace rushlight {

using BoxedFunction = std::function<void(Invocation&)>;

namespace detail {

TensorOptions unbox_options(const Value* values);

template <typename T>
struct Unbox;
template <>
struct Unbox<Tensor> {
  static const Tensor& get(const Value* v) { return v->tensor(); }
};
template <>
struct Unbox<TensorList> {
  static const TensorList& get(const Value* v) { return v->tensors(); }
};
template <>
struct Unbox<Scalar> {
  static Scalar get(const Value* v) { return v->to_scalar(); }
};
template <>
struct Unbox<int64_t> {
  static int64_t get(const Value* v) { return v->to_int(); }
};
template <>
struct Unbox<double> {
  static double get(const Value* v) { return v->to_double(); }
};
template <>
struct Unbox<bool> {
  static bool get(const Value* v) { return v->to_bool(); }
};
template <>
struct Unbox<IntArrayRef> {
  static IntArrayRef get(const Value* v) { return v->ints(); }
};
template <>
struct Unbox<std::vector<double>> {
  static const std::vector<double>& get(const Value* v) { return v->floats(); }
};
template <>
struct Unbox<std::vector<Scalar>> {
  static const std::vector<Scalar>& get(const Value* v) { return v->scalars(); }
};
template <>
struct Unbox<std::string_view> {
  static std::string_view get(const Value* v) { return v->text(); }
};
template <>
struct Unbox<DType> {
  static DType get(const Value* v) { return v->dtype(); }
};
template <>
struct Unbox<Device> {
  static Device get(const Value* v) { return v->device(); }
};
template <>
struct Unbox<LayoutKind> {
  static LayoutKind get(const Value* v) { return v->layout(); }
};
template <>
struct Unbox<MemoryFormat> {
  static MemoryFormat get(const Value* v) { return v->memory_format(); }
};
template <>
struct Unbox<Generator> {
  static Generator get(const Value* v) { return v->generator(); }
};
template <typename T>
struct Unbox<std::optional<T>> {
  static std::optional<T> get(const Value* v) {
    return v->is_none() ? std::nullopt : std::optional<T>(Unbox<T>::get(v));
  }
};
template <>
struct Unbox<TensorOptions> {
  static TensorOptions get(const Value* v) { return unbox_options(v); }
};

template <typename T>
constexpr int slots() {
  return std::is_same_v<std::decay_t<T>, TensorOptions> ? 4 : 1;
}

template <typename... Parameters, size_t... I>
constexpr std::array<int, sizeof...(Parameters)> offsets(std::index_sequence<I...>) {
  constexpr int sizes[] = {slots<Parameters>()..., 0};
  std::array<int, sizeof...(Parameters)> result{};
  int at = 0;
  for (size_t i = 0; i < sizeof...(Parameters); ++i) {
    result[i] = at;
    at += sizes[i];
  }
  return result;
}

template <typename R>
void box_result(R&& result, Value* results) {
  results[0] = Value(std::forward<R>(result));
}
template <typename... Rs>
void box_result(std::tuple<Rs...>&& result, Value* results) {
  int at = 0;
  std::apply([&](Rs&... part) { ((results[at++] = Value(std::move(part))), ...); }, result);
}

template <typename R, typename... Parameters, size_t... I>
void call_unboxed(R (*function)(Parameters...), Invocation& inv, std::index_sequence<I...> seq) {
  constexpr auto at = offsets<Parameters...>(seq);
  (void)at;
  if constexpr (std::is_void_v<R>) {
    function(Unbox<std::decay_t<Parameters>>::get(inv.arguments + at[I])...);
  } else {
    box_result(function(Unbox<std::decay_t<Parameters>>::get(inv.arguments + at[I])...),
               inv.results);
  }
}

template <typename R, typename... Parameters>
BoxedFunction box_pointer(R (*function)(Parameters...)) {
  return [function](Invocation& inv) {
    call_unboxed(function, inv, std::index_sequence_for<Parameters...>());
  };
}

}  // namespace detail

// `function`: a function pointer, or a lambda without captures.
template <typename F>
BoxedFunction box(F function) {
  return detail::box_pointer(+function);
}

}  // namespace rushlight
