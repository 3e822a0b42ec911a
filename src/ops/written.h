// Operators whose result is an argument with some elements changed: copy, index_put, scatter, ...
//
// The function gets the tensor to change in place of its first argument. It is a fresh copy of that
// argument in the functional form, the argument itself in the in-place form, and the given tensor,
// filled with the argument, in the out= form.
#pragma once

#include <memory>
#include <utility>

#include "ops/operator.h"

namespace rushlight {

// Whether elements of the written tensor may share memory (fill) or that is an error.
enum class Overlap : uint8_t { Refuse, Allow };

// How a fresh result lies in memory: row-major, or as the first argument does.
enum class Fresh : uint8_t { RowMajor, AsGiven };

// Puts the tensor to change into inv.results[0].
void prepare_written(Invocation& inv, Overlap overlap = Overlap::Refuse,
                     Fresh fresh = Fresh::RowMajor);

template <typename... Rest, size_t... I>
void call_on_written(void (*function)(const Tensor&, Rest...), Invocation& inv,
                     std::index_sequence<I...> seq) {
  constexpr auto at = detail::offsets<Rest...>(seq);
  (void)at;
  function(inv.results[0].tensor(),
           detail::Unbox<std::decay_t<Rest>>::get(inv.arguments + 1 + at[I])...);
}

// The same for functions that check their arguments, shapes above all, before anything is written:
// `check` gets all arguments as they were given.
template <typename... Rest>
BoxedFunction written(void (*check)(const Tensor&, Rest...),
                      void (*function)(const Tensor&, Rest...), Overlap overlap = Overlap::Refuse,
                      Fresh fresh = Fresh::RowMajor) {
  return [check, function, overlap, fresh](Invocation& inv) {
    detail::call_unboxed(check, inv, std::make_index_sequence<1 + sizeof...(Rest)>());
    prepare_written(inv, overlap, fresh);
    call_on_written(function, inv, std::index_sequence_for<Rest...>());
  };
}

// A body that makes fresh results, with stricter rules for out= than the common ones: no memory
// shared with an argument, and TypeError where the result's dtype cannot be cast.
BoxedFunction strict_outputs(BoxedFunction function);
// The same for compositions: Entry::body(Kind::Composition, strict_body(...)).
std::unique_ptr<Body> strict_body(BoxedFunction function);

}  // namespace rushlight
