// One number a dimension: of a layer with D spatial dimensions, where one number stands for all.
#pragma once

#include <rushlight/error.h>
#include <rushlight/shape.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <vector>

namespace rushlight::nn {

// Error(Value) for a list of another length than D.
template <size_t D, typename T = int64_t>
class ExpandingArray {
 public:
  ExpandingArray(T all) { values_.fill(all); }
  ExpandingArray(std::initializer_list<T> list) { assign(list.begin(), list.size()); }
  ExpandingArray(const std::vector<T>& list) { assign(list.data(), list.size()); }

  const T& operator[](size_t dim) const { return values_[dim]; }
  const T* begin() const { return values_.data(); }
  const T* end() const { return values_.data() + D; }
  operator IntArrayRef() const
    requires std::is_same_v<T, int64_t>
  {
    return {values_.data(), D};
  }

 private:
  void assign(const T* list, size_t count) {
    if (count != D) {
      fail(ErrorKind::Value, "nn", "expected ", static_cast<int64_t>(D), " numbers, got ",
           static_cast<int64_t>(count));
    }
    std::copy_n(list, D, values_.begin());
  }
  std::array<T, D> values_;
};

}  // namespace rushlight::nn
