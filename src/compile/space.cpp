#include "compile/space.h"

#include <algorithm>

#include "ops/row_space.h"

namespace rushlight::compiler {

bool Space::is_axis(size_t dim) const {
  for (int64_t axis_dim : axis) {
    if (axis_dim == static_cast<int64_t>(dim)) {
      return true;
    }
  }
  return false;
}

std::optional<Fit> fit_shape(const Space& space, IntArrayRef shape) {
  if (IntArrayRef(space.shape) == shape) {
    return Fit::Full;
  }
  if (space.axis.empty()) {
    return std::nullopt;
  }
  IntList kept;
  IntList removed;
  for (size_t i = 0; i < space.shape.size(); ++i) {
    bool on_axis = space.is_axis(i);
    kept.push_back(on_axis ? 1 : space.shape[i]);
    if (!on_axis) {
      removed.push_back(space.shape[i]);
    }
  }
  if (IntArrayRef(kept) == shape) {
    return Fit::Kept;
  }
  if (IntArrayRef(removed) == shape) {
    return Fit::Removed;
  }
  return std::nullopt;
}

Place place_of(const graph::ValueInfo& value, const Space& space, Fit fit) {
  Place place;
  place.storage = value.storage;
  place.dtype = value.dtype;
  place.offset = value.offset;
  size_t rank = space.shape.size();
  place.strides.resize(rank);
  // Dimensions of the value count from the last; left out axis dimensions are skipped.
  size_t at = value.sizes.size();
  for (size_t i = rank; i-- > 0;) {
    if (fit == Fit::Removed && space.is_axis(i)) {
      place.strides[i] = 0;
      continue;
    }
    if (at == 0) {
      place.strides[i] = 0;
      continue;
    }
    --at;
    place.strides[i] = value.sizes[at] == 1 ? 0 : value.strides[at];
  }
  return place;
}

std::optional<int64_t> axis_stride(const Place& place, const Space& space) {
  bool first = true;
  int64_t stride = 0;
  int64_t expected = 0;
  for (size_t i = space.axis.size(); i-- > 0;) {
    auto dim = static_cast<size_t>(space.axis[i]);
    int64_t size = space.shape[dim];
    if (size == 1) {
      continue;
    }
    if (first) {
      stride = place.strides[dim];
      first = false;
    } else if (place.strides[dim] != expected) {
      return std::nullopt;
    }
    expected = place.strides[dim] * size;
  }
  return stride;
}

bool reduces_columns(const std::vector<Place>& places, const Space& space) {
  RowSpace rows;
  for (size_t i = 0; i < space.shape.size(); ++i) {
    if (space.is_axis(i)) {
      rows.length *= space.shape[i];
    } else {
      rows.outer.push_back(space.shape[i]);
    }
  }
  for (const Place& place : places) {
    RowOperand operand{nullptr, element_size(place.dtype), {}, 0};
    for (size_t i = 0; i < space.shape.size(); ++i) {
      if (!space.is_axis(i)) {
        operand.outer.push_back(place.strides[i]);
      }
    }
    operand.axis = axis_stride(place, space).value_or(-1);
    rows.operands.push_back(std::move(operand));
  }
  rows.fold();
  return rows.inner >= 0;
}

}  // namespace rushlight::compiler
