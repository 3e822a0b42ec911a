// Subscripts: x.index({0, Slice(1, None), "...", mask}) is Python's x[0, 1:, ..., mask].
//
// Integers, slices, None and the ellipsis give views. Tensors of integers and masks give copies, as
// in NumPy. Errors are Error(Index) and Error(Value), with the texts that Python shows.
#pragma once

#include <rushlight/tensor.h>

#include <concepts>
#include <initializer_list>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace rushlight {
namespace indexing {

struct NoneType {};
struct EllipsisType {};
inline constexpr NoneType None;          // a new dimension of size one; an open end of a slice
inline constexpr EllipsisType Ellipsis;  // all dimensions that the other items leave

// An end or the step of a slice.
class Bound {
 public:
  Bound(NoneType) {}
  template <std::integral T>
  Bound(T value) : value_(static_cast<int64_t>(value)) {}
  std::optional<int64_t> value() const { return value_; }

 private:
  std::optional<int64_t> value_;
};

struct Slice {
  Slice(Bound start = None, Bound stop = None, Bound step = None)
      : start(start.value()), stop(stop.value()), step(step.value()) {}
  std::optional<int64_t> start, stop, step;
};

class TensorIndex {
 public:
  TensorIndex(NoneType) : item_(None) {}
  TensorIndex(EllipsisType) : item_(Ellipsis) {}
  TensorIndex(const char* dots);   // "..."
  template <std::same_as<bool> T>  // not what merely converts to bool, as pointers do
  TensorIndex(T value) : item_(value) {}
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  TensorIndex(T value) : item_(static_cast<int64_t>(value)) {}
  TensorIndex(Slice slice) : item_(slice) {}
  TensorIndex(Tensor tensor) : item_(std::move(tensor)) {}

  using Item = std::variant<NoneType, EllipsisType, bool, int64_t, Slice, Tensor>;
  const Item& item() const { return item_; }

 private:
  Item item_;
};

// self[items], and self[items] = value.
RUSHLIGHT_API Tensor get(const Tensor& self, const std::vector<TensorIndex>& items);
RUSHLIGHT_API void put(const Tensor& self, const std::vector<TensorIndex>& items,
                       const Tensor& value);
RUSHLIGHT_API void put(const Tensor& self, const std::vector<TensorIndex>& items,
                       const Scalar& value);

}  // namespace indexing

#ifndef RUSHLIGHT_CORE
class Tensor::Subscript : public indexing::TensorIndex {
 public:
  using indexing::TensorIndex::TensorIndex;
};

inline Tensor Tensor::index(std::initializer_list<Subscript> items) const {
  return indexing::get(*this, std::vector<indexing::TensorIndex>(items.begin(), items.end()));
}
inline const Tensor& Tensor::index_put_(std::initializer_list<Subscript> items,
                                        const Tensor& value) const {
  indexing::put(*this, std::vector<indexing::TensorIndex>(items.begin(), items.end()), value);
  return *this;
}
inline const Tensor& Tensor::index_put_(std::initializer_list<Subscript> items,
                                        const Scalar& value) const {
  indexing::put(*this, std::vector<indexing::TensorIndex>(items.begin(), items.end()), value);
  return *this;
}
#endif

}  // namespace rushlight
